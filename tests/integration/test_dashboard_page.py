"""The dashboard's page in a real browser, given states that a stranger or a long run may cause.

Threat T123. The states are made by hand: a whole run is shown in test_dashboard.py.
"""

import asyncio
import contextlib
from dataclasses import dataclass, replace

import pytest
from support.browser import CHROMIUM, visiting
from support.observations import observation, round_seen

from troth_audit.cases import CaseFile, Money
from troth_cli.dashboard.server import DashboardServer

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs Debian's chromium")

MARKUP = (
    '"><img src=x onerror="window.hit = 1"><script>window.hit = 1</script>\'\u202e\x1b[2J\u0000'
)
MARKUP_STAKES = [{"round": 1, "stakes": [[0, 10**18], [1, 0]]}]
NUM_UPDATES, ROUNDS_EACH = 60, 2_500


class Told:
    """A feed that tells the given states, then stays silent."""

    def __init__(self, *states):
        self.states = states

    async def follow(self):
        for state in self.states:
            yield state
        await asyncio.Event().wait()


def state_of(seen, **changes):
    return {**seen.to_json(), "cluster": "x", "stakes": [], "told": "", **changes}


def spoilt(value):
    """The same value with markup in the place of each text."""
    match value:
        case str():
            return MARKUP
        case dict():
            return {key: spoilt(inner) for key, inner in value.items()}
        case list():
            return [spoilt(inner) for inner in value]
    return value


@contextlib.asynccontextmanager
async def shown(*states):
    server = DashboardServer(Told(*states), 0)
    try:
        yield await server.start()
    finally:
        await server.stop()


async def test_no_text_of_a_stranger_becomes_markup():
    case = CaseFile((1, 0, 0), "CLOSED", 1)
    seen = observation(warnings=("a", "b"), trouble="x", cases=(case,), closed=(case,))
    people = tuple(replace(one, endpoint="x", owner="x" * 44) for one in seen.participants)
    state = spoilt(state_of(replace(seen, participants=people)))
    state["stakes"] = MARKUP_STAKES

    async with shown(state) as url:
        found = await asyncio.to_thread(look, url)
    assert found.hit is None, "no script of a stranger ran"
    assert found.num_elements == 0
    assert found.num_rows == len(people)
    assert found.errors == []
    assert found.elsewhere == []


@dataclass(frozen=True)
class Look:
    """The outcome of a visit: a script's mark, elements of a stranger, rows, errors, requests."""

    hit: int | None
    num_elements: int
    num_rows: int
    errors: list[str]
    elsewhere: list[str]


def look(url):
    with visiting(url) as visit:
        page = visit.page
        page.wait_for_selector("#people tbody tr")
        return Look(
            hit=page.evaluate("window.hit"),
            num_elements=page.locator("#main img, #main script, #main [onerror]").count(),
            num_rows=page.locator("#people tbody tr").count(),
            errors=visit.errors,
            elsewhere=[one for one in visit.requests if not one.startswith((url, "data:"))],
        )


async def test_an_audit_that_ends_moves_to_those_that_are_over():
    first, second = CaseFile((1, 0, 0), "CLOSED", 1), CaseFile((2, 1, 0), "SETTLED", 1)
    taken = Money(stake=50_000_000, is_paid=True)
    convicted = replace(second, stage="CLOSED", outcome=3, case_outcome=1, money=taken)
    forgotten = CaseFile((0, 2, 0), "CLOSED")
    before = observation(cases=(second,), closed=(first, forgotten), revision=1)
    after = replace(before, cases=(), closed=(convicted, first, forgotten), is_closed_cut=True)

    def visit(url):
        with visiting(url) as found:
            page = found.page
            page.wait_for_selector("#closed tbody tr:nth-child(3)")
            rows = page.locator("#closed tbody tr").all_inner_texts()
            told = page.locator("#cases").inner_text(), page.locator("#closed-hint").inner_text()
            name = page.locator("#closed button").first.get_attribute("aria-label")
            return [row.split("\t") for row in rows], *told, name, found.errors

    update = {**state_of(after), **after.to_json(since=before)}
    async with shown(state_of(before), update) as url:
        rows, still_open, hint, name, errors = await asyncio.to_thread(visit, url)
    assert [row[0] for row in rows] == ["2", "1", "0"]
    assert [row[3] for row in rows] == ["accused, then convicted", "cleared", "not known"]
    assert rows[0][4] == "0.05 SOL"
    assert still_open == "No audit is open."
    assert hint.startswith("3 in the list")
    assert "Older ones are not shown" in hint
    assert name == "transactions: Audit of participant 1 in round 2"
    assert errors == []


@pytest.mark.long(reason="weeks of rounds in a browser")
async def test_a_page_that_is_open_for_weeks_still_draws():
    states = []
    for update in range(NUM_UPDATES):
        first = update * ROUNDS_EACH
        rounds = tuple(round_seen(number) for number in range(first, first + ROUNDS_EACH))
        stakes = [{"round": one.chain.round, "stakes": [[0, 1]]} for one in rounds]
        states.append(state_of(observation(rounds=rounds, revision=update), stakes=stakes))
    newest = NUM_UPDATES * ROUNDS_EACH - 1

    def visit(url):
        with visiting(url) as found:
            found.page.wait_for_selector(f'#timeline [data-round="{newest}"]', timeout=30_000)
            return found.errors

    async with shown(*states) as url:
        assert await asyncio.to_thread(visit, url) == []
