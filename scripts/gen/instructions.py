"""Writes the instruction builders of the chain package from the packaged IDL.

python scripts/gen/instructions.py           write them
python scripts/gen/instructions.py --check   exit 1 if a committed file differs

Every instruction becomes one function. Its parameters are, in this order: the run's addresses,
the keys of people, an audit as read from the chain, the program's arguments, and what else an
address derives from. The tables of instruction_accounts.py say how an account's address is found.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from instruction_accounts import (
    AUTOMATIC,
    MORE_ACCOUNTS,
    NOTES,
    RECORDS,
    TOPICS,
    Parameter,
    account_source,
)

from troth_coordinator import artifacts

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "coordinator/troth_coordinator/chain/builders"
Entry = Mapping[str, Any]

MODULE = '''"""{title}

Generated: run scripts/gen/instructions.py instead of editing.

Owns: one function per instruction: its arguments, and where its accounts come from.
Never: signs or sends, and checks nothing that the program checks.
Next: ../{face}.py, which callers import; ../building.py for what `build` adds.

`at` names the run. A key that must sign has the name of its role: authority, owner, session, payer.
"""

from __future__ import annotations

{imports}


{functions}
'''


def generate() -> dict[str, str]:
    """Return file names and texts."""
    idl: Entry = artifacts.read_json(artifacts.IDL)
    entries = {entry["name"]: entry for entry in idl["instructions"]}
    listed = [name for topic in TOPICS.values() for name in topic.instructions]
    if sorted(listed) != sorted(entries):
        odd = sorted(set(listed) ^ set(entries))
        raise SystemExit(
            f"{', '.join(odd)}: not both in the IDL and in instruction_accounts.TOPICS"
        )
    return {
        f"{name}.py": formatted(
            module(topic.title, topic.face, [entries[one] for one in topic.instructions])
        )
        for name, topic in TOPICS.items()
    }


def module(title: str, face: str, entries: Sequence[Entry]) -> str:
    """Return the text of one module."""
    functions = "\n\n\n".join(function(entry) for entry in entries)
    return MODULE.format(title=title, face=face, imports=imports(functions), functions=functions)


def imports(functions: str) -> str:
    """Return the import lines that the functions need."""
    wanted = {
        "troth_coordinator.chain.addresses": ("RunAddresses",),
        "troth_coordinator.chain.building": (
            *("build", "challenger_of", "payer_of", "rewarded_challenger_of"),
            *("with_accounts", "with_participants"),
        ),
        "troth_coordinator.chain.terms": tuple(sorted({each.kind for each in RECORDS.values()})),
        "troth_coordinator.rules.audit_view": ("AuditView",),
        "troth_coordinator.rules.params_view": ("ParamsView",),
    }
    lines = ["from collections.abc import Sequence", ""] if "Sequence[" in functions else []
    lines += [
        "from solders.instruction import Instruction",
        "from solders.pubkey import Pubkey",
        "",
    ]
    for source, names in wanted.items():
        used = [name for name in names if is_used(name, functions)]
        if used:
            lines.append(f"from {source} import {', '.join(used)}")
    return "\n".join(lines)


def is_used(name: str, text: str) -> bool:
    """Tell whether a whole word occurs in a text."""
    padded = "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text)
    return f" {name} " in padded


def function(entry: Entry) -> str:
    """Return one instruction's function."""
    name = str(entry["name"])
    parameters, keys = accounts(entry)
    taken, values = arguments(entry)
    parameters += taken
    for more in MORE_ACCOUNTS.get(name, ()):
        parameters.append(more.parameter)
    unique = {one.name: one for one in sorted(parameters, key=lambda one: one.rank)}
    signature = ", ".join(["at: RunAddresses", *(one.declaration for one in unique.values())])
    given = ", ".join(f'"{key}": {value}' for key, value in values.items())
    passed = "".join(f", {key}={value}" for key, value in keys.items())
    built = f'build(at, "{name}", {{{given}}}{passed})'
    for more in MORE_ACCOUNTS.get(name, ()):
        built = more.expression.format(built=built)
    head = f"def {name}({signature}) -> Instruction:"
    return "\n".join([head, *docstring(entry, list(unique.values())), f"    return {built}"])


def accounts(entry: Entry) -> tuple[list[Parameter], dict[str, str]]:
    """Return the parameters that the account list asks for, and the address of each account."""
    parameters: list[Parameter] = []
    keys: dict[str, str] = {}
    for account in entry["accounts"]:
        if account["name"] in AUTOMATIC or "address" in account:
            continue
        source = account_source(entry, account["name"])
        parameters += source.parameters
        keys[account["name"]] = source.expression
    return parameters, keys


def arguments(entry: Entry) -> tuple[list[Parameter], dict[str, str]]:
    """Return the parameters that the arguments ask for, and the value of each argument."""
    record = RECORDS.get(entry["name"])
    parameters: list[Parameter] = []
    values: dict[str, str] = {}
    for argument in entry["args"]:
        name = str(argument["name"])
        if record is not None and name in record.values:
            values[name] = record.values[name]
            continue
        parameters.append(Parameter.of_argument(name, argument["type"]))
        values[name] = parameters[-1].name
    if record is not None:
        parameters.append(Parameter(record.name, record.kind))
    return parameters, values


def docstring(entry: Entry, parameters: Sequence[Parameter]) -> list[str]:
    """Return the docstring: the program's sentence, then what the parameters mean."""
    described = {one["name"]: " ".join(one.get("docs", ())) for one in entry["accounts"]}
    notes = []
    for one in parameters:
        people = described.get(one.name, "") if one.is_person else ""
        note = NOTES.get((entry["name"], one.name)) or one.note or people
        if note:
            notes.append(f"{one.name}: {note[:1].lower()}{note[1:]}")
    summary = " ".join(entry["docs"])
    if not notes:
        return [f'    """{summary}"""']
    return [f'    """{summary}', "", *(f"    {note}" for note in notes), '    """']


def formatted(source: str) -> str:
    """Return the source in house style, with its imports in order."""
    place = str(ROOT / "coordinator/troth_coordinator/chain/builders/generated.py")
    for command in (("check", "--select", "I", "--fix"), ("format",)):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", place, "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    made = generate()
    differing = [
        name
        for name, text in made.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]
    for name in differing:
        if arguments.check:
            print(f"{name} differs from the IDL: run scripts/gen/instructions.py")
        else:
            (FOLDER / name).write_text(made[name])
    return 1 if arguments.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
