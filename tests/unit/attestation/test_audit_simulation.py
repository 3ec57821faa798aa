"""The simulation of attacks: it repeats itself, its page shows what it plays, nobody profits.

Tests of the page alone say what it must show. The nightly one plays it again with today's rules.
"""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs/simulation.md"
SCRIPT = REPOSITORY / "scripts/simulate_attacks.py"
NUM_ROWS = 7 * 5
THIRD = 21
CONVICTION = 50 + 100 + 1
"""Half of a stake, what has not vested and the reward of the round, in rewards."""
UNPLAYED = {"simulation": (0, 1), "caught": (0, 1, 3), "forged": (0, 1, 2)}
"""The tables of the page, and their columns that hold whatever is played."""


def played(rounds, *arguments):
    command = [sys.executable, SCRIPT, "--rounds", str(rounds), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows(text, mark):
    """The lines of a table of the page, without its head."""
    _, _, rest = text.partition(f"<!-- {mark} -->\n")
    return [cells(line) for line in rest.partition("<!-- end")[0].strip().splitlines()[2:]]


def unplayed(text, mark):
    """The same lines, without the cells that depend on play."""
    return [[line[column] for column in UNPLAYED[mark]] for line in rows(text, mark)]


@pytest.fixture(scope="module")
def published():
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture
def page(tmp_path):
    """A page with the marks and without a table."""
    marks = (f"<!-- {mark} -->\nold\n<!-- end of {mark} -->\n" for mark in UNPLAYED)
    (tmp_path / "page.md").write_text("".join(marks), encoding="utf-8")
    return tmp_path / "page.md"


@pytest.mark.long(reason="the simulated attacks of docs/simulation.md, twice")
def test_the_same_seed_gives_the_same_table_and_the_page_has_its_columns(page, published):
    """Cartels of 10 to 50 % judge and are judged. Threat T08."""
    first = played(12, "--seed", "7", "--out", str(page))
    assert played(12, "--seed", "7") == first
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert len(rows(text, "simulation")) == NUM_ROWS
    for mark in UNPLAYED:
        assert unplayed(text, mark) == unplayed(published, mark)


@pytest.mark.nightly(reason="the page's 1 000 rounds of 35 cartels are minutes of one core")
def test_the_page_is_what_its_rounds_play(page, published):
    """A rule was changed, and the page still shows what the old one paid a cartel. Threat T08."""
    played(1_000, "--out", str(page))
    text = page.read_text(encoding="utf-8")
    for mark in UNPLAYED:
        assert rows(text, mark) == rows(published, mark)


def test_formulas_and_play_agree_on_the_page(published):
    """But for noise, some rewards in 10 000 rounds, and for single convictions, which are rare."""
    for row in rows(published, "simulation"):
        loss, seen, convicted, seen_convicted = map(float, row[2:6])
        rest, seen_rest = loss - CONVICTION * convicted, seen - CONVICTION * seen_convicted
        assert abs(rest - seen_rest) < 25 + 0.4 * abs(seen_rest), row
        assert abs(convicted - seen_convicted) < 1 + 0.25 * seen_convicted, row
        cartel, seen_cartel = map(float, row[8:])
        assert abs(cartel - seen_cartel) < 700 + 0.4 * abs(seen_cartel), row


def test_below_a_third_no_cartel_profits_and_a_tenth_takes_nothing_to_speak_of(published):
    """The page must show this whenever somebody plays it again. Threat T08."""
    for name, bad, _, lost, _, convicted, *_, cartel, seen_cartel in rows(published, "simulation"):
        if int(bad) <= THIRD:
            assert float(cartel) >= 0, f"{name} at {bad} of 64 profits by the formula"
            assert float(seen_cartel) >= 0, f"{name} at {bad} of 64 profits in play"
        if int(bad) <= 6:
            assert float(lost) < 30, f"{name}: 0.3 % of the earnings"
            assert float(convicted) == 0, name


def test_skipping_costs_more_than_it_saves_below_a_third(published):
    for bad, formula, seen, _, loss in rows(published, "caught"):
        assert float(seen) > float(formula) * 0.8, bad
        if int(bad) <= THIRD:
            assert float(loss.rstrip(" R")) > 0.8, bad
