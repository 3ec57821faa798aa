"""Writes the record of a run's chain parameters from the packaged layout and IDL.

python scripts/gen/params_view.py           write it
python scripts/gen/params_view.py --check   exit 1 if the committed file differs

A new parameter of the program appears here by itself. Python states its bounds and defaults once,
in rules/params.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troth_coordinator import artifacts
from troth_coordinator.chain.borsh import RESERVED
from troth_coordinator.chain.layouts import program_layout

FOLDER = Path(__file__).parents[2] / "coordinator/troth_coordinator/rules"
NAME = "params_view.py"
STRUCT = "Params"
MAX_COLUMNS = 100

LAMPORTS = "Lamports"
KINDS = {
    **dict.fromkeys(
        ("reward_per_payload", "absence_fee", "witness_fee", "recompute_cost"), LAMPORTS
    ),
    "join_until_round": "RoundIndex",
    "admission": "Admission",
}
"""Annotations that a name does not tell; `_lamports` are Lamports, everything else is an int."""

MODULE = '''"""The chain parameters of a run, as the `Run` account holds them.

Generated: run scripts/gen/params_view.py instead of editing.

Owns: one frozen record with the program's field names, and the enum that is stored in it.
Never: checks a value; params.py does. Reserved bytes are left out.
Next: params.py for bounds and defaults; view.py for the accounts.
"""

from dataclasses import dataclass
from enum import IntEnum

from troth_coordinator.rules.ids import Lamports, RoundIndex


class Admission(IntEnum):
    """The rule by which participants are let into a run."""

{members}


@dataclass(frozen=True, slots=True)
class ParamsView:
    """The chain parameters of a run, in the order of the program's `Params`."""

{fields}
'''


def generate() -> dict[str, str]:
    """Return the file name and the text."""
    idl: Mapping[str, Any] = artifacts.read_json(artifacts.IDL)
    layout = program_layout()
    types = {entry["name"]: entry["type"] for entry in idl["types"]}
    docs = {field["name"]: " ".join(field["docs"]) for field in types[STRUCT]["fields"]}
    names = [field.name for field in layout.structs[STRUCT] if field.name != RESERVED]
    members = [f"    {name.upper()} = {value}" for name, value in layout.enums["admission"].items()]
    fields = [line for name in names for line in field_lines(name, docs[name])]
    return {NAME: MODULE.format(members="\n".join(members), fields="\n".join(fields))}


def field_lines(name: str, text: str) -> list[str]:
    """Return a field and what the program says of it."""
    kind = KINDS.get(name) or (LAMPORTS if name.endswith("_lamports") else "int")
    whole = f'    """{text}"""'
    if len(whole) > MAX_COLUMNS:
        raise SystemExit(f"{name}: the program's sentence is too long for one line")
    return [f"    {name}: {kind}", whole]


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    path, text = FOLDER / NAME, generate()[NAME]
    if path.exists() and path.read_text() == text:
        return 0
    if arguments.check:
        print(f"{NAME} differs from the layout: run scripts/gen/params_view.py")
        return 1
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
