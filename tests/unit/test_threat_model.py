"""The check that keeps docs/threat-model.md and the tests together finds every way to part."""

from pathlib import Path

import pytest
from support.scripts import script

ROOT = Path(__file__).parents[2]
STORY = '''
def test_a_thief_is_caught():
    """A thief. Threat T01."""
'''
GOOD = "adversarial/test_thief.py::test_a_thief_is_caught"


check = script("check_threat_model.py")


def row(cell, name="T01"):
    return f"| {name} | steals | a lock | prison | none | {cell} |\n"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests/adversarial").mkdir(parents=True)
    (tmp_path / "tests/adversarial/test_thief.py").write_text(STORY)

    def write(*rows, story=STORY):
        (tmp_path / "tests/adversarial/test_thief.py").write_text(story)
        head = "| id | attack | defence | penalty | residual | test |\n|---|---|---|---|---|---|\n"
        (tmp_path / "docs/threat-model.md").write_text(head + "".join(rows))
        return tmp_path

    return write


def test_this_repository_agrees_with_itself():
    assert list(check.problems(ROOT)) == []


def test_rows_and_tests_that_name_each_other_are_fine(place):
    rows = (row(GOOD), row("planned", "T02"), row("not simulated: needs a court", "T03"))
    assert list(check.problems(place(*rows))) == []


@pytest.mark.parametrize(
    ("cells", "story", "said"),
    [
        (["planned"], STORY, "T01 lacks adversarial/test_thief.py"),
        ([GOOD, ""], STORY, "T02 has neither a test, a reason nor"),
        ([GOOD, "not simulated:"], STORY, "T02 has neither"),
        ([GOOD, "somewhere"], STORY, "T02 has neither"),
        ([GOOD, "unit/test_no.py::test_x"], STORY, "T02 names unit/test_no.py::test_x, which"),
        ([GOOD + "s"], STORY, "test_a_thief_is_caughts, which does not exist"),
        ([GOOD, GOOD], STORY, "T02 names adversarial/test_thief.py"),
        ([GOOD], STORY.replace(" Threat T01.", ""), "names no row"),
        ([GOOD], STORY.replace("T01", "T01, T09"), "there is no row T09"),
        ([GOOD, "planned | more"], STORY, "not a row of six cells: | T02"),
    ],
)
def test_each_way_to_part_is_named(place, cells, story, said):
    rows = [row(cell, f"T{number:02d}") for number, cell in enumerate(cells, 1)]
    found = list(check.problems(place(*rows, story=story)))
    assert any(said in line for line in found), found


def test_a_row_twice_is_named(place):
    assert "docs/threat-model.md: T01 has two rows" in check.problems(place(row(GOOD), row(GOOD)))


def test_a_row_that_the_page_only_speaks_of_is_named(place):
    root = place(row(GOOD), "See T77 for more.\n")
    assert list(check.problems(root)) == ["docs/threat-model.md: speaks of T77, which has no row"]


def test_a_docstring_of_a_module_speaks_for_its_tests(place):
    story = '"""Thieves. Threat T02."""\n\ndef test_a():\n    pass\n' + STORY
    rows = (row(GOOD), row("adversarial/test_thief.py::test_a", "T02"))
    assert list(check.problems(place(*rows, story=story))) == []


def test_writing_enters_what_is_missing_and_ends_the_plan(place):
    story = STORY.replace("T01", "T01, T02")
    root = place(row("unit/test_lock.py::test_it; planned"), row(GOOD, "T02"), story=story)
    (root / "tests/unit").mkdir()
    (root / "tests/unit/test_lock.py").write_text("async def test_it():\n    pass\n")
    check.write(root)
    assert list(check.problems(root)) == []
    text = (root / "docs/threat-model.md").read_text()
    assert row(f"unit/test_lock.py::test_it, {GOOD}") in text
    assert row(GOOD, "T02") in text
