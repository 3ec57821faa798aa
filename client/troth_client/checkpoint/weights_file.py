"""Weights in a safetensors file that somebody else wrote; its header is judged before any use.

Owns: the header (its length, its JSON, where each tensor lies), the facts in it, and the tensors.
Never: follows a path, unpickles, or allocates what the length of the file does not back.
Next: `exporting.py` writes such files; `troth_cli/workflows/checkpoint_verify.py` reads them.

    8 bytes      length of the header, little-endian
    header       JSON: name -> {dtype, shape, data_offsets}, and `__metadata__` with texts
    tensors      end to end, without gaps, in the order of their offsets
"""

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Self

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from troth_attestation.pieces import Float32, Shape
from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.checkpoint.folder import Weights
from troth_client.model.shapes import EMBEDDING, HEAD, trainable_shapes
from troth_client.runtime.files import Mark
from troth_coordinator.rules.base import FrozenModel
from troth_coordinator.rules.config import ModelSection

MAX_HEADER_BYTES: Final = 16 * 2**20
"""No header is longer: one of 16 MiB describes about 100 000 tensors."""
MAX_RANK: Final = 8
METADATA: Final = "__metadata__"
DTYPE_BYTES: Final[Mapping[str, int]] = {"F32": 4, "F16": 2, "BF16": 2}
"""The dtypes that fp32 holds exactly, and the bytes of an element."""
FP32: Final = ("F32",)
_PREFIX_BYTES: Final = 8
_NAMED: Final = 3


_Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class _Entry(FrozenModel):
    """One tensor as the header describes it."""

    dtype: str
    shape: tuple[_Int64, ...] = Field(max_length=MAX_RANK)
    data_offsets: tuple[_Int64, _Int64]


_FACTS: Final = TypeAdapter(dict[str, str])


@dataclass(frozen=True)
class WeightsFile:
    """A safetensors file whose header and length fit together; `offsets` count from its start.

    `facts` are the texts of the header. They are claims: only a root on chain proves something.
    `mark` tells this file from one that takes its place while the tensors are read.
    """

    path: Path
    mark: Mark
    facts: Mapping[str, str]
    shapes: Mapping[str, Shape]
    offsets: Mapping[str, int]
    dtypes: Mapping[str, str]

    @classmethod
    def open(cls, path: Path, accepted: Collection[str] = FP32) -> Self:
        """Read the header; tensors have one of the accepted dtypes.

        Raises CheckpointFileError, naming what is wrong.
        """
        try:
            if not path.is_file():
                found = "none by that name" if not path.exists() else "no file"
                raise _wrong(path, "a file", found)
            return cls._read(path, accepted)
        except OSError as error:
            raise _wrong(path, "a file that can be read", error.strerror) from error

    @classmethod
    def _read(cls, path: Path, accepted: Collection[str]) -> Self:
        with path.open("rb") as stream:
            mark = Mark.of(os.fstat(stream.fileno()))
            file_bytes = mark.size
            prefix = stream.read(_PREFIX_BYTES)
            size = int.from_bytes(prefix, "little")
            if len(prefix) < _PREFIX_BYTES or size < len("{}"):
                raise _wrong(path, "a safetensors header", f"a file of {file_bytes} bytes without")
            if size > MAX_HEADER_BYTES:
                raise _wrong(
                    path, f"a safetensors header of at most {MAX_HEADER_BYTES} bytes", size
                )
            if size > file_bytes - _PREFIX_BYTES:
                raise _wrong(path, f"a header of {size} bytes", f"a file of {file_bytes} bytes")
            fields = _parsed(path, stream.read(size))
        facts = _checked_facts(path, fields.pop(METADATA, {}))
        entries = {name: _entry(path, name, value, accepted) for name, value in fields.items()}
        begin = _PREFIX_BYTES + size
        _check_layout(path, entries, file_bytes - begin)
        shapes = {name: entry.shape for name, entry in entries.items()}
        offsets = {name: begin + entry.data_offsets[0] for name, entry in entries.items()}
        dtypes = {name: entry.dtype for name, entry in entries.items()}
        return cls(path, mark, facts, shapes, offsets, dtypes)

    def weights(self, config: ModelSection) -> Weights:
        """Return the tensors of this model by canonical name, float32.

        Raises CheckpointFileError unless names and shapes are exactly those of the config, a tied
        matrix given once, and if the file changed meanwhile.
        """
        names = self._named(config)
        weights = {name: self.tensor(stored) for name, stored in names.items()}
        self.check_unchanged()
        return weights

    def tensor(self, name: str) -> Float32:
        """Return a tensor in fp32, which holds each value exactly.

        Raises CheckpointFileError if the file is gone, got shorter or cannot be read any more.
        """
        shape, dtype = self.shapes[name], self.dtypes[name]
        kind = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}[dtype]
        try:
            values = np.fromfile(self.path, kind, math.prod(shape), offset=self.offsets[name])
        except FileNotFoundError as error:
            raise changed_meanwhile(self.path) from error
        except OSError as error:
            raise _wrong(self.path, "a file that can be read", error.strerror or error) from error
        if values.size != math.prod(shape):
            raise _wrong(self.path, f"all bytes of {shown(name)}", "a file that is cut short")
        if dtype == "BF16":  # the upper half of an fp32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float32, copy=False).reshape(shape)

    def check_unchanged(self) -> None:
        """Raise CheckpointFileError unless this is the file whose header was read.

        Call it after the last tensor: one of a file that is written anew may be of any bytes.
        """
        try:
            is_same = Mark.of(self.path.stat()) == self.mark
        except OSError:
            is_same = False
        if not is_same:
            raise changed_meanwhile(self.path)

    def _named(self, config: ModelSection) -> dict[str, str]:
        """Return canonical name -> name in the file, after the checks against the config."""
        # Before the names of all layers are written out: the config may be a stranger's.
        if config.num_hidden_layers > len(self.shapes):
            layers = f"the tensors of {config.num_hidden_layers} layers"
            raise _wrong(self.path, layers, f"{len(self.shapes)} tensors")
        expected = trainable_shapes(config)
        names = {name: name for name in expected}
        if config.tie_word_embeddings and EMBEDDING in self.shapes:
            if HEAD in self.shapes:
                raise _wrong(
                    self.path,
                    "the matrix that input and output share, once",
                    f"tied weights given twice: {HEAD} and {EMBEDDING}",
                )
            names[HEAD] = EMBEDDING  # transformers keeps it under this name
        missing = sorted(set(names.values()) - self.shapes.keys())
        extra = sorted(self.shapes.keys() - set(names.values()))
        for what, which in (("missing", missing), ("that the model does not have", extra)):
            if which:
                found = f"{len(which)} {what}: {', '.join(map(shown, which[:_NAMED]))}"
                raise _wrong(self.path, f"the {len(names)} tensors of the model config", found)
        for name, stored in names.items():
            if self.shapes[stored] != expected[name]:
                found = f"shape {list(self.shapes[stored])}"
                raise _wrong(self.path, f"{stored} of shape {list(expected[name])}", found)
        return names


