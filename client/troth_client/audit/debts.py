"""The audit duties that a stopping participant still owes, and the price of leaving them undone.

Owns: one record for each duty that an open audit or case waits for, as the tracker last read it.
Never: waits, sends, or keeps anybody from stopping. Rounds without a frozen seed may add duties.
Next: `participant/supervisor.py`, which reports the duties.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from troth_attestation import slashing
from troth_attestation.quorum import SeatFault
from troth_attestation.slashing import Funds, Prices
from troth_client.state.audit_tracker import AuditTracker
from troth_coordinator.rules.audit_view import (
    AuditKind,
    AuditStage,
    AuditView,
    JurorView,
    SeatFlag,
    SeatView,
)
from troth_coordinator.rules.audits import acting_seats, run_clock
from troth_coordinator.rules.view import NetworkView

SHOWING = (AuditStage.OPENINGS, AuditStage.COMMIT, AuditStage.ACCUSED, AuditStage.CASE_COMMIT)
"""While an audit of our work is in one of these, its openings may be asked for."""
SEATED = (AuditStage.OPENINGS, AuditStage.COMMIT, AuditStage.REVEAL)
DRAWN = (AuditStage.CASE_COMMIT, AuditStage.CASE_REVEAL)
LAST = (AuditStage.REVEAL, AuditStage.CASE_REVEAL)
"""In these stages a seat or juror without a commit owes nothing: it was fined, or is exempt."""


@dataclass(frozen=True, slots=True)
class Debt:
    """One duty. `what` is the act that is awaited: openings, a commit or a reveal.

    `slots`: left until the present stage ends. `lamports`: the highest fine for silence.
    """

    round: int
    target: int
    what: str
    slots: int
    lamports: int


def debts(tracker: AuditTracker, index: int, view: NetworkView) -> Iterator[Debt]:
    """Yield what participant `index` owes, as far as the tracker knows."""
    clock, params, entry = run_clock(view.run, view.slot), view.run.params, view.entries[index]
    prices = Prices(params.reward_per_payload, params.witness_fee, params.recompute_cost)
    funds = Funds(entry.stake, entry.unbonding, sum(entry.bucket_amount))
    hidden = slashing.no_openings(
        funds,
        prices,
        view.run.round,
        entry.openings_fault_round,
        is_convicted=entry.work_faults > 0,
    )
    costs = {
        "openings": hidden,
        "commit": slashing.seat(SeatFault.NO_COMMIT, funds, prices),
        "reveal": slashing.seat(SeatFault.NO_REVEAL, funds, prices),
    }
    for audit in tracker.audits(view):
        for what in _owed(audit, index):
            slots = max(0, audit.stage_end - clock)
            cost = slashing.take(costs[what], funds).total
            yield Debt(audit.round, audit.target, what, slots, cost)


def _owed(audit: AuditView, index: int) -> Iterator[str]:
    if audit.target == index and audit.kind == AuditKind.WORK and audit.stage in SHOWING:
        yield "openings"
    places: list[SeatView | JurorView] = []
    if audit.stage in SEATED:
        places += acting_seats(audit)
    elif audit.stage in DRAWN:
        places += audit.jurors
    for place in places:
        if place.index == index and not place.flags & SeatFlag.REVEALED:
            if place.flags & SeatFlag.COMMITTED:
                yield "reveal"
            elif audit.stage not in LAST:
                yield "commit"
