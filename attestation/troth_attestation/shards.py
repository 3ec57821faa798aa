"""The files of a checkpoint: which tensor lies in which safetensors shard, and where.

Owns: the order, names and headers of shards. They follow from the tensors' names and shapes alone,
so everybody who writes a checkpoint writes the same bytes.
Never: touches a file. Next: `manifest.py`; `troth_client/checkpoint/folder.py` for the files.

A shard holds whole tensors in canonical order, at most 256 MiB unless one tensor is larger.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from troth_attestation.pieces import Shape, in_order, tensor_bytes

SHARD_BYTES = 256 * 2**20
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Shard:
    """One safetensors file: its name, its header, and where each tensor begins in it (bytes)."""

    file: str
    header: bytes
    offsets: Mapping[str, int]
    num_bytes: int


def shards_of(shapes: Mapping[str, Shape]) -> tuple[Shard, ...]:
    """Return the shards of tensors of these shapes, which are not empty."""
    groups = list(_groups(shapes))
    names = (f"model-{at + 1:05d}-of-{len(groups):05d}.safetensors" for at in range(len(groups)))
    return tuple(_shard(file, group, shapes) for file, group in zip(names, groups, strict=True))


def _groups(shapes: Mapping[str, Shape]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for name in in_order(shapes):
        more = tensor_bytes(shapes[name])
        if group and size + more > SHARD_BYTES:
            yield group
            group, size = [], 0
        group.append(name)
        size += more
    yield group


def _shard(file: str, names: Sequence[str], shapes: Mapping[str, Shape]) -> Shard:
    begins: dict[str, int] = {}
    fields: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name in names:
        begins[name], end = at, at + tensor_bytes(shapes[name])
        fields[name] = {"dtype": "F32", "shape": list(shapes[name]), "data_offsets": [at, end]}
        at = end
    text = json.dumps(fields, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % _ALIGNMENT)
    header = len(text).to_bytes(8, "little") + text
    offsets = {name: len(header) + begin for name, begin in begins.items()}
    return Shard(file, header, offsets, len(header) + at)
