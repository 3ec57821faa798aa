"""A run whose clients have all stopped for good: a stranger ends it, from every phase."""

import re

import pytest
from support.program.rounds import SOL, RoundDriver, key
from support.runs import Chronicle

from troth_cli.errors import NotInVainError
from troth_cli.workflows.cancel import cancel_run
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.phase import Phase
from troth_localnet.direct import DirectRpc

ENOUGH_CALLS = 20


async def at_once(_seconds: float) -> None:
    """On this chain a sent transaction has landed."""


async def cancel_when_told(driver: RoundDriver) -> None:
    """Call `troth run cancel` again each time that the refusal names."""
    stranger = key("stranger")
    driver.chain.airdrop(stranger.pubkey(), SOL)
    client = CoordinatorClient(DirectRpc(driver.chain), sleeper=at_once)
    for _ in range(ENOUGH_CALLS):
        told = Chronicle(driver)
        try:
            await cancel_run(client, driver.at, stranger)
        except NotInVainError as error:
            found = re.search(r"after slot (\d+)", error.next_step)
            assert found, str(error)
            driver.chain.advance(int(found[1]) + 1 - driver.slot)
        else:
            return
        finally:
            driver.chain.observers.remove(told)
            driver.ledger.absorb(told.events)
            driver._check_books()
    raise AssertionError(f"the run is still in {driver.run.phase.name}")


def in_commit() -> RoundDriver:
    driver = RoundDriver(4)
    driver.start()
    driver.play(2)
    return driver


def in_attest() -> RoundDriver:
    driver = in_commit()
    driver.commit_all()
    return driver


def in_cooldown() -> RoundDriver:
    driver = RoundDriver(4, max_rounds=2, join_until_round=2)
    driver.start()
    driver.play(2)
    return driver


def in_warmup() -> RoundDriver:
    """All are ready, so that a round will open once more."""
    driver = waiting()
    for index in range(4):
        driver.post_ready(index)
    driver.advance_phase()
    return driver


def halted() -> RoundDriver:
    driver = in_commit()
    for _ in range(2):
        driver.commit_all([])
        driver.attest_all([])
        driver.chain.advance(driver.params.close_grace_slots)
        driver.close_void()
    return driver


def waiting() -> RoundDriver:
    driver = halted()
    driver.run_out()
    driver.advance_phase()
    return driver


def paused() -> RoundDriver:
    driver = in_commit()
    driver.send(make.pause_run(driver.at, driver.authority.pubkey()), driver.authority)
    driver.play(1)
    return driver


PHASES = {
    Phase.COMMIT: in_commit,
    Phase.ATTEST: in_attest,
    Phase.COOLDOWN: in_cooldown,
    Phase.WARMUP: in_warmup,
    Phase.HALTED: halted,
    Phase.WAITING_FOR_MEMBERS: waiting,
    Phase.PAUSED: paused,
}


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
async def test_a_run_that_all_clients_have_left_is_ended_by_anybody(phase):
    """Its owners may be gone for ever, and the pool is its funder's."""
    driver = PHASES[phase]()
    assert driver.run.phase == phase
    await cancel_when_told(driver)
    assert driver.run.phase == Phase.FINISHED
