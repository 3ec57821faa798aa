"""A claim or a withdrawal before its time says the slot from which it works."""

import re

import pytest
from support.program.rounds import RoundDriver

from troth_cli.errors import NotDueError
from troth_cli.workflows.payable import with_date
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.chain.operations import Owner
from troth_localnet.direct import DirectRpc


@pytest.fixture
def driver() -> RoundDriver:
    driver = RoundDriver(6)
    driver.start()
    driver.play(2)
    return driver


class Payee:
    """The first participant, who asks for its money."""

    def __init__(self, driver: RoundDriver) -> None:
        self.driver = driver
        self.client = CoordinatorClient(DirectRpc(driver.chain))
        self.owner = Owner(self.client, driver.at, driver.owners[0])

    async def refusal(self, word: str) -> NotDueError:
        """The error of `troth claim` or `troth withdraw`."""
        with pytest.raises(ProgramRefusedError) as caught:
            await self.pay(word)
        found = await with_date(caught.value, self.client, self.driver.at, self.owner.key.pubkey())
        assert isinstance(found, NotDueError)
        return found

    async def pay(self, word: str) -> None:
        await (self.owner.claim_reward() if word == "claim" else self.owner.withdraw_stake(0))

    def go_to(self, slot: int) -> None:
        self.driver.chain.advance(slot - self.driver.slot)


def date_in(error: NotDueError) -> int:
    found = re.search(r"at slot (\d+), in \d+ slots?, about ", error.found)
    assert found is not None, error.found
    return int(found[1])


async def test_a_claim_works_from_the_slot_that_the_refusal_names(driver):
    payee = Payee(driver)
    early = await payee.refusal("claim")
    due = date_in(early)
    payee.go_to(due - 1)
    assert date_in(await payee.refusal("claim")) == due
    payee.go_to(due)
    await payee.pay("claim")
    after = await payee.refusal("claim")
    assert "none waits to vest" in after.found or date_in(after) > due


async def test_a_withdrawal_works_from_the_slot_that_the_refusal_names(driver):
    payee = Payee(driver)
    staying = await payee.refusal("withdraw")
    assert "none on its way out" in staying.found
    assert "troth leave" in staying.next_step
    driver.leave(0)
    driver.play_rest()
    due = date_in(await payee.refusal("withdraw"))
    payee.go_to(due - 1)
    assert date_in(await payee.refusal("withdraw")) == due
    payee.go_to(due)
    await payee.pay("withdraw")


async def test_another_refusal_stays_as_it_is(driver):
    payee = Payee(driver)
    driver.leave(0)
    with pytest.raises(ProgramRefusedError) as caught:
        await payee.owner.leave_run()
    owner = payee.owner.key.pubkey()
    assert await with_date(caught.value, payee.client, driver.at, owner) is caught.value
