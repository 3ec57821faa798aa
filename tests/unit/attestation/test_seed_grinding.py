"""Seeds that a leader picks: drawn with the real functions, beside the formulas."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
SCRIPT = REPOSITORY / "scripts/grind_seeds.py"
NUM_SEEDS = 400


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def share(cell):
    return float(cell.rstrip("%")) / 100


def test_the_draws_agree_with_the_formulas_and_the_page_shows_them(tmp_path):
    """It leads the slot that a seed is named after, and tries block after block.

    The page says how many it must try. If a draw changes, these numbers change. Threat T28.
    """
    page = tmp_path / "page.md"
    page.write_text("<!-- seeds -->\nold\n<!-- end of seeds -->\n", encoding="utf-8")
    command = [sys.executable, SCRIPT, "--seeds", str(NUM_SEEDS), "--seed", "3", "--out", page]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert page.read_text(encoding="utf-8").splitlines()[1:-1] == lines[1:]
    published = (REPOSITORY / "docs/threat-model.md").read_text(encoding="utf-8").splitlines()
    table = published[published.index(lines[1]) :][: len(lines) - 1]
    assert len(lines) == 3 + 3 * 6
    for ours, theirs in zip(lines[3:], table[2:], strict=True):
        wish, colluders, formula, drawn, tries = cells(ours)
        assert cells(theirs)[:3] == [wish, colluders, formula]
        assert cells(theirs)[4] == tries
        spread = (share(formula) * (1 - share(formula)) / NUM_SEEDS) ** 0.5
        assert abs(share(drawn) - share(formula)) < 4 * spread + 1 / NUM_SEEDS, ours
        spread = (share(formula) * (1 - share(formula)) / 5_000) ** 0.5
        assert abs(share(cells(theirs)[3]) - share(formula)) < 4 * spread + 1e-4, theirs
