"""The known-answer test that a device must pass before it applies a payload (protocol 5.5).

Owns: the test cases, their answers as shipped constants, and the choice of the path: fp64 on the
device, else the CPU. Never: repairs a device. A failing device is not used for consensus.
Next: `apply.py`, which demands the `ApplyPath` that only `choose_path` makes.

The extremes of Q: with 64 participants |C| <= 64. Suppose that all 4096 coefficients reached 64
with the signs of one position's basis values. Then |Q| there would be 64 * (sum |B|)^2, just under
2^40. The first two tiles test this value, which 64 payloads of k = 64 cannot reach. The third tile
tests the largest value that they can reach.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from troth_attestation.sizes import TILE_COEFFICIENTS, TILE_SIDE
from troth_client.compression.basis import BASIS_SHA256, integer_basis
from troth_client.compression.encoder import Encoder
from troth_client.compression.errors import KnownAnswerError
from troth_client.compression.exact import basis_pair, inverse, step_
from troth_client.compression.kernels.base import MOST_K, USUAL_K, Encoded, Kernels
from troth_client.compression.kernels.check import wrong_encode
from troth_client.compression.kernels.choice import find_kernels
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_coordinator.rules.ids import Digest

MAX_BLOCK_TILES = 1024
_CPU_BLOCK_TILES = 64
COMPILED_FROM_TILES = 1024
"""For smaller models the start of numba takes longer than it saves in a hundred rounds."""

_MAX_SENDERS = 64
_MAX_K = 64
_MADE_HERE: Final = object()

Q_SHA256 = "003fe3cbddbdb68f845120ecbefdf955e64e72075ce4f9a36e921cba3597952b"
"""SHA-256 of Q of `extreme_counts`, int64 little-endian, row-major."""

DECAY, RATE = 0x3F7FF972, 0x3A83126F
"""a and b of the step cases as fp32 bits: L = 0.001, weight decay 0.1."""

STEP_CASES = (
    # Columns: weight, direction, weight after w * a and - b * d. All are fp32 as bits.
    (0x3B28D84F, 1, 0x3ACE9589),  # A fused multiply-subtract gives ...8a.
    (0x3B3DFB53, 1, 0x3AF8DA7D),  # Fused: ...7c.
    (0x3B3DFB53, -1, 0x3B7F7FAE),  # Fused: ...ad.
    (0x00000001, 0, 0x00000001),  # The smallest subnormal, times a, rounds back to itself.
    (0x00400000, 0, 0x003FFE5C),  # Subnormal times a.
    (0x807FFFFF, 0, 0x807FFCB8),  # The largest, negative.
    (0x00800000, 0, 0x007FFCB9),  # A normal number whose product is subnormal.
    (0x80000000, 0, 0x80000000),  # The sign of -0.0 stays.
    (0x80000000, 1, 0xBA83126F),  # The sum -0.0 - b.
    (0x00000000, -1, 0x3A83126F),
)
NO_DECAY_CASES = (
    (0x00000001, 0, 0x00000001),  # Inputs flushed to zero would show here.
    (0x807FFFFF, 0, 0x807FFFFF),
    (0x80000000, 0, 0x80000000),
    (0x3A83126F, 1, 0x00000000),  # The difference b - b is +0.0.
    (0xBA83126F, -1, 0x00000000),
    (0x80000000, -1, 0x3A83126F),
)
STILL_CASES = (
    # b is zero. A sum of zeros is -0.0 only where both are: w is, and d is not negative.
    (0x80000000, -1, 0x00000000),
    (0x80000000, 0, 0x80000000),
    (0x80000000, 1, 0x80000000),
    (0x00000000, -1, 0x00000000),
    (0x00000000, 1, 0x00000000),
    (0x00400000, -1, 0x003FFE5C),
)
# Long enough for vector bodies, their tails and more than one thread of the CPU kernels.
_REPEATS = 9001


class ApplyPath:
    """Where and in which arithmetic a client applies payloads; made by `choose_path` only.

    device: where C, Q, the weight step and the momentum live.
    dtype: torch.float64 or torch.int64 for Q.
    reason: why it is not fp64 on the device that was asked for, or "".

    kernels: compiled ones that do the same on this device; None where torch does it.
    note: why there are none on a device that was asked for them, or what they leave, or "".
    """

    __slots__ = ("device", "dtype", "kernels", "note", "reason")

    def __init__(
        self,
        device: torch.device,
        dtype: torch.dtype,
        reason: str = "",
        compiled: tuple[Kernels | None, str] = (None, ""),
        *,
        seal: object,
    ) -> None:
        if seal is not _MADE_HERE:
            raise TypeError(
                "ApplyPath is made by troth_client.compression.known_answer.choose_path only"
            )
        self.device: Final[torch.device] = device
        self.dtype: Final[torch.dtype] = dtype
        self.reason: Final[str] = reason
        self.kernels: Final[Kernels | None] = compiled[0]
        self.note: Final[str] = compiled[1]

    @property
    def block_tiles(self) -> int:
        """Tiles worked on at a time."""
        return _CPU_BLOCK_TILES if self.device.type == "cpu" else MAX_BLOCK_TILES

    @property
    def summary(self) -> str:
        """Which code applies payloads; where and in which arithmetic if others were asked for."""
        code = "compiled" if self.kernels else self.note or "torch"
        if not self.reason:
            return code
        arithmetic = str(self.dtype).removeprefix("torch.")
        return f"{code}, on {self.device} in {arithmetic}: {self.reason}"

    def encoder(self, layout: TileLayout, rule: Residual, k: int) -> Encoder:
        """Return the encoder whose momentum lives where payloads are applied.

        It has the kernels only where these were asked for k.
        """
        kernels = self.kernels if self.kernels is not None and k in self.kernels.asked_k else None
        return Encoder(layout, rule, k, kernels, self.device)

    def leaf_hashes(self, tensors: Sequence[Tensor], leaf_bytes: int) -> list[Digest] | None:
        """Return the leaf hashes of tensors that their device hashes; None where the host has to.

        Leaves of one tensor after another, as `troth_attestation.bulk` cuts and hashes them.
        """
        kernels = self.kernels
        if kernels is None or kernels.leaf_hashes is None or not kernels.take(tensors):
            return None
        return kernels.leaf_hashes(tensors, leaf_bytes)

    def __repr__(self) -> str:
        return f"ApplyPath({self.device}, {self.dtype}, reason={self.reason!r})"


def choose_path(device: torch.device | str, *, num_tiles: int = 0, k: int = USUAL_K) -> ApplyPath:
    """Test a device and return the path to use: fp64 on it, or on the CPU with the reason.

    A CPU that fails in fp64 computes in int64. A model of at least `COMPILED_FROM_TILES` gets
    compiled kernels too, if they pass their own test. `k` is the run's: so many coefficients of a
    tile are chosen there. Raises KnownAnswerError if not even the CPU answers: then this machine
    must not take part.
    """
    device = torch.device(device)
    if device.type == "mps":
        return _on_processor("MPS has no fp64", num_tiles, k)
    try:
        check(device, k=k)
    except KnownAnswerError as error:
        if device.type == "cpu":
            return integer_path(str(error))
        return _on_processor(str(error), num_tiles, k)
    compiled = _compiled(device, k) if num_tiles >= COMPILED_FROM_TILES else (None, "")
    return ApplyPath(device, torch.float64, "", compiled, seal=_MADE_HERE)


def integer_path(reason: str) -> ApplyPath:
    """Return the path in int64 on the CPU, for this reason. Raises KnownAnswerError."""
    check("cpu", torch.int64)
    return ApplyPath(torch.device("cpu"), torch.int64, reason, seal=_MADE_HERE)


def _on_processor(reason: str, num_tiles: int, k: int) -> ApplyPath:
    here = choose_path("cpu", num_tiles=num_tiles, k=k)
    compiled, reasons = (here.kernels, here.note), filter(None, (reason, here.reason))
    return ApplyPath(here.device, here.dtype, "; ".join(reasons), compiled, seal=_MADE_HERE)


@torch.no_grad()
def check(
    device: torch.device | str, dtype: torch.dtype = torch.float64, *, k: int = USUAL_K
) -> None:
    """Ask the device; KnownAnswerError names the first case that it answers differently."""
    device = torch.device(device)
    try:
        wrong = _wrong_basis() or _wrong_q(device, dtype) or _wrong_step(device)
        if not wrong and device.type != "cpu":  # the processor would judge itself
            wrong = wrong_encode(_encode, device, (MOST_K, k))
    except (RuntimeError, TypeError) as error:  # how torch says that a device lacks an operation
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        raise KnownAnswerError(
            f"{device} in {dtype} to answer like every other device",
            wrong,
            "Apply runs on the CPU, in int64 if that fails, too. Then look for a library that "
            "sets flush-to-zero (torch.set_flush_denormal(False) undoes it).",
        )


def extreme_counts() -> npt.NDArray[np.int32]:
    """Return the counts C of the test, int32 [8, 64, 64]."""
    basis = integer_basis().astype(np.int64)
    sign = np.where(basis < 0, -1, 1)
    counts = np.zeros((8, TILE_SIDE, TILE_SIDE), np.int64)
    counts[0] = _MAX_SENDERS * np.outer(sign[:, 0], sign[:, 0])
    counts[1] = -_MAX_SENDERS * np.outer(sign[:, 31], sign[:, 62])
    weight = np.outer(basis[:, 0], basis[:, 0])
    strongest = np.argsort(-np.abs(weight).reshape(-1), kind="stable")[:_MAX_K]
    counts[2].reshape(-1)[strongest] = _MAX_SENDERS * np.sign(weight.reshape(-1)[strongest])
    stream = b"".join(
        hashlib.sha256(b"troth known answer %d" % n).digest()
        for n in range(TILE_COEFFICIENTS // 32)
    )
    random = np.frombuffer(stream, np.uint8).astype(np.int64).reshape(TILE_SIDE, TILE_SIDE)
    counts[3] = 1 - 2 * (random & 1)  # 64 senders, none of whom agrees on an index
    counts[4] = random % (2 * _MAX_SENDERS + 1) - _MAX_SENDERS
    counts[5, 0, 1] = 1
    upper = np.triu(counts[4], 1)
    counts[6] = upper - upper.T  # Q is 0 on the diagonal, by cancellation
    return counts.astype(np.int32)


def _compiled(device: torch.device, k: int) -> tuple[Kernels | None, str]:
    hard = _from_bits([case[0] for case in STEP_CASES])
    return find_kernels(device, hard, (_fp32(DECAY), _fp32(RATE)), k)


def _encode(
    gradient: Mapping[str, Tensor],
    carried: Carried | None,
    layout: TileLayout,
    rule: Residual,
    k: int,
    _into: Tensor | None,
) -> Encoded:
    """Encode as torch does without kernels."""
    return Encoder(layout, rule, k).encode(gradient, carried)


def _wrong_basis() -> str:
    found = hashlib.sha256(integer_basis().astype("<i2").tobytes()).hexdigest()
    return "" if found == BASIS_SHA256 else f"an integer basis with SHA-256 {found}"


def _wrong_q(device: torch.device, dtype: torch.dtype) -> str:
    counts = torch.from_numpy(extreme_counts()).to(device)
    basis = basis_pair(device, dtype)
    known = _answer(counts, basis)
    found = hashlib.sha256(known.numpy().astype("<i8").tobytes()).hexdigest()
    if found != Q_SHA256:
        return f"Q with SHA-256 {found} instead of {Q_SHA256}"
    block = _CPU_BLOCK_TILES if device.type == "cpu" else MAX_BLOCK_TILES
    # A full block, a short last one and a single tile: libraries choose kernels by size.
    for tiles in (block, len(counts) + 3, 1):
        repeats = (-(-tiles // len(counts)), 1, 1)
        answer = _answer(counts.repeat(repeats)[:tiles], basis)
        wrong = torch.nonzero((answer != known.repeat(repeats)[:tiles]).any(dim=(1, 2)))
        if len(wrong):
            return f"other Q in tile {int(wrong[0])} of a block of {tiles}"
    return ""


def _answer(counts: Tensor, basis: tuple[Tensor, Tensor]) -> Tensor:
    return inverse(counts, basis).cpu().to(torch.int64)


def _wrong_step(device: torch.device) -> str:
    decay, rate = _fp32(DECAY), _fp32(RATE)
    tables = ((decay, rate, STEP_CASES), (1.0, rate, NO_DECAY_CASES), (decay, 0.0, STILL_CASES))
    for a, b, cases in tables:
        weights = _from_bits([case[0] for case in cases]).repeat(_REPEATS).to(device)
        direction = torch.tensor([case[1] for case in cases], dtype=torch.int8)
        step_(weights, direction.repeat(_REPEATS).to(device), a, b)
        found = weights.cpu().view(torch.int32).view(_REPEATS, len(cases))
        known = _from_bits([case[2] for case in cases]).view(torch.int32)
        different = torch.nonzero((found != known).any(dim=0))
        if len(different):
            case = cases[int(different[0])]
            return f"another weight for 0x{case[0]:08x} with d = {case[1]}, a = {a} and b = {b}"
    return ""


def _from_bits(bits: list[int]) -> Tensor:
    return torch.from_numpy(np.array(bits, np.uint32).view(np.float32))


def _fp32(bits: int) -> float:
    return float(np.uint32(bits).view(np.float32))