def _parsed(path: Path, text: bytes) -> dict[str, object]:
    """Return the JSON object of a header; a name that occurs twice is refused."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            raise _wrong(path, "each name once in the header", f"{shown(twice)} twice")
        return fields

    try:
        fields = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, "a header in JSON", str(error)[:80]) from error
    if not isinstance(fields, dict):
        raise _wrong(path, "a JSON object as header", type(fields).__name__)
    return fields


def _checked_facts(path: Path, value: object) -> dict[str, str]:
    try:
        return _FACTS.validate_python(value, strict=True)
    except ValidationError as error:
        raise _wrong(path, f"texts in {METADATA}", error.errors()[0]["msg"]) from error


def _entry(path: Path, name: str, value: object, accepted: Collection[str]) -> _Entry:
    try:
        entry = _Entry.model_validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _wrong(path, f"dtype, shape and data_offsets of {shown(name)}", where) from error
    if entry.dtype not in accepted:
        raise CheckpointFileError(
            f"{shown(name)} in {' or '.join(accepted)} in {path}",
            shown(entry.dtype),
            "Nothing was loaded: save the weights in one of these first.",
        )
    if min(entry.shape, default=1) < 1:
        raise _wrong(path, f"{shown(name)} of a shape with elements", list(entry.shape))
    return entry


def _check_layout(path: Path, entries: Mapping[str, _Entry], num_bytes: int) -> None:
    """Raise unless the tensors fill the bytes behind the header, one after the other."""
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        begin, end = entry.data_offsets
        size = DTYPE_BYTES[entry.dtype] * math.prod(entry.shape)
        if end - begin != size:
            raise _wrong(path, f"{size} bytes for {shown(name)}", f"data_offsets {[begin, end]}")
        if begin != at:
            raise _wrong(path, f"{shown(name)} at byte {at}, where the last one ends", begin)
        at = end
    if at != num_bytes:
        raise _wrong(path, f"{at} bytes of tensors behind the header", num_bytes)


def shown(text: str) -> str:
    """Return a stranger's text, short and without control characters for the terminal."""
    return text[:80] if text.isascii() and text.isprintable() else ascii(text[:80])


def _wrong(path: Path, expected: str, found: object) -> CheckpointFileError:
    return CheckpointFileError(
        f"{expected} in {path}",
        str(found),
        "Nothing was loaded: get the file from its maker again.",
    )


def changed_meanwhile(path: Path) -> CheckpointFileError:
    """Return the error of a file that somebody wrote while it was read."""
    return CheckpointFileError(
        f"unchanging content of {path}",
        "a change during the reading",
        "Nothing was loaded: repeat the command when nothing writes into the folder.",
    )
