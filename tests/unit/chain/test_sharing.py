"""Sends that ask a node for the same: one blockhash, one poll for all. The clock is the test's."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from solders.hash import Hash
from solders.signature import Signature

from troth_coordinator.chain.errors import RpcTimeoutError, TransactionRejectedError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.rpc import Status
from troth_coordinator.chain.sharing import (
    FEE_POLLS,
    FORGET_POLLS,
    HASH_POLLS,
    HEIGHT_POLLS,
    SharingRpc,
)

POLL = 0.5
LANDED = Status(7, None, "confirmed")
AWAY = RpcTimeoutError("http://node", "nothing")


def signature(number: int) -> Signature:
    return Signature.from_bytes(bytes([number]) * 64)


@dataclass
class Node:
    """Answers, and counts what it is asked."""

    seconds: float = 100.0
    known: dict[Signature, Status] = field(default_factory=dict)
    failure: Exception | None = None
    num_hashes: int = 0
    num_heights: int = 0
    num_fees: int = 0
    asked: list[list[Signature]] = field(default_factory=list)
    histories: list[list[Signature]] = field(default_factory=list)

    async def latest_blockhash(self) -> tuple[Hash, int]:
        self.num_hashes += 1
        await asyncio.sleep(0)
        return Hash.from_bytes(bytes([self.num_hashes]) * 32), 150 + self.num_hashes

    async def block_height(self) -> int:
        self.num_heights += 1
        return self.num_heights

    async def recent_fees(self, accounts: Any) -> list[int]:
        self.num_fees += 1
        return [self.num_fees]

    async def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        if self.failure is not None:
            raise self.failure
        return signature(raw[0])

    async def statuses(self, wanted: Any, *, search_history: bool = False) -> list[Status | None]:
        (self.histories if search_history else self.asked).append(list(wanted))
        if self.failure is not None:
            raise self.failure
        return [self.known.get(one) for one in wanted]


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def rpc(node: Node) -> SharingRpc:
    upstream: Any = node
    return SharingRpc(upstream, POLL, lambda: node.seconds)


async def test_sends_of_some_seconds_share_a_blockhash(node, rpc):
    first = await rpc.latest_blockhash()
    node.seconds += HASH_POLLS * POLL - 0.1
    assert await rpc.latest_blockhash() == first
    node.seconds += 0.2
    assert await rpc.latest_blockhash() != first
    assert node.num_hashes == 2


async def test_sends_that_begin_together_ask_for_one_blockhash(node, rpc):
    found = await asyncio.gather(*(rpc.latest_blockhash() for _ in range(4)))
    assert node.num_hashes == 1
    assert len(set(found)) == 1


async def test_a_blockhash_that_is_refused_is_used_no_more(node, rpc):
    first = await rpc.latest_blockhash()
    node.failure = TransactionRejectedError(TransactionFailure("BlockhashNotFound"), [])
    with pytest.raises(TransactionRejectedError):
        await rpc.send(b"\1")
    assert await rpc.latest_blockhash() != first


async def test_a_blockhash_that_may_have_expired_is_used_no_more(node, rpc):
    """Its sender asks the history before it signs anew."""
    first = await rpc.latest_blockhash()
    await rpc.statuses([signature(1)], search_history=True)
    assert node.histories == [[signature(1)]]
    assert await rpc.latest_blockhash() != first


async def test_another_refusal_leaves_the_blockhash(node, rpc):
    first = await rpc.latest_blockhash()
    node.failure = TransactionRejectedError(TransactionFailure("AlreadyProcessed"), [])
    with pytest.raises(TransactionRejectedError):
        await rpc.send(b"\1")
    assert await rpc.latest_blockhash() == first


async def test_the_height_is_shared_too(node, rpc):
    assert [await rpc.block_height() for _ in range(3)] == [1, 1, 1]
    node.seconds += HEIGHT_POLLS * POLL
    assert await rpc.block_height() == 2


async def test_sends_of_some_seconds_share_the_recent_fees(node, rpc):
    assert [await rpc.recent_fees([]) for _ in range(3)] == [[1]] * 3
    node.seconds += FEE_POLLS * POLL
    assert await rpc.recent_fees([]) == [2]


async def test_one_poll_serves_all_sends_under_way(node, rpc):
    for number in (1, 2, 3):
        await rpc.send(bytes([number]))
    assert await rpc.statuses([signature(1)]) == [None]
    assert node.asked == [], "no public network confirms so soon"
    node.seconds += POLL
    node.known = {signature(2): LANDED}
    assert await rpc.statuses([signature(1)]) == [None]
    assert await rpc.statuses([signature(2)]) == [LANDED]
    assert await rpc.statuses([signature(3)]) == [None]
    assert node.asked == [[signature(1), signature(2), signature(3)]]


async def test_a_send_of_ten_polls_asks_every_other_one(node, rpc):
    await rpc.send(b"\1")
    for _ in range(10):
        node.seconds += POLL
        await rpc.statuses([signature(1)])
    assert len(node.asked) == 5


async def test_what_is_only_processed_is_asked_again(node, rpc):
    await rpc.send(b"\1")
    node.seconds += POLL
    node.known = {signature(1): Status(7, None, "processed")}
    assert await rpc.statuses([signature(1)]) == [None]
    node.seconds += 2 * POLL
    node.known = {signature(1): LANDED}
    assert await rpc.statuses([signature(1)]) == [LANDED]


async def test_a_signature_that_was_not_sent_here_is_asked_about_at_once(node, rpc):
    node.known = {signature(9): LANDED}
    assert await rpc.statuses([signature(9)]) == [LANDED]


async def test_a_poll_that_fails_is_no_answer(node, rpc):
    await rpc.send(b"\1")
    node.seconds += POLL
    node.failure = AWAY
    for _ in range(2):
        with pytest.raises(RpcTimeoutError):
            await rpc.statuses([signature(1)])
    node.failure, node.known = None, {signature(1): LANDED}
    assert await rpc.statuses([signature(1)]) == [LANDED]


async def test_sends_that_are_over_are_forgotten(node, rpc):
    await rpc.send(b"\1")
    node.seconds += FORGET_POLLS * POLL
    await rpc.statuses([signature(2)])
    assert node.asked == [[signature(2)]]
