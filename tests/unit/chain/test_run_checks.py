"""A run that the program cannot have written is refused, and nothing of it is remembered."""

import asyncio
from dataclasses import replace

import pytest
from support.program.rounds import RoundDriver

from troth_coordinator.chain.client import MOST_READS, CoordinatorClient
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES
from troth_coordinator.chain.errors import AccountValueError, MalformedReplyError
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.pricing import Pricing
from troth_coordinator.chain.priority import PriorityPolicy, least_epoch_seconds
from troth_localnet.direct import DirectRpc

LAYOUT = program_layout()


class Liar(DirectRpc):
    """Shows other bytes at one place of the run while it lies, and counts its answers."""

    def __init__(self, chain, field, value):
        super().__init__(chain)
        self.field, self.value = field, value
        self.lies = False
        self.num_answers = 0

    async def get_accounts(self, addresses):
        self.num_answers += 1
        slot, found = await super().get_accounts(addresses)
        return slot, [self._shown(account) for account in found]

    def _shown(self, account):
        is_run = account is not None and len(account.data) == LAYOUT.accounts["Run"].size
        if not (self.lies and is_run):
            return account
        outer, _, inner = self.field.partition(".")
        place = DISCRIMINATOR_BYTES + LAYOUT.field("Run", outer).offset
        place += LAYOUT.field("Params", inner).offset if inner else 0
        end = place + len(self.value)
        return replace(account, data=account.data[:place] + self.value + account.data[end:])


@pytest.fixture(scope="module")
def driver():
    made = RoundDriver(4, max_rounds=12, checkpoint_every=3, keep_rounds=2)
    made.start()
    made.play(2)
    return made


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("params.ring", bytes(2), "at least 1"),
        ("root_round", (1_000).to_bytes(8, "little"), "at most round, 2"),
        ("restart_round", (3).to_bytes(8, "little"), "at most round, 2"),
        ("restart_root_round", (1_000).to_bytes(8, "little"), "at most restart_round, 0"),
    ],
)
def test_a_client_goes_on_when_a_node_tells_the_truth_again(driver, field, value, expected):
    """The only node: one answer of it blinded a client for ever, with both nodes of two honest."""
    liar = Liar(driver.chain, field, value)
    client = CoordinatorClient(liar)

    async def look():
        return (await client.snapshot(driver.at.run)).run.round

    async def story():
        assert await look() == 2
        liar.lies = True
        for _ in range(2):
            before = liar.num_answers
            with pytest.raises(AccountValueError, match=expected):
                await look()
            assert liar.num_answers > before, "the node is asked again"
        liar.lies = False
        assert await look() == 2
        assert (await client.read_rounds(driver.at.run, [1]))[0].round == 1

    asyncio.run(story())


async def test_a_node_that_shows_another_round_at_each_read_holds_up_nobody(driver):
    liar = Restless(driver.chain, "round")
    client = CoordinatorClient(liar)
    with pytest.raises(MalformedReplyError, match="rounds in a row"):
        await client.snapshot(driver.at.run)
    assert liar.num_answers <= MOST_READS + 1, "the run, and its rounds"


async def test_a_node_that_makes_up_epochs_renews_the_cap_of_priority_fees_no_sooner(driver):
    now, liar = [0.0], Restless(driver.chain, "epoch")
    pricing = Pricing(liar, PriorityPolicy.parse("percentile:75"), clock=lambda: now[0])
    client, paid = CoordinatorClient(liar, pricing=pricing), 0
    for look in range(1_000):
        now[0] = 2 * least_epoch_seconds(driver.run.params) * look / 1_000
        await client.snapshot(driver.at.run)
        paid += pricing.epoch.left
        pricing.epoch.settle(0, pricing.epoch.left)
    assert paid == 2 * pricing.policy.epoch_cap_lamports
    liar.lies = False
    await client.snapshot(driver.at.run)
    assert pricing.epoch.epoch == driver.run.epoch, "what was made up is corrected"


class Restless(Liar):
    """Shows a number of the run that is one higher in each answer."""

    def __init__(self, chain, field):
        super().__init__(chain, field, b"")
        self.lies = True

    async def get_accounts(self, addresses):
        self.value = (100 + self.num_answers).to_bytes(8, "little")
        return await super().get_accounts(addresses)
