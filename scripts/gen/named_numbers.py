"""The numbers that a byte of an account may hold, with their names and meanings.

Owns: a table for each enum and each set of flags that the program exports, and links to them.
Never: knows a number or a meaning: the layout has the numbers, the Rust sources the meanings.
Next: `reference.py`, which puts the tables on the page of accounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

SOURCES: Final = Path(__file__).parents[2] / "programs/coordinator/src"
CONSTANTS: Final = SOURCES / "constants.rs"
HEADING: Final = "Numbers and flags"
_VALUE: Final = r"((?: *///[^\n]*\n)+) *{name}(?:: u\d+)? = ([\d_]+)[;,]"


class Numbers(NamedTuple):
    """One enum or set of flags: its heading, how fields name it, where its meanings are."""

    heading: str
    named: str
    source: Path
    prefix: str = ""

    @property
    def anchor(self) -> str:
        """The name of the heading in links."""
        return self.heading.lower().replace(" ", "-")


NUMBERS: Final[Mapping[str, Numbers]] = {
    "phase": Numbers("Phase", "Phase", SOURCES / "state/phase.rs"),
    "status": Numbers("Status", "Status", SOURCES / "state/status.rs"),
    "seed_status": Numbers("SeedStatus", "SeedStatus", SOURCES / "state/phase.rs"),
    "audit_kind": Numbers("AuditKind", "AuditKind", SOURCES / "state/audit.rs"),
    "audit_stage": Numbers("Stage", "Stage", SOURCES / "state/audit.rs"),
    "role": Numbers("Roles", "ROLE_*", CONSTANTS, "ROLE_"),
    "admission": Numbers("Admission", "ADMISSION_*", CONSTANTS, "ADMISSION_"),
    "run_flag": Numbers("Flags of a run", "RUN_*", CONSTANTS, "RUN_"),
    "entry_flag": Numbers("Flags of an entry", "ENTRY_*", CONSTANTS, "ENTRY_"),
    "round_flag": Numbers("Flags of a round", "ROUND_*", CONSTANTS, "ROUND_"),
    "audit_flag": Numbers("Flags of an audit", "AUDIT_*", CONSTANTS, "AUDIT_"),
    "seat_flag": Numbers("Flags of a seat", "SEAT_*", CONSTANTS, "SEAT_"),
}
ELSEWHERE: Final = {"event_kind"}
"""Exported numbers that have a page of their own."""


def sections(enums: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield headings and rows: number, name, meaning.

    Raises SystemExit for numbers without a place here, or without a meaning in the sources.
    """
    unknown = enums.keys() ^ NUMBERS.keys() ^ ELSEWHERE
    if unknown:
        raise SystemExit(f"expected the enums of NUMBERS in the layout; differing: {unknown}")
    for key, numbers in NUMBERS.items():
        rows = [
            (str(value), f"`{name}`", meaning(numbers, name, value))
            for name, value in enums[key].items()
        ]
        yield numbers.heading, rows


def meaning(numbers: Numbers, name: str, value: int) -> str:
    """Return what the doc comment of a constant or a variant says behind its label.

    Raises SystemExit where the source has none, or another number.
    """
    rust = f"pub const {numbers.prefix}{name.upper()}" if numbers.prefix else name
    found = re.search(_VALUE.format(name=rust), numbers.source.read_text(encoding="utf-8"))
    if found is None or int(found[2].replace("_", "")) != value:
        raise SystemExit(f"expected {rust} = {value} with a comment in {numbers.source.name}")
    text = " ".join(line.strip(" /") for line in found[1].splitlines())
    if not numbers.prefix:
        return text
    _, _, behind = text.partition(": ")
    return behind[:1].upper() + behind[1:]


def linked(text: str, page: str = "") -> str:
    """Return a field's meaning, where each set of numbers is a link to its table on a page."""
    for numbers in NUMBERS.values():
        name = f"`{numbers.named}`"
        text = text.replace(name, f"[{name}]({page}#{numbers.anchor})")
    return text
