"""Closes a run that has ended: the instruction, and the accounts with whoever paid for them.

Next: rounds.py, which drives a run to its end.
"""

from collections.abc import Sequence

from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from support.program.rounds import RoundDriver
from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.view import Status

GONE = (Status.LEFT, Status.BARRED)
Pairs = Sequence[tuple[Pubkey, Pubkey]]
"""Accounts to close, each with the one that paid its rent."""


def close(driver: RoundDriver, pairs: Pairs = (), by: Keypair | None = None) -> Instruction:
    """Close these accounts, and with the last of them the run; the authority signs, or `by`."""
    closer, authority = (by or driver.authority).pubkey(), driver.authority.pubkey()
    return make.close_run(driver.at, closer, authority, authority, pairs)


def round_pairs(driver: RoundDriver) -> list[tuple[Pubkey, Pubkey]]:
    """Every round account of the ring; the authority has paid for it."""
    payer = driver.authority.pubkey()
    return [(driver.at.round(position), payer) for position in range(driver.params.ring)]


def checkpoint_pairs(driver: RoundDriver) -> list[tuple[Pubkey, Pubkey]]:
    """Every checkpoint account that exists; the cranker has paid for it."""
    found = []
    for round_ in range(driver.run.round + 1):
        account = driver._account(driver.at.checkpoint(round_))
        if account is not None:
            found.append((driver.at.checkpoint(round_), driver.cranker.pubkey()))
    return found


def leave_and_close(driver: RoundDriver, waits: int = 9_000) -> None:
    """Let everybody take out what is theirs, and close all accounts of a run that has ended.

    They wait so many slots for it after the last case could be open.
    """
    gone = {entry.owner for entry in driver.entries if entry.status in GONE}
    for owner in driver.owners:
        if bytes(owner.pubkey()) not in gone:
            driver.send(make.leave_run(driver.at, owner.pubkey()), owner)
    driver.chain.advance(longest_settlement_slots(driver.params) + waits)
    for owner in driver.owners:
        driver.attempt(make.claim_reward(driver.at, owner.pubkey()), owner)  # there may be none
        driver.send(make.withdraw_stake(driver.at, owner.pubkey(), 0), owner)
    pairs = round_pairs(driver)
    driver.send(close(driver, pairs[:8]), driver.authority)
    driver.send(close(driver, pairs[8:]), driver.authority)
    driver.create([close(driver, checkpoint_pairs(driver))], driver.authority)
