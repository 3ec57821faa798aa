"""The simulation of attacks: it repeats itself, and its page shows what it prints."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
SCRIPT = REPOSITORY / "scripts/simulate_attacks.py"


def played(*arguments):
    command = [sys.executable, SCRIPT, "--rounds", "40", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def formulas(line):
    """The fixed cells of a row: they depend on no seed and no number of rounds."""
    found = cells(line)
    return [found[column] for column in (0, 1, 2, 4, 7)]


def test_the_same_seed_gives_the_same_table_and_the_page_has_its_columns(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- simulation -->\nold\n<!-- end of simulation -->\nafter\n", encoding="utf-8"
    )
    first = played("--seed", "7", "--out", str(page))
    assert played("--seed", "7") == first
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- simulation -->\n| adversaries |")
    assert text.endswith("|\n<!-- end of simulation -->\nafter\n")
    assert "old" not in text
    published = (REPOSITORY / "docs/results.md").read_text(encoding="utf-8").splitlines()
    lines = first.splitlines()
    assert lines[0] == "seed 7, 40 rounds a row"
    table = published[published.index(lines[1]) :][: len(lines) - 1]
    assert len(lines) == 13
    assert [formulas(line) for line in table] == [formulas(line) for line in lines[1:]]

    few = cells(lines[3])
    assert few[0] == "10%"
    assert 0.05 < float(few[3]) < 0.14
    assert few[8] == "0.000%", "a tenth of the people cannot convict an honest one"
    many = cells(lines[7])
    assert float(many[3]) < float(few[3]) / 2
