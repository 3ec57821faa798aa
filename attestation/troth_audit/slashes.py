"""The slashes of a run, by participant: convictions and fines.

Owns: reading them from the transactions that name the run's vault, so that they are there after the
accounts are closed. Never: prints.
Next: `troth_cli/view/slashes.py`, which shows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from troth_attestation.slashing import CONVICTED_FAULTS, Fault
from troth_audit.cases import CaseFile
from troth_audit.history import by_audit, of_events
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_audits import Penalised
from troth_coordinator.rules.audit_view import AuditKind


@dataclass(frozen=True, slots=True)
class Fine:
    """A small penalty, which has neither escrow nor appeal. Amounts in lamports."""

    round: int
    target: int
    index: int
    fault: str
    taken: int
    acquitted: int
    burned: int


@dataclass(frozen=True, slots=True)
class Slash:
    """The loss of one participant by one conviction or fine; amounts in lamports.

    Only a conviction has a challenger, only a fine an acquitted accused; else None.
    """

    round: int
    index: int
    fault: Fault
    taken: int
    burned: int
    challenger: int | None
    acquitted: int | None
    is_paid_out: bool


@dataclass(frozen=True, slots=True)
class Slashes:
    """The cases and fines of a run, whether or not their accounts are still open.

    `cases` are the ended cases, by round, target and kind; `events` are their events, oldest first.
    """

    cases: tuple[CaseFile, ...]
    fines: tuple[Fine, ...]
    events: tuple[Event, ...]


async def read_slashes(client: CoordinatorClient, at: RunAddresses) -> Slashes:
    """Return the cases and fines of a run from the transactions that name its vault.

    `read_case` adds verdicts and votes to a case.
    """
    return slashes_in(await client.history(at.vault, at.run))


def slashes_in(events: Sequence[Event]) -> Slashes:
    """Return the cases and fines of a run from its events, oldest first."""
    found = [of_events(*one) for one in by_audit(events)]
    return Slashes(
        tuple(case for case in found if case is not None and case.case_outcome),
        tuple(_fine(event) for event in events if isinstance(event, Penalised)),
        tuple(events),
    )


def slashes_of(slashes: Slashes, open_cases: Sequence[CaseFile] = ()) -> list[Slash]:
    """Return each conviction and each fine, by round; reversed ones are left out.

    If the account of a case is still open, it decides: the conviction may have been reversed.
    """
    still_open = {case.key: case for case in open_cases}
    cases = [still_open.get(case.key, case) for case in slashes.cases]
    found = [_of_case(case) for case in cases if case.is_conviction]
    found += [_of_fine(fine) for fine in slashes.fines]
    return sorted(found, key=lambda one: (one.round, one.index))


def _of_case(case: CaseFile) -> Slash:
    round_, target, kind = case.key
    money = case.money
    return Slash(
        round=round_,
        index=target,
        fault=CONVICTED_FAULTS[AuditKind(kind)],
        taken=money.taken,
        burned=money.burned,
        challenger=money.challenger,
        acquitted=None,
        is_paid_out=not money.in_escrow,
    )


def _of_fine(fine: Fine) -> Slash:
    return Slash(
        round=fine.round,
        index=fine.index,
        fault=Fault(fine.fault),
        taken=fine.taken,
        burned=fine.burned,
        challenger=None,
        acquitted=fine.acquitted,
        is_paid_out=True,
    )


def _fine(event: Penalised) -> Fine:
    taken = event.claimable + event.unvested + event.stake + event.unbonding
    parts = (event.acquitted, event.burned)
    return Fine(event.round, event.target, event.index, f"P{event.fault}", taken, *parts)
