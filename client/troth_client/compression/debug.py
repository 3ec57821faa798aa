"""Files in, bytes out: the core of `troth debug payload` and `troth debug apply`.

Owns: reading the files that authors of another client compare, with errors that name the file.
Never: prints or parses arguments (`cli`), nor takes a short cut around `codec.decode`.
Next: `codec.py`, `apply.py`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from troth_attestation.sizes import TILE_SIDE
from troth_client.compression.apply import direction
from troth_client.compression.codec import VerifiedPayload, decode, encode, payload_root
from troth_client.compression.errors import (
    InputFileError,
    MalformedPayloadError,
    PayloadLengthError,
)
from troth_client.compression.known_answer import ApplyPath
from troth_client.compression.limits import check_k, payload_length
from troth_client.compression.residual import flushed
from troth_client.compression.topk import select

_NEXT = "Write it with numpy.save as float32 of shape [tiles, 64, 64]."


@dataclass(frozen=True, slots=True)
class PayloadFacts:
    """The facts that `troth debug payload` prints; the hashes are hex."""

    length: int
    sha256: str
    payload_root: str


def payload_from_file(tiles_file: Path, k: int) -> tuple[bytes, PayloadFacts]:
    """Encode u from a .npy file, float32 [tiles, 64, 64]: payload bytes and their facts.

    The residual before counts as zero, as in the first round of a residual period.

    Raises InputFileError, UnsupportedKError, and NonFiniteError for a NaN or an infinity in u.
    """
    check_k(k)
    data = encode(select(flushed(torch.from_numpy(_read_tiles(tiles_file))), k))
    return data, PayloadFacts(len(data), hashlib.sha256(data).hexdigest(), payload_root(data).hex())


def direction_from_files(
    files: Sequence[Path], num_tiles: int, k: int, path: ApplyPath
) -> tuple[bytes, str]:
    """Apply payload files: the direction as int8 [num_tiles, 64, 64] bytes, and its SHA-256 in hex.

    Raises InputFileError for a file that cannot be read, and the errors of `codec.decode`.
    """
    check_k(k)
    if num_tiles < 1:
        raise InputFileError("at least one tile", f"{num_tiles}", "Pass the model's tile count.")
    payloads = [_read_payload(file, num_tiles, k) for file in files]
    data = direction(payloads, num_tiles, path).cpu().numpy().tobytes()
    return data, hashlib.sha256(data).hexdigest()


def _read_tiles(file: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputFileError(f"an .npy file at {file}", f"{error}", _NEXT) from error
    if not isinstance(found, np.ndarray):
        found.close()
        raise InputFileError(f"one array in {file}", "an .npz archive", _NEXT)
    if found.dtype != np.float32 or found.ndim != 3 or found.shape[1:] != (TILE_SIDE, TILE_SIDE):
        raise InputFileError(
            f"float32 of shape [tiles, 64, 64] in {file}",
            f"{found.dtype} of shape {list(found.shape)}",
            _NEXT,
        )
    if not len(found):
        raise InputFileError(f"at least one tile in {file}", "none", _NEXT)
    return np.array(found, np.float32, order="C")


def _read_payload(file: Path, num_tiles: int, k: int) -> VerifiedPayload:
    length = payload_length(num_tiles, k)
    try:
        size = file.stat().st_size
        if size != length:
            raise PayloadLengthError(
                f"{length} bytes for {num_tiles} tiles with k = {k}",
                f"{size} bytes in {file}",
                "Check --tiles and --k.",
            )
        data = file.read_bytes()
    except OSError as error:
        raise InputFileError(
            f"a payload file at {file}", f"{error}", "Make one with `troth debug payload`."
        ) from error
    try:
        return decode(data, num_tiles, k)
    except MalformedPayloadError as error:
        found = f"{error.found} in {file}"
        raise type(error)(error.expected, found, error.next_step) from error
