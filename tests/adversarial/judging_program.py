"""What attacks on the program alone end with: who lost what, and that nobody else did.

The bench checks every transaction of a Trial: the vault, the totals, the chain hash.
Next: program/cases.py for trials; judging.py for attacks among real clients.
"""

from collections.abc import Sequence

from program.audits import Said
from program.bench import Landed
from program.cases import STAKE, Trial
from solders.keypair import Keypair

from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.view import Status

REWARD = 1_000
RECOMPUTE = 1_000
TX_FEE = 5_000
"""What a transaction with one signature costs its payer."""


def seats_of(audit: AuditView) -> list[int]:
    """The indices on the seats that were called."""
    return [seat.index for seat in audit.judging]


def penalties(landed: Landed) -> list[Event]:
    return [event for event in landed.events if event.name == "Penalised"]


def assert_untouched(trial: Trial, guilty: Sequence[int] = ()) -> None:
    """Nobody but the guilty lost stake, took a strike, is frozen or may not work."""
    for index, entry in enumerate(trial.entries[: len(trial.owners)]):
        if index not in guilty:
            assert (entry.stake, entry.unbonding, entry.strikes) == (STAKE, 0, 0), index
            assert (entry.frozen, entry.status) == (0, Status.ACTIVE), index


def balance(trial: Trial, who: Keypair) -> int:
    return int(trial.chain.accounts.balance(who.pubkey()))


def wealth(trial: Trial, index: int) -> int:
    """All lamports of a participant: in the vault, in any bucket, and of its owner's account."""
    entry = trial.entries[index]
    inside = entry.stake + entry.unbonding + entry.claimable + sum(entry.bucket_amount)
    return inside + balance(trial, trial.owners[index])


def fees_of(trial: Trial, index: int) -> int:
    """What a participant was paid for judging so far."""
    ends = [e for e in trial.ledger.events if e.name in ("AuditSettled", "CaseSettled")]
    return sum(event.fee for event in ends if event.paid >> index & 1)


def commit_all(trial: Trial, audit: AuditView, said: Sequence[Said]) -> None:
    """The seats that were called commit to these, in order."""
    for seat, kind in zip(audit.judging, said, strict=False):
        commit, _ = trial.commit_instructions(audit, seat.index, kind)
        trial.send(commit, trial.sessions[seat.index])
