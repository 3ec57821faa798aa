"""Writes the event records of the chain package from the packaged IDL and layout.

python scripts/gen/event_types.py           write them
python scripts/gen/event_types.py --check   exit 1 if a committed file differs
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from troth_coordinator import artifacts
from troth_coordinator.chain.layouts import program_layout

FOLDER = Path(__file__).parents[2] / "coordinator/troth_coordinator/chain"
IN_BASE = ("run", "sequence", "slot")
INTEGERS = {f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64, 128)}
MAX_COLUMNS = 100
MAX_ITEMS = 8
"""Longer arrays are annotated as tuples of any length: the decoder knows the IDL's length."""
FIRST_KINDS = {"life": 0, "rounds": 32, "audits": 64}
"""Modules by the first kind of event in them; the plain ones, without a kind, are of rounds."""
TITLES = {
    "life": "Events of runs and participants.",
    "rounds": "Events of rounds and seeds.",
    "audits": "Events of audits and cases.",
}

NOTE = "Generated: run scripts/gen/event_types.py instead of editing."

MODULE = '''"""{title} {note}

Owns: one frozen record per event of the program, as its IDL describes it.
Never: decodes (event_base.py) or finds events in logs (events.py).
Next: event_types.py for the table by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

{imports}


{classes}
'''

TABLE = '''"""The program's events by name. {note}

Owns: the table that events.py looks names up in.
Never: describes an event: the three modules that it names do.
Next: docs/reference/events.md for the same as a page.
"""

from __future__ import annotations

from typing import Final

from troth_coordinator.chain import event_types_audits as audits
from troth_coordinator.chain import event_types_life as life
from troth_coordinator.chain import event_types_rounds as rounds
from troth_coordinator.chain.event_base import Event

__all__ = ["EVENT_TYPES", "Event"]

EVENT_TYPES: Final[dict[str, type[Event]]] = {{
{rows}
}}
'''


def generate() -> dict[str, str]:
    """Return file names and texts."""
    idl: Mapping[str, Any] = artifacts.read_json(artifacts.IDL)
    kinds = program_layout().enums["event_kind"]
    types = {entry["name"]: entry for entry in idl["types"]}
    names = [entry["name"] for entry in idl["events"]]
    names.sort(key=lambda name: (kinds.get(name, 255), name))
    homes = {name: home_of(kinds.get(name)) for name in names}
    rows = [
        f'    "{name}": {homes[name]}.{name},'
        for home in TITLES
        for name in names
        if homes[name] == home
    ]
    files = {"event_types.py": TABLE.format(note=NOTE, rows="\n".join(rows))}
    for home, title in TITLES.items():
        members = [name for name in names if homes[name] == home]
        files[f"event_types_{home}.py"] = module(title, members, types, kinds)
    return files


def home_of(kind: int | None) -> str:
    """Return the module that an event belongs to."""
    if kind is None:
        return "rounds"
    return max(
        (home for home in FIRST_KINDS if FIRST_KINDS[home] <= kind), key=FIRST_KINDS.__getitem__
    )


def module(
    title: str, names: Sequence[str], types: Mapping[str, Any], kinds: Mapping[str, int]
) -> str:
    """Return the text of one module of records."""
    classes = "\n\n\n".join(event_class(types[name], kinds.get(name)) for name in names)
    imports = ["from troth_coordinator.chain.event_base import Event"]
    if ": Pubkey" in classes:
        imports = ["from solders.pubkey import Pubkey", "", *imports]
    if ": ParamsView" in classes:
        imports.append("from troth_coordinator.rules.params_view import ParamsView")
    return MODULE.format(title=title, note=NOTE, imports="\n".join(imports), classes=classes)


def event_class(entry: Mapping[str, Any], kind: int | None) -> str:
    """Return the class of one event."""
    lines = [
        "@dataclass(frozen=True, slots=True, kw_only=True)",
        f"class {entry['name']}(Event):",
        *docstring(" ".join(entry.get("docs", [])) or f"{entry['name']}."),
        "",
        f"    kind: ClassVar[int | None] = {kind}",
    ]
    fields = [field for field in entry["type"]["fields"] if field["name"] not in IN_BASE]
    lines += [""] if fields else []
    lines += [f"    {field['name']}: {annotation(field['type'])}" for field in fields]
    return "\n".join(lines)


def docstring(text: str) -> list[str]:
    """Return the docstring's lines; a sentence too long for one is cut at its first pause."""
    whole = f'    """{text}"""'
    if len(whole) <= MAX_COLUMNS:
        return [whole]
    summary, rest = re.split(r": |; |, and ", text, maxsplit=1)
    return [f'    """{summary}.', "", f"    {rest[:1].upper()}{rest[1:]}", '    """']


def annotation(kind: str | Mapping[str, Any]) -> str:
    """Return the Python annotation of an IDL type."""
    if isinstance(kind, str):
        simple = {"pubkey": "Pubkey", "bool": "bool", "string": "str", "bytes": "bytes"}
        return "int" if kind in INTEGERS else simple[kind]
    ((form, inner),) = kind.items()
    if form == "array" and inner[0] == "u8":
        return "bytes"
    if form == "array":
        return array(annotation(inner[0]), inner[1])
    if form == "vec":
        return "bytes" if inner == "u8" else f"tuple[{annotation(inner)}, ...]"
    if form == "option":
        return f"{annotation(inner)} | None"
    if inner["name"] != "Params":
        raise SystemExit(f"event field of type {inner['name']}: teach scripts/gen/event_types.py")
    return "ParamsView"


def array(item: str, length: int) -> str:
    """Return the annotation of a fixed array; a long one is a tuple of any length."""
    whole = f"tuple[{', '.join([item] * length)}]"
    return whole if length <= MAX_ITEMS else f"tuple[{item}, ...]"


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    differing = [
        name
        for name, text in generate().items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]
    for name in differing:
        if arguments.check:
            print(f"{name} differs from the IDL: run scripts/gen/event_types.py")
        else:
            (FOLDER / name).write_text(generate()[name])
    return 1 if arguments.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
