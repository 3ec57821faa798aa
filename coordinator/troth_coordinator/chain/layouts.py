"""Account layouts as numpy dtypes, made from the constants that the program itself exported.

Owns: reading layout.json, checking that each struct is described without a gap, building dtypes
whose records turn into plain Python tuples.
Never: knows what a field means; a field that the views do not name is skipped by offset.
Next: accounts.py, which turns records into the frozen views of the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from solders.pubkey import Pubkey

from troth_coordinator import artifacts
from troth_coordinator.chain.errors import ArtifactError

_ARRAY = re.compile(r"^\((\d+),\)(.+)$")
_BYTES = re.compile(r"^(?:V(\d+)|\((\d+),\)\|?u1)$")
_Dtype = np.dtype[Any]


@dataclass(frozen=True, slots=True)
class AccountKind:
    """What marks an account of one kind: first 8 bytes and size in bytes, both included."""

    name: str
    discriminator: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct: offset in bytes and the exported dtype string."""

    name: str
    offset: int
    form: str


@dataclass(frozen=True, slots=True)
class ProgramLayout:
    """Everything that layout.json says, typed."""

    program_id: Pubkey
    layout_version: int
    seeds: Mapping[str, bytes]
    accounts: Mapping[str, AccountKind]
    structs: Mapping[str, tuple[Field, ...]]
    sizes: Mapping[str, int]
    enums: Mapping[str, Mapping[str, int]]

    def dtype(self, struct: str, names: Sequence[str]) -> _Dtype:
        """Return a record dtype with just these fields, in this order, over the whole struct.

        Byte arrays become void (plain bytes in Python), other arrays and nested structs become
        nested records (plain tuples). Raises ArtifactError for a field the struct does not have.
        """
        fields = {field.name: field for field in self.structs[struct]}
        missing = [name for name in names if name not in fields]
        if missing:
            raise _mismatch(f"{struct} with the field {missing[0]}", sorted(fields))
        chosen = [fields[name] for name in names]
        return np.dtype(
            {
                "names": list(names),
                "formats": [self.format(field.form) for field in chosen],
                "offsets": [field.offset for field in chosen],
                "itemsize": self.sizes[struct],
            }
        )

    def field(self, struct: str, name: str) -> Field:
        """Return one field; ArtifactError if the struct does not have it."""
        for field in self.structs[struct]:
            if field.name == name:
                return field
        raise _mismatch(f"{struct} with the field {name}", "none by that name")

    def format(self, form: str) -> _Dtype:
        """Return the dtype of a dtype string; see `dtype` for arrays and structs."""
        raw = _BYTES.match(form)
        if raw:
            return np.dtype(f"V{raw[1] or raw[2]}")
        array = _ARRAY.match(form)
        if array:
            inner = self.format(array[2])
            return np.dtype([(f"f{number}", inner) for number in range(int(array[1]))])
        if form in self.structs:
            return self.dtype(form, [field.name for field in self.structs[form]])
        return np.dtype(form)


@cache
def program_layout() -> ProgramLayout:
    """Return the packaged layout; read and checked once per process."""
    return read_layout(artifacts.read_json(artifacts.LAYOUT))


def read_layout(source: Mapping[str, Any]) -> ProgramLayout:
    """Type and check a layout.json; ArtifactError when it is incomplete or has gaps."""
    try:
        layout = ProgramLayout(
            program_id=Pubkey.from_string(source["program_id"]),
            layout_version=int(source["layout_version"]),
            seeds={name: seed.encode("ascii") for name, seed in source["seeds"].items()},
            accounts={
                name: AccountKind(name, bytes(kind["discriminator"]), int(kind["size"]))
                for name, kind in source["accounts"].items()
            },
            structs={
                name: tuple(Field(field[0], int(field[1]), field[2]) for field in struct["fields"])
                for name, struct in source["structs"].items()
            },
            sizes={name: int(struct["size"]) for name, struct in source["structs"].items()},
            enums={
                name: {variant: int(value) for variant, value in variants.items()}
                for name, variants in source["enums"].items()
            },
        )
        for name in layout.structs:
            _check_gapless(layout, name)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise _mismatch("the shape of layout.json", f"{type(error).__name__}: {error}") from error
    return layout


def _check_gapless(layout: ProgramLayout, struct: str) -> None:
    offset = 0
    for field in layout.structs[struct]:
        if field.offset != offset:
            raise _mismatch(f"{struct}.{field.name} at offset {offset}", field.offset)
        offset += layout.format(field.form).itemsize
    if offset != layout.sizes[struct]:
        raise _mismatch(f"{struct} of {layout.sizes[struct]} bytes", f"fields of {offset}")


def _mismatch(expected: str, found: object) -> ArtifactError:
    return ArtifactError(artifacts.LAYOUT, expected, found, "rebuild it with `make program`")
