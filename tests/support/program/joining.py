"""Owners who join a run: their terms, their accounts, and rounds until their rewards have vested.

Next: rounds.py, whose participants have joined.
"""

import dataclasses
from typing import Any

from solders.instruction import Instruction
from solders.keypair import Keypair

from support.program.rounds import SOL, RoundDriver, key
from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.params_checks import jury_duty_slots
from troth_coordinator.rules.view import ParticipantView


def terms(index: int = 0, **changes: Any) -> make.JoinTerms:
    """Terms that any run accepts, with changes."""
    base = make.JoinTerms(index, 3, key("any session").pubkey(), "http://here:1")
    return dataclasses.replace(base, **changes)


def newcomer(driver: RoundDriver, name: object = "newcomer", lamports: int = SOL) -> Keypair:
    """An owner with lamports who has not joined."""
    owner = key(name)
    driver.chain.airdrop(owner.pubkey(), lamports)
    return owner


def join(
    driver: RoundDriver, owner: Keypair, of: make.JoinTerms, former: Keypair | None = None
) -> Instruction:
    """`owner` joins on these terms; `former` had the index before."""
    gone = None if former is None else former.pubkey()
    return make.join_run(driver.at, owner.pubkey(), of, gone)


def participant(driver: RoundDriver, owner: Keypair) -> ParticipantView | None:
    """The Participant account of an owner, or None."""
    address = driver.at.participant(owner.pubkey())
    account = driver._account(address)
    return None if account is None else driver._reader.participant(address, account)


# Windows in which time passes fast beside the rounds.
SLOW_ROUNDS = {"commit_slots": 1_500, "vesting_slots": 5_000, "unbond_slots": 5_000}


def outlast_juries(driver: RoundDriver) -> None:
    """Play rounds until those who have left by now owe no jury any more."""
    end = driver.slot + jury_duty_slots(driver.params)
    while driver.slot <= end:
        driver.chain.advance(min(1_400, driver.params.commit_slots - 10))
        driver.play()


def let_vest(driver: RoundDriver) -> None:
    """Play rounds until whatever was earned in the first window has vested."""
    while driver.slot < 7_500:
        driver.chain.advance(1_400)
        driver.play()
