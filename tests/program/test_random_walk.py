"""Two hundred random instructions by random people at random moments.

bench.py checks the vault, the totals and the chain hash after each one that lands; a refusal must
carry one of the program's names, and never one that says that the program is wrong.
"""

import pytest
from program.rounds import Stage
from program.walk import ACTIONS, SHORT, Walk
from program.walk_audits import AUDIT_ACTIONS, AuditWalk

STEPS = 200


@pytest.mark.parametrize("seed", range(6))
def test_no_walk_breaks_the_books(seed: int) -> None:
    walk = Walk(seed, Stage(4, **SHORT))
    weights, actions = zip(*ACTIONS, strict=True)
    for action in walk.dice.choices(actions, weights, k=STEPS):
        action(walk)
    # The walk went somewhere: rounds closed, and many kinds of event and refusal.
    assert walk.landed["RoundClosed"] >= 3 and sum(walk.landed.values()) > STEPS // 2
    assert len(walk.landed) >= 15 and len(walk.refused) >= 15


@pytest.mark.parametrize("seed", range(4))
def test_no_walk_through_audits_and_cases_breaks_the_books(seed: int) -> None:
    walk = AuditWalk(seed)
    weights, actions = zip(*(*ACTIONS, *AUDIT_ACTIONS), strict=True)
    for action in walk.dice.choices(actions, weights, k=STEPS):
        action(walk)
    print(walk.landed, walk.refused)
