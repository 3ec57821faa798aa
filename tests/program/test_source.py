"""Checks of the program's sources and exports that the compiler cannot make."""

import json
import re
from pathlib import Path

from support.program import idl

SOURCES = Path(__file__).parents[2] / "programs/coordinator/src"
PUBLIC = re.compile(r"^\s*pub (?:const |static )?(?:fn|struct|enum|mod|const|trait) (\w+)")
INSIDE_ATTRIBUTE = ("#[", ")", "]", "mut,", "dup,", "has_one", "constraint", "address")
FIELD = re.compile(r"^    pub (\w+): ")
WRITES_STATUS = re.compile(r"\.status\s*=(?!=)|&mut [\w.]+\.status\b|\bstatus: Status::")


def undocumented(path: Path) -> list[str]:
    """Public items and fields that no doc comment precedes."""
    found = []
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        item = PUBLIC.match(line) or FIELD.match(line)
        if item is None or re.match(r"^\s*pub mod \w+;$", line):
            continue
        above = number - 1
        while lines[above].lstrip().startswith(INSIDE_ATTRIBUTE):
            above -= 1
        if not lines[above].lstrip().startswith(("///", "//!")):
            found.append(f"{path.name}:{number + 1} {item[1]}")
    return found


def test_instructions_are_documented_where_the_lint_is_off():
    paths = [*(SOURCES / "instructions").glob("*.rs"), SOURCES / "lib.rs"]
    assert len(paths) > 25
    assert [problem for path in paths for problem in undocumented(path)] == []


def test_every_instruction_and_argument_list_reaches_the_idl():
    names = re.findall(r"    pub fn (\w+)", (SOURCES / "lib.rs").read_text())
    assert sorted(names) == sorted(idl.INSTRUCTIONS)


def without_tests(path: Path) -> str:
    """The source up to its unit tests, which may put an entry into any state."""
    if path.name == "tests.rs":
        return ""
    return path.read_text().split("#[cfg(test)]\nmod tests {")[0]


def test_one_file_changes_the_status_of_a_participant():
    paths = sorted(SOURCES.rglob("*.rs"))
    writes = [path for path in paths if WRITES_STATUS.search(without_tests(path))]
    assert writes == [SOURCES / "state/status.rs"]
    function = (SOURCES / "state/status.rs").read_text().split("pub fn change(")[1]
    assert len(WRITES_STATUS.findall(without_tests(SOURCES / "state/status.rs"))) == 1
    assert WRITES_STATUS.search(function.split("\n    }\n")[0])


def test_event_kinds_are_unique_and_all_exported():
    kinds = {}
    for path in (SOURCES / "events").glob("*.rs"):
        text = path.read_text()
        for name, kind in re.findall(r"Absorbed for (\w+) \{\s+const KIND: u8 = (\d+)", text):
            kinds[name] = int(kind)
    assert len(set(kinds.values())) == len(kinds) > 35
    assert kinds == idl.LAYOUT["enums"]["event_kind"]
    plain = {event["name"] for event in idl.IDL["events"]} - set(kinds)
    assert plain == {"PayloadCommitted", "Attested", "RoundClosed"}


def test_error_codes_of_layout_and_idl_agree():
    named = {str(error["code"]): error["name"] for error in idl.IDL["errors"]}
    assert named == idl.LAYOUT["errors"]
    assert all(error["msg"] for error in idl.IDL["errors"])


def test_structs_have_no_gaps_and_fit_the_limits():
    for name in idl.LAYOUT["structs"]:
        kind = idl.dtype(name)
        offsets = [kind.fields[field][1] for field in kind.names]
        sizes = [kind.fields[field][0].itemsize for field in kind.names]
        ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
        assert offsets == [0, *ends[:-1]] and ends[-1] == kind.itemsize, name
    assert idl.LAYOUT["accounts"]["Round"]["size"] <= 10_240
    assert json.loads((idl.ARTIFACTS / "build-info.json").read_text())["files"]
