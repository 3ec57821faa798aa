"""Random instructions by random people at random moments: 5 000 here, 100 000 by night.

The driver checks the vault, the totals and the chain hash after each one that lands. A refusal must
carry one of the program's names, but not the name of an internal error. Every walk through audits
and cases goes on until its run is closed: nothing can lock lamports or accounts.
"""

from collections import Counter
from collections.abc import Sequence

import pytest
from support.program import idl
from support.program.rounds import RoundDriver
from support.program.walk import ACTIONS, SHORT, Action, Walk
from support.program.walk_audits import AUDIT_ACTIONS, AuditWalk, to_the_end

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_coordinator.rules.audit_view import NOT_AUDITED, AuditStage
from troth_coordinator.rules.phase import Phase

FURTHER = pytest.mark.long(reason="three more walks of the same kind")
STEPS = 200
TRIED = 5_000
TRIED_BY_NIGHT = 100_000
AUDIT_ENDS = {*AuditOutcome, NOT_AUDITED} - {AuditOutcome.EXTEND}  # that one is no end
CASE_ENDS = set(CaseOutcome) - {CaseOutcome.EXCLUDED}
"""Excluded takes witnesses that are barred: two convictions each, far apart (test_case_money)."""


def stroll(walk: Walk, actions: Sequence[tuple[int, Action]]) -> None:
    weights, ways = zip(*actions, strict=True)
    for action in walk.dice.choices(ways, weights, k=STEPS):
        if not walk.is_over:
            action(walk)
        if not walk.is_over:
            walk.look()


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=FURTHER) for seed in (3, 4, 5))]
)
def test_no_walk_breaks_the_books(seed: int) -> None:
    walk = Walk(seed, RoundDriver(4, **SHORT))
    stroll(walk, ACTIONS)
    # The walk went somewhere: rounds closed, and many kinds of event and refusal.
    assert walk.landed["RoundClosed"] >= 3 and sum(walk.landed.values()) > STEPS // 2
    assert len(walk.landed) >= 15 and len(walk.refused) >= 15


def walk_through(walk: AuditWalk) -> None:
    """Walk through audits and cases, and on until the last account is closed."""
    stroll(walk, AUDIT_ACTIONS)
    to_the_end(walk)
    assert not walk.driver.chain.accounts.of_program(walk.driver.at.program)
    assert walk.driver.chain.accounts.balance(walk.driver.at.vault) == 0


class Walks:
    """Walks through audits and cases until so much was tried, and where they have been.

    They go on, to three times as much at most, until everything was seen that a walk can reach: a
    change of the program shifts the dice.
    """

    def __init__(self, first_seed: int, num_tried: int) -> None:
        self.tried: Counter[str] = Counter()
        self.landed: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, int]] = Counter()
        self.done: set[str] = set()
        self.phases: set[Phase] = set()
        self.stages: set[AuditStage] = set()
        self.members: set[int] = set()
        seed = first_seed
        while self.tried.total() < (num_tried if self.have_seen_all() else 3 * num_tried):
            self._add(AuditWalk(seed))
            seed += 1

    def _add(self, walk: AuditWalk) -> None:
        walk_through(walk)
        self.tried += walk.tried
        self.landed += walk.landed
        self.done |= set(walk.driver.costs)
        self.phases |= walk.phases
        self.stages |= walk.stages
        for event in walk.driver.ledger.events:
            if event.name in ("AuditSettled", "CaseSettled"):
                self.outcomes[event.name, event.outcome] += 1
            if event.name == "PayloadCommitted":
                self.members.add(event.index)

    def ends_of(self, event: str) -> set[int]:
        """How audits or cases ended."""
        return {outcome for name, outcome in self.outcomes if name == event}

    def have_seen_all(self) -> bool:
        """Whether every instruction succeeded, and audits and cases had every end."""
        is_done = self.done == set(idl.INSTRUCTIONS)
        are_settled = self.ends_of("AuditSettled") == AUDIT_ENDS
        return is_done and are_settled and self.ends_of("CaseSettled") >= CASE_ENDS


@pytest.mark.long(reason="5 000 random instructions")
def test_no_walk_through_audits_and_cases_breaks_the_books() -> None:
    been = Walks(0, TRIED)
    assert set(been.tried) == set(idl.INSTRUCTIONS)
    assert been.have_seen_all(), f"{sorted(been.done)}, {been.outcomes}"
    assert been.phases == set(Phase) and been.stages == set(AuditStage)
    assert been.members == set(range(8))
    seen = ("AuditSettled", "VerdictRevealed", "Penalised", "CaseOpened", "CaseSettled")
    assert all(been.landed[name] >= 10 for name in (*seen, "AuditClosed")), been.landed


@pytest.mark.parametrize(
    "seed", [500_072, *(pytest.param(seed, marks=FURTHER) for seed in (500_075, 500_076))]
)
def test_no_walk_locks_a_reward_by_leaving_in_the_middle_of_a_round(seed: int) -> None:
    """Each of these once left a reward that waited for somebody who was gone."""
    walk_through(AuditWalk(seed))


@pytest.mark.nightly(reason="100 000 instructions take five minutes; make check plays 5 000")
def test_no_long_walk_breaks_the_books() -> None:
    been = Walks(1_000, TRIED_BY_NIGHT)
    assert been.have_seen_all(), f"{sorted(been.done)}, {been.outcomes}"
