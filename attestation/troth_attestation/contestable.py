"""Claims that a challenger could make now (protocol section 8, cases with a bond).

Owns: what `open_case` of the program accepts, from the accounts that it reads.
Never: judges a claim, or knows who the challenger is; its own index is left out by the caller.
Next: `cases.py` for the test of each kind; `slashing.py` for what a conviction takes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from troth_attestation.quorum import AuditOutcome
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKey, AuditKind, AuditStage, AuditView
from troth_coordinator.rules.audits import FIRST_SEATS, is_convicted, run_clock
from troth_coordinator.rules.ids import ZERO_DIGEST, Bitmap
from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView, Status

JUDGED = (AuditOutcome.CLEARED, AuditOutcome.UNPROVEN)
"""An audit that ended so may be contested: its evidence was judged, and nobody was accused."""


@dataclass(frozen=True, slots=True)
class Contestable:
    """A case that could be opened now, for `slots_left` more slots, the present one included.

    `subjects` are the payloads that the target vouched for: one of them is named in a case of
    possession, none in any other.
    """

    round: int
    target: int
    kind: AuditKind
    slots_left: int
    subjects: Bitmap = Bitmap(0)  # noqa: RUF009  a NewType call is its argument

    @property
    def key(self) -> AuditKey:
        """Round, target and kind."""
        return self.round, self.target, int(self.kind)


def contestable(
    view: NetworkView,
    rounds: Sequence[RoundView | None],
    audits: Sequence[AuditView],
    challenger: int | None = None,
) -> list[Contestable]:
    """Return the cases that could be opened now, by round, target and kind.

    `rounds` are those that the ring holds, `audits` the open ones. `challenger` is the index of
    the one who asks, if it takes part: nobody accuses itself or judges its own case.
    """
    by_key = {audit.key: audit for audit in audits}
    found = [
        one
        for round_ in rounds
        if round_ is not None and slots_left(view, round_) > 0
        for one in _of_round(view, round_, by_key)
        if one.target != challenger and _num_judges(view, round_, one, challenger) >= FIRST_SEATS
    ]
    return sorted(found, key=lambda one: one.key)


def slots_left(view: NetworkView, round_: RoundView) -> int:
    """Return for how many slots a case about a round may still be opened; 0 if it may not."""
    if not round_.flags & RoundFlag.CLOSED:
        return 0
    ends = round_.close_clock + view.run.params.case_slots
    return max(0, ends + 1 - run_clock(view.run, view.slot))


def _of_round(
    view: NetworkView, round_: RoundView, audits: Mapping[AuditKey, AuditView]
) -> Iterator[Contestable]:
    left = slots_left(view, round_)
    for target, entry in enumerate(view.entries):
        is_theirs = entry.status != Status.EMPTY and entry.joined_round <= round_.round
        for kind in AuditKind:
            one = Contestable(round_.round, target, kind, left, _subjects(round_, target, kind))
            is_new = is_theirs and not is_convicted(view, kind, target, round_.round)
            if is_new and _has_happened(round_, one) and _is_open(one, audits.get(one.key)):
                yield one


def _subjects(round_: RoundView, target: int, kind: AuditKind) -> Bitmap:
    if kind != AuditKind.POSSESSION or not bitmap.has(round_.attested, target):
        return Bitmap(0)
    return Bitmap(round_.ballots[target].attest_bitmap & round_.included)


def _has_happened(round_: RoundView, one: Contestable) -> bool:
    """Whether the round has what the claim is about."""
    if one.kind == AuditKind.POSSESSION:
        return one.subjects != 0
    if one.kind == AuditKind.ROOT:
        is_exempt = bool(round_.flags & (RoundFlag.FORCED_VOID | RoundFlag.ROOT_ONLY))
        return bitmap.has(round_.committed, one.target) and not is_exempt
    return bitmap.has(round_.included, one.target)


def _is_open(one: Contestable, audit: AuditView | None) -> bool:
    """Whether the account takes a case: work needs a judged audit, any other kind a free place."""
    if one.kind != AuditKind.WORK:
        return audit is None
    if audit is None or audit.stage != AuditStage.SETTLED:
        return False
    return audit.outcome in JUDGED and audit.openings_root != ZERO_DIGEST


def _num_judges(
    view: NetworkView, round_: RoundView, one: Contestable, challenger: int | None
) -> int:
    """Return how many could sit on the jury: eligible at the open, and still not barred."""
    judges = [
        index
        for index in bitmap.indices_of(round_.eligible)
        if view.entries[index].status != Status.BARRED
        and view.entries[index].joined_round <= round_.round
        and index not in (one.target, challenger)
    ]
    return len(judges)
