"""The simulation of attacks: it repeats itself, its page shows its formulas, nobody profits."""

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
MARKS = ("simulation", "caught", "forged")


def played(*arguments):
    command = [sys.executable, SCRIPT, "--rounds", "12", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows(text, mark):
    """The lines of a table of the page, without its head."""
    _, _, rest = text.partition(f"<!-- {mark} -->\n")
    return [cells(line) for line in rest.partition("<!-- end")[0].strip().splitlines()[2:]]


@pytest.fixture(scope="module")
def published():
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.long(reason="the simulated attacks of docs/simulation.md, twice")
def test_the_same_seed_gives_the_same_table_and_the_page_has_its_columns(tmp_path, published):
    """Cartels of 10 to 50 % judge and are judged. Threat T08."""
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {m} -->\nold\n<!-- end of {m} -->\n" for m in MARKS))
    first = played("--seed", "7", "--out", str(page))
    assert played("--seed", "7") == first
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    made, shown = rows(text, "simulation"), rows(published, "simulation")
    assert len(made) == NUM_ROWS
    assert [row[:2] for row in made] == [row[:2] for row in shown]
    assert rows(text, "forged") == rows(published, "forged")
    caught = [row[:2] for row in rows(text, "caught")]
    assert caught == [row[:2] for row in rows(published, "caught")]


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
    """A change of a rule that pays a cartel shows here. Threat T08."""
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
