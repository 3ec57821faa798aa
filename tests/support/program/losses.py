"""Assertions that end attacks on the program: who lost what, and that nobody else lost anything.

The driver checks after every transaction: the vault, the totals, the chain hash.
Next: cases.py for the driver; support/attacks for attacks among real clients.
"""

from collections.abc import Sequence

from solders.keypair import Keypair

from support.fields import assert_fields
from support.program.audits import Said
from support.program.cases import STAKE, CaseDriver
from support.program.chain import Landed
from troth_coordinator.chain.event_types_audits import AuditSettled, CaseSettled, Penalised
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.view import Status

REWARD = 1_000
RECOMPUTE = 1_000
TX_FEE = 5_000
"""The fee of a transaction with one signature."""


def seats_of(audit: AuditView) -> list[int]:
    """The indices on the seats that were called."""
    return [seat.index for seat in audit.judging]


def fined_lamports(event: Penalised) -> int:
    """All lamports that a small penalty found."""
    return event.claimable + event.unvested + event.stake + event.unbonding


def penalties(landed: Landed) -> list[Penalised]:
    return [event for event in landed.events if isinstance(event, Penalised)]


def assert_untouched(driver: CaseDriver, guilty: Sequence[int] = ()) -> None:
    """Nobody but the guilty lost stake, took a strike, is frozen or may not work."""
    for index, entry in enumerate(driver.entries[: len(driver.owners)]):
        if index not in guilty:
            assert_fields(entry, index, stake=STAKE, unbonding=0, strikes=0)
            assert_fields(entry, index, frozen=0, status=Status.ACTIVE)


def balance(driver: CaseDriver, who: Keypair) -> int:
    return int(driver.chain.accounts.balance(who.pubkey()))


def wealth(driver: CaseDriver, index: int) -> int:
    """All lamports of a participant: in the vault, in any bucket, and of its owner's account."""
    entry = driver.entries[index]
    inside = entry.stake + entry.unbonding + entry.claimable + sum(entry.bucket_amount)
    return inside + balance(driver, driver.owners[index])


def fees_of(driver: CaseDriver, index: int) -> int:
    """The pay of a participant for judging so far."""
    ends = [e for e in driver.ledger.events if isinstance(e, AuditSettled | CaseSettled)]
    fees = sum(event.fee for event in ends if event.paid >> index & 1)
    cases = [event for event in ends if isinstance(event, CaseSettled)]
    return fees + sum(event.seats_fee for event in cases if event.seats_paid >> index & 1)


def commit_all(driver: CaseDriver, audit: AuditView, said: Sequence[Said]) -> None:
    """The seats that were called commit to these, in order."""
    for seat, kind in zip(audit.judging, said, strict=False):
        commit, _ = driver.commit_instructions(audit, seat.index, kind)
        driver.send(commit, driver.sessions[seat.index])
