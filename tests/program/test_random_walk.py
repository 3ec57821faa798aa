"""Random instructions by random people at random moments: 5 000 here, 100 000 by night.

bench.py checks the vault, the totals and the chain hash after each one that lands; a refusal must
carry one of the program's names, and never one that says that the program is wrong.
"""

from collections import Counter
from collections.abc import Sequence

import pytest
from program.rounds import Stage
from program.walk import ACTIONS, SHORT, Action, Walk
from program.walk_audits import AUDIT_ACTIONS, AuditWalk

STEPS = 200
TRIED = 5_000
TRIED_BY_NIGHT = 100_000


def stroll(walk: Walk, actions: Sequence[tuple[int, Action]]) -> None:
    weights, ways = zip(*actions, strict=True)
    for action in walk.dice.choices(ways, weights, k=STEPS):
        action(walk)


@pytest.mark.parametrize("seed", range(6))
def test_no_walk_breaks_the_books(seed: int) -> None:
    walk = Walk(seed, Stage(4, **SHORT))
    stroll(walk, ACTIONS)
    # The walk went somewhere: rounds closed, and many kinds of event and refusal.
    assert walk.landed["RoundClosed"] >= 3 and sum(walk.landed.values()) > STEPS // 2
    assert len(walk.landed) >= 15 and len(walk.refused) >= 15


def strolls(first_seed: int, num_tried: int) -> Counter[str]:
    """Walks through audits and cases until so much was tried. Returns what landed."""
    landed: Counter[str] = Counter()
    seed, tried = first_seed, 0
    while tried < num_tried:
        walk = AuditWalk(seed)
        stroll(walk, AUDIT_ACTIONS)
        landed += walk.landed
        seed, tried = seed + 1, tried + walk.num_tried
    return landed


def test_no_walk_through_audits_and_cases_breaks_the_books() -> None:
    landed = strolls(0, TRIED)
    seen = ("AuditSettled", "VerdictRevealed", "Penalised", "CaseOpened", "CaseSettled")
    assert all(landed[name] >= 10 for name in seen), landed
    assert landed["AuditClosed"] >= 10 and landed["VoteRevealed"] >= 1, landed


@pytest.mark.nightly
def test_no_long_walk_breaks_the_books() -> None:
    landed = strolls(1_000, TRIED_BY_NIGHT)
    assert len(landed) >= 40, landed
