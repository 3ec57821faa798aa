"""Closes a run that has ended: the instruction, and the accounts with whoever paid for them.

Next: rounds.py, which drives a run to its end.
"""

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from support.program.rounds import RoundDriver
from troth_coordinator.chain import instructions as make


def close(driver: RoundDriver, pairs=(), by: Keypair | None = None):
    authority = (by or driver.authority).pubkey()
    return make.close_run(driver.at, authority, driver.authority.pubkey(), pairs)


def round_pairs(driver: RoundDriver) -> list[tuple[Pubkey, Pubkey]]:
    payer = driver.authority.pubkey()
    return [(driver.at.round(position), payer) for position in range(driver.params.ring)]


def checkpoint_pairs(driver: RoundDriver) -> list[tuple[Pubkey, Pubkey]]:
    found = []
    for round_ in range(driver.run.round + 1):
        account = driver._account(driver.at.checkpoint(round_))
        if account is not None:
            found.append((driver.at.checkpoint(round_), driver.cranker.pubkey()))
    return found
