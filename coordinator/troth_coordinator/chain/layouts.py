"""Account layouts, made from the constants that the program itself exported.

Owns: reading layout.json, checking that each struct is described without a gap, choosing fields
of a struct to be read.
Never: knows what a field means; a field that the views do not name is skipped by offset.
Next: records.py for how fields are read; accounts.py, which makes the frozen views of the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from solders.pubkey import Pubkey

from troth_coordinator import artifacts
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.records import Record, form_of


@dataclass(frozen=True, slots=True)
class AccountKind:
    """The marks of an account of one kind: its first 8 bytes, and its size with them."""

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

    def record(self, struct: str, names: Sequence[str]) -> Record:
        """Return what reads just these fields of a struct, in this order.

        Raises ArtifactError for a field that the struct does not have.
        """
        chosen = [self.field(struct, name) for name in names]
        strings = self.strings
        forms = [(field.offset, form_of(field.form, strings)) for field in chosen]
        return Record(forms, self.sizes[struct])

    def field(self, struct: str, name: str) -> Field:
        """Return one field; ArtifactError if the struct does not have it."""
        for field in self.structs[struct]:
            if field.name == name:
                return field
        raise _mismatch(f"{struct} with the field {name}", "none by that name")

    @property
    def strings(self) -> dict[str, list[str]]:
        """The dtype strings of each struct's fields."""
        return {name: [field.form for field in fields] for name, fields in self.structs.items()}


@cache
def program_layout(program: Pubkey | None = None) -> ProgramLayout:
    """Return the packaged layout, as it holds for the program at another address if one is named.

    It is read and checked once per process.
    """
    if program is not None:
        return replace(program_layout(), program_id=program)
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
        _check_gapless(layout)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise _mismatch("the shape of layout.json", f"{type(error).__name__}: {error}") from error
    return layout


def _check_gapless(layout: ProgramLayout) -> None:
    strings = layout.strings
    for struct, fields in layout.structs.items():
        offset = 0
        for field in fields:
            if field.offset != offset:
                raise _mismatch(f"{struct}.{field.name} at offset {offset}", field.offset)
            offset += form_of(field.form, strings).size
        if offset != layout.sizes[struct]:
            raise _mismatch(f"{struct} of {layout.sizes[struct]} bytes", f"fields of {offset}")


def _mismatch(expected: str, found: object) -> ArtifactError:
    return ArtifactError(artifacts.LAYOUT, expected, found, "rebuild it with `make program`")
