"""A stake that fines made too small: topped up within a limit, never while a case is open."""

import asyncio
from types import SimpleNamespace

import pytest
from support.fields import assert_fields
from support.views import PARAMS, entry, key, network, roster

from troth_client.participant.stake_keeping import StakeKeeping
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.errors import BlockhashExpiredError
from troth_coordinator.rules.view import EntryFlag, Status

KEEP, MIN = PARAMS.keep_stake_lamports, PARAMS.min_stake_lamports
FEE = 5_000


class Owner:
    """An owner whose entry a test sets; top-ups change its stake."""

    def __init__(self, **changes):
        self.entry = {"number": 1, "stake": KEEP - 1, **changes}
        self.at = SimpleNamespace(run=b"run")
        self.key = SimpleNamespace(pubkey=lambda: key(1))
        self.client = self
        self.added = []
        self.lamports = 100 * MIN
        self.hides = False

    async def snapshot(self, _run):
        return network(entries=roster(entry(**self.entry)))

    async def balance(self, _key):
        return self.lamports

    async def top_up_stake(self, lamports, once):
        assert once.may_sign()
        self.added.append(lamports)
        if self.hides:
            raise BlockhashExpiredError(1)
        self.entry["stake"] += lamports
        return SimpleNamespace(fee_lamports=FEE)


def keeping(owner, left=10 * MIN):
    return StakeKeeping(owner, left, EventList())


async def test_a_short_stake_is_brought_back_to_the_one_to_join_with():
    owner = Owner()
    one = keeping(owner, MIN)
    await one.check()
    await one.check()
    amount = MIN - KEEP + 1
    assert owner.added == [amount]
    assert one.events.events == [
        {"event": "stake_topped_up", "lamports": amount, "left": MIN - amount, "fee": FEE}
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"stake": KEEP},
        {"frozen": 1},
        {"flags": EntryFlag.LEAVING},
        {"status": Status.LEFT},
        {"status": Status.BARRED},
        {"status": Status.JAILED},
        {"number": 2},
    ],
)
async def test_nothing_is_added_that_helps_nobody_or_that_a_case_may_take(changes):
    owner = Owner(**changes)
    await keeping(owner).check()
    assert owner.added == []


async def test_a_convict_is_brought_back_to_the_stake_to_join_with():
    owner = Owner(stake=MIN - 7, work_faults=1, status=Status.INACTIVE)
    await keeping(owner).check()
    assert owner.added == [7]


async def test_a_limit_that_is_too_small_is_named_once_and_not_spent():
    owner = Owner(stake=KEEP - 100)
    one = keeping(owner, 99)
    await one.check()
    await one.check()
    (event,) = one.events.events
    assert_fields(SimpleNamespace(**event), event="stake_top_up_failed")
    assert "100 lamports are missing" in event["reason"] and "leaves 99" in event["reason"]
    assert owner.added == [] and one.left == 99


async def test_what_the_limit_leaves_is_enough_if_it_reaches_the_stake_to_keep():
    owner = Owner(stake=KEEP - 100)
    one = keeping(owner, 100)
    await asyncio.wait_for(one.watch(0), 5)
    assert owner.added == [100] and one.left == 0


async def test_without_a_limit_nothing_is_asked():
    one = keeping(Owner(), 0)
    await asyncio.wait_for(one.watch(0), 5)
    assert one.events.events == []


async def test_a_top_up_that_no_node_confirms_counts():
    """The node hides that they landed, and shows the stake of before."""
    owner = Owner(stake=KEEP - 100)
    owner.hides = True
    one = keeping(owner, MIN)
    await one.check()
    await one.check()
    await one.check()
    first = MIN - KEEP + 100
    assert owner.added[0] == first
    assert sum(owner.added) <= MIN
    assert one.left == MIN - sum(owner.added)
