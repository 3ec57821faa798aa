"""Sending on a congested chain: fees bring a transaction in, within caps, and none pays nothing.

Blocks of a rush take only who offers the least price; all else vanishes, as on a full network.
"""

from dataclasses import dataclass, field

import pytest
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction
from support.chain import SOL, World, key
from support.faulty_rpc import Faults, always, first
from support.fields import assert_fields
from support.hostile_rpc import HostileServer, http, reply

from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    InsufficientFundsError,
    MalformedReplyError,
)
from troth_coordinator.chain.failover import FailoverRpc
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.pricing import Pricing
from troth_coordinator.chain.priority import FULL_WINDOW, EpochLamports, PriorityPolicy
from troth_localnet.fees import priority_fee, unit_price

BOB = key("bob").pubkey()
CAP, EPOCH_CAP = 100_000, 250_000
WINDOW = 60


def pay(payer, lamports=SOL):
    keys = {"from_pubkey": payer.pubkey(), "to_pubkey": BOB}
    return transfer(TransferParams(**keys, lamports=lamports))


@dataclass
class Window:
    """A send that must land before `end`."""

    world: World
    end: int
    is_due: bool = True
    wants_record: bool = True
    states: list = field(default_factory=list)

    @property
    def window_left(self):
        return max(0, FULL_WINDOW * (self.end - self.world.chain.slot) // WINDOW)

    def may_sign(self):
        return True

    def waiting(self, state):
        self.states.append(state)


@dataclass
class Paying(World):
    """A world whose client pays for priority."""

    policy: PriorityPolicy = field(default_factory=PriorityPolicy)
    capped: list = field(default_factory=list)
    offered: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.client = CoordinatorClient(
            self.rpc,
            policy=SendPolicy(poll_seconds=0, max_polls=500),
            sleeper=self._sleep,
            pricing=Pricing(
                self.rpc,
                self.policy,
                lambda epoch: self.capped.append((epoch.epoch, epoch.left)),
            ),
        )
        honest = self.rpc.send

        async def send(raw, *, skip_preflight=False):
            message = VersionedTransaction.from_bytes(raw).message
            self.offered.append((unit_price(message), priority_fee(message)))
            return await honest(raw, skip_preflight=skip_preflight)

        self.rpc.send = send

    def rush(self, price, slots=WINDOW):
        """Fill the next blocks, this one included."""
        self.chain.congestion.add(self.chain.slot, self.chain.slot + slots - 1, price)

    def window(self):
        return Window(self, self.chain.slot + WINDOW)

    @property
    def epoch(self) -> EpochLamports:
        return self.client.pricing.epoch


def paying(text, cap=CAP, epoch_cap=EPOCH_CAP, **changes):
    return Paying(policy=PriorityPolicy.parse(text, cap, epoch_cap), **changes)


async def test_recent_fees_are_those_of_the_written_accounts():
    world = paying("fixed:30000")
    alice = world.wallet("alice")
    await world.client.send([pay(alice)], [alice])
    world.chain.advance()
    assert await world.rpc.recent_fees([BOB]) == [0] * 6 + [30_000, 0]
    assert await world.rpc.recent_fees([Pubkey.new_unique()]) == [0] * 8, "the airdrop was free"
    world.rush(5_000, slots=2)
    world.chain.advance()
    assert (await world.rpc.recent_fees([Pubkey.new_unique()]))[-2:] == [5_000, 5_000]


async def test_a_fixed_price_is_charged_on_the_limit():
    world = paying("fixed:30000")
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    assert sent.fee_lamports == 5_000 + world.offered[0][1]
    assert_fields(world.epoch, spent=world.offered[0][1], held=0)


async def test_a_percentile_offers_what_others_pay():
    world = paying("percentile:90")
    alice = world.wallet("alice")
    world.rush(70_000, slots=200)
    world.chain.advance(160)
    await world.client.send([pay(alice)], [alice])
    assert [price for price, _ in world.offered] == [70_000]


async def test_on_a_free_chain_a_percentile_costs_nothing():
    world = paying("percentile:90")
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice], world.window())
    assert sent.fee_lamports == 5_000
    assert world.epoch.spent == 0


async def test_without_a_policy_a_rush_lets_nothing_in():
    world = paying("none", slots_per_sleep=10)
    alice = world.wallet("alice")
    world.rush(1, slots=10_000)
    with pytest.raises(BlockhashExpiredError):
        await world.client.send([pay(alice)], [alice], world.window())
    assert {price for price, _ in world.offered} == {0}


