"""The debts of a run, and the money that it gives back once it is over (protocol section 2).

Owns: the debts of the vault, what is left beside them, whether a participant's account may go.
Never: says whether a run is over; `close_run` of the program does.
Next: `membership.py` for who may leave; `chain/operations.py` for the instruction.
"""

from collections.abc import Sequence

from troth_coordinator.rules.ids import Lamports
from troth_coordinator.rules.view import EntryView, ParticipantView, RunView, Status


def liabilities(run: RunView) -> Lamports:
    """Return the lamports that the vault owes to somebody, its rent and the pool included.

    The program: `Run::liabilities` in `state/run.rs`. The vault never holds less.
    """
    return Lamports(
        run.vault_rent
        + run.total_stake
        + run.total_unbonding
        + run.total_unvested
        + run.total_claimable
        + run.total_bonds
        + run.total_escrow
        + run.total_withheld
        + run.reward_pool
    )


def leftovers(run: RunView, vault_lamports: int) -> Lamports:
    """Return what closing pays to the funder: the pool, and whatever was sent to the vault besides.

    The program: `pay_leftovers` in `instructions/close_run.rs`.
    """
    return Lamports(max(0, vault_lamports - (liabilities(run) - run.reward_pool)))


def entries_of(participant: ParticipantView, entries: Sequence[EntryView]) -> list[EntryView]:
    """Return the entries of an owner; one that joined again has two for a while."""
    return [entry for entry in entries if entry.owner == participant.owner]


def is_settled(participant: ParticipantView, entries: Sequence[EntryView]) -> bool:
    """Tell whether `close_run` closes this account once the run is over: left, and owed nothing.

    The program: `Participant::is_closable` in `state/participant.rs`, for a run past its cases.
    """
    is_paid = not participant.claimable and not any(one.lamports for one in participant.tickets)
    return is_paid and all(is_spent(entry) for entry in entries_of(participant, entries))


def is_spent(entry: EntryView) -> bool:
    """Tell whether an owner has left an index and is owed nothing there.

    The program: `Entry::is_spent` in `state/entry.rs`, which also counts open audits. A run that is
    over has none.
    """
    is_owed = entry.stake or entry.claimable or any(entry.bucket_amount) or entry.withheld
    return entry.status in (Status.LEFT, Status.BARRED) and not is_owed
