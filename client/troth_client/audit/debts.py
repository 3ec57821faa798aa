"""The audit duties that a stopping participant still owes, and the price of leaving them undone.

Owns: one record for each duty that an open audit or case waits for, as the tracker last read it.
Never: waits, sends, or keeps anybody from stopping. Rounds without a frozen seed may add duties.
Next: `participant/supervisor.py`, which reports the duties.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from troth_attestation import slashing
from troth_attestation.quorum import SeatFault
from troth_attestation.slashing import Funds, Prices, SlashIntent
from troth_client.state.audit_tracker import AuditTracker
from troth_coordinator.rules.audit_view import (
    BEFORE_SETTLED,
    MAY_NEED_OPENINGS,
    ONLY_REVEALS,
    WITH_JURY,
    AuditFlag,
    AuditKind,
    AuditView,
    JurorView,
    SeatFlag,
    SeatView,
)
from troth_coordinator.rules.audits import acting_seats, run_clock
from troth_coordinator.rules.outage import Hidden, hidden_verdict
from troth_coordinator.rules.refusal import Refusals, add_refusal
from troth_coordinator.rules.view import EntryView, NetworkView, RunView


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
    clock, entry = run_clock(view.run, view.slot), view.entries[index]
    funds = Funds(entry.claimable, sum(entry.bucket_amount), entry.stake, entry.unbonding)
    for audit in tracker.audits(view):
        for what in _owed(audit, index):
            slots = max(0, audit.stage_end - clock)
            fine = _fine(what, audit, entry, funds, view.run)
            yield Debt(audit.round, audit.target, what, slots, slashing.take(fine, funds).total)


def _fine(what: str, audit: AuditView, entry: EntryView, funds: Funds, run: RunView) -> SlashIntent:
    params = run.params
    prices = Prices(audit.reward_price, params.witness_fee, params.recompute_cost)
    if what == "openings":
        return slashing.no_openings(funds, *_refusal(audit, entry, run))
    if what == "commit":
        return slashing.seat(SeatFault.NO_COMMIT, funds, prices)
    hidden = hidden_verdict(audit.round, entry.reveal_fault_round)
    is_second = hidden is Hidden.SECOND
    return slashing.seat(SeatFault.NO_REVEAL, funds, prices, is_second=is_second)


def _refusal(audit: AuditView, entry: EntryView, run: RunView) -> tuple[int, int]:
    """Return price and doublings; an audit that was only asked for has no price."""
    known = Refusals(entry.openings_step, entry.openings_mark, entry.openings_fault_round)
    known, _ = add_refusal(known, audit.round, run.round, entry.included_total)
    is_only_requested = bool(audit.flags & AuditFlag.REQUESTED)
    return (0 if is_only_requested else audit.openings_price), known.doublings


def _owed(audit: AuditView, index: int) -> Iterator[str]:
    if audit.target == index and audit.kind == AuditKind.WORK and audit.stage in MAY_NEED_OPENINGS:
        yield "openings"
    places: list[SeatView | JurorView] = []
    if audit.stage in BEFORE_SETTLED:
        places += acting_seats(audit)
    elif audit.stage in WITH_JURY:
        places += audit.jurors
    for place in places:
        if place.index == index and not place.flags & SeatFlag.REVEALED:
            if place.flags & SeatFlag.COMMITTED:
                yield "reveal"
            elif audit.stage not in ONLY_REVEALS:
                yield "commit"