async def test_a_rush_that_nobody_foresaw_is_outbid_before_the_window_closes():
    """Recent fees are those of a quiet minute: only the time that is left says what to offer."""
    world = paying("percentile:50")
    world.chain.advance(150)
    alice, window = world.wallet("alice"), world.window()
    world.rush(2_000_000)
    sent = await world.client.send([pay(alice)], [alice], window)
    prices = [price for price, _ in world.offered]
    assert sent.slot <= window.end
    assert prices == sorted(prices) and len(set(prices)) > 2
    assert max(lamports for _, lamports in world.offered) <= CAP
    assert world.balance(BOB) == SOL, "of all that were signed one has landed"
    assert world.epoch.spent == sum({lamports for _, lamports in world.offered})
    assert world.epoch.held == 0


async def test_without_its_record_a_send_costs_what_the_attempt_that_landed_had_offered():
    world = paying("percentile:50", faults=Faults(forget=always))
    world.chain.advance(150)
    alice = world.wallet("alice")
    world.rush(2_000_000)
    before = world.balance(alice.pubkey())
    window = Window(world, world.chain.slot + WINDOW, wants_record=False)
    sent = await world.client.send([pay(alice)], [alice], window)
    assert len({lamports for _, lamports in world.offered}) > 2
    assert sent.fee_lamports == before - world.balance(alice.pubkey()) - SOL
    assert not sent.is_complete
    assert "forget" not in world.faults.num_calls


async def test_a_rush_above_the_cap_is_not_paid():
    world = paying("percentile:50", cap=1_000, slots_per_sleep=5)
    alice = world.wallet("alice")
    world.rush(10**9, slots=10_000)
    with pytest.raises(BlockhashExpiredError):
        await world.client.send([pay(alice)], [alice], world.window())
    assert max(lamports for _, lamports in world.offered) <= 1_000
    assert_fields(world.epoch, "what expired was not paid", spent=0, held=0)


async def test_a_payment_without_a_window_is_never_signed_twice_at_once():
    """A second landing of a payment would be a second payment."""
    world = paying("percentile:50", faults=Faults(lose=first(5)))
    alice = world.wallet("alice")
    world.rush(1_000)
    await world.client.send([pay(alice)], [alice])
    assert len(set(world.rpc.sent)) == 1
    assert len(world.rpc.sent) > 5


async def test_the_cap_of_an_epoch_is_told_once_and_sends_go_on_without_priority():
    world = paying("fixed:1000000", cap=10_000, epoch_cap=15_000)
    alice = world.wallet("alice")
    world.epoch.begin(3, 0.0, 60.0)
    for _ in range(4):
        await world.client.send([pay(alice)], [alice])
    lamports = [one for _, one in world.offered]
    assert lamports[0] > 0 and lamports[-1] == 0
    assert sum(lamports) == world.epoch.spent <= 15_000
    assert [epoch for epoch, _ in world.capped] == [3]
    world.epoch.begin(4, 60.0, 60.0)
    await world.client.send([pay(alice)], [alice])
    assert world.offered[-1][1] == world.epoch.spent > 9_000


async def test_fees_that_a_node_makes_up_leave_half_of_the_cap_for_what_is_late():
    world = paying("percentile:75", cap=10_000, epoch_cap=60_000)
    alice = world.wallet("alice")

    async def made_up(_accounts):
        return [10**18] * 150

    world.rpc.recent_fees = made_up
    for _ in range(6):
        await world.client.send([pay(alice)], [alice])
    assert 0 < world.epoch.spent <= 30_000
    assert world.offered[-1][1] == 0 < world.offered[0][1]
    world.rush(100)
    await world.client.send([pay(alice)], [alice], Window(world, world.chain.slot + WINDOW // 4))
    assert world.offered[-1][1] > 0


async def test_what_is_refused_costs_no_priority():
    world = paying("fixed:1000")
    alice = world.wallet("alice", lamports=SOL // 100)
    with pytest.raises(InsufficientFundsError):
        await world.client.send([pay(alice, 5 * SOL)], [alice])
    assert_fields(world.epoch, spent=0, held=0)


async def test_a_node_without_recent_fees_stops_no_send():
    world = paying("percentile:50", faults=Faults(unpriced=always))
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    assert sent.fee_lamports == 5_000


async def test_of_several_nodes_another_one_knows_the_fees():
    world, other = paying("percentile:50"), paying("none")
    world.faults.unpriced = always
    other.rush(5_000, slots=3)
    nodes = FailoverRpc({"one": world.rpc, "two": other.rpc})
    assert (await nodes.recent_fees([BOB]))[-1] == 5_000


@pytest.mark.parametrize("fee", [-1, 2**64, 1.5, True, "7", None, 10**400])
async def test_a_fee_that_is_no_price_is_malformed(fee):
    """A price below nothing cannot be signed: it would end whoever asks."""
    fees = [{"slot": 5, "prioritizationFee": fee}]
    async with (
        HostileServer(lambda request: http(reply(fees, request))) as server,
        HttpRpc(server.url) as rpc,
    ):
        with pytest.raises(MalformedReplyError):
            await rpc.recent_fees([BOB])
