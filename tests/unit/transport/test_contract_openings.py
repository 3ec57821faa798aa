"""The contract of every transport for opening sets: it shows those of the openings store only."""

import contextlib
from dataclasses import dataclass, replace

import numpy as np
import pytest
from support import blobs, opened

from troth_attestation import openings
from troth_attestation.state import residual_tree
from troth_client.state.openings_store import OpeningsStore, Wanted
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import BlobRefusedError, FetchError
from troth_client.transport.exchange import Exchange, Patience
from troth_client.transport.http import http_transport
from troth_client.transport.memory import MemoryNetwork, memory_transport

AUDIT = opened.opened()


@dataclass
class Participant:
    transport: Exchange
    openings: OpeningsStore

    @property
    def endpoint(self):
        return self.transport.endpoint

    async def fetch(self, audit, *holders):
        endpoints = [holder.endpoint for holder in holders]
        return await self.openings.fetch(self.transport, audit.sampled, audit.root, endpoints)


@pytest.fixture(params=["memory", "http"])
async def make(request, tmp_path):
    """A function that starts one more participant with an openings store."""
    network, names = MemoryNetwork(), iter("abcdefgh")
    async with contextlib.AsyncExitStack() as stack:

        async def start():
            name = next(names)
            made = {
                "memory": lambda: memory_transport(network, name),
                "http": lambda: http_transport("127.0.0.1", 0, patience=Patience(2.0)),
            }[request.param]()
            openings = OpeningsStore(tmp_path / name / "openings")
            made.show(openings)
            return Participant(await stack.enter_async_context(made), openings)

        yield start


async def lacks(taker, audit, holder):
    with pytest.raises(FetchError) as found:
        await taker.fetch(audit, holder)
    assert blobs.reasons(found.value) == {holder.endpoint: "HolderLacksError"}


async def test_a_set_is_read_from_the_trainers_store_and_from_there_to_the_other_seats(make):
    trainer, seat, other = await make(), await make(), await make()
    assert trainer.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before) == AUDIT.root
    assert await seat.fetch(AUDIT, trainer) == AUDIT.data
    trainer.openings.settle(9, 5)  # the trainer is gone
    assert await other.fetch(AUDIT, trainer, seat) == AUDIT.data
    assert openings.decode(AUDIT.data, AUDIT.sampled).tiles == AUDIT.sampled.tiles


async def offered(trainer, *holders):
    """Push the set of the audit; returns the failure of each holder, None if it took it."""
    results = await trainer.transport.offer(AUDIT.blob, [one.endpoint for one in holders])
    return [None if one.error is None else type(one.error).__name__ for one in results]


def want(*participants):
    for one in participants:
        one.openings.want([Wanted(AUDIT.root, AUDIT.sampled, is_ours=False)])


async def test_a_pushed_set_is_read_by_others_when_its_maker_is_gone(make):
    """The maker may sit behind a line that nobody can reach from outside."""
    trainer, holder, seat = await make(), await make(), await make()
    want(holder)
    trainer.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    assert await offered(trainer, holder) == [None]
    assert await offered(trainer, holder) == [None], "a holder that has it has taken it"
    trainer.openings.settle(9, 5)
    assert await seat.fetch(AUDIT, trainer, holder) == AUDIT.data


async def test_what_is_not_shown_is_not_offered(make):
    trainer, holder = await make(), await make()
    want(holder)
    assert await offered(trainer, holder) == []


async def test_a_set_in_the_own_store_needs_no_holder(make):
    trainer = await make()
    trainer.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    assert await trainer.fetch(AUDIT) == AUDIT.data


async def test_only_sets_in_the_store_are_readable(make):
    """Not by the root of u, which is no set, not before they are made, not after they settled."""
    trainer, seat = await make(), await make()
    await lacks(seat, AUDIT, trainer)
    trainer.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    for root in (AUDIT.after.tree.root, AUDIT.before.tree.root, bytes(32)):
        with pytest.raises(FetchError):
            await seat.openings.fetch(seat.transport, AUDIT.sampled, root, [trainer.endpoint])
    trainer.openings.settle(9, 5)
    await lacks(seat, AUDIT, trainer)


async def test_rounds_neither_open_nor_forget_a_set(make):
    trainer, seat = await make(), await make()
    trainer.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    trainer.transport.release(2)
    trainer.transport.drop_before(100)
    assert await seat.fetch(AUDIT, trainer) == AUDIT.data


async def test_a_set_of_another_draw_replaces_the_one_of_the_same_payload(make):
    trainer, seat = await make(), await make()
    redrawn = opened.opened(seed=b"t" * 32)
    assert redrawn.sampled.tiles != AUDIT.sampled.tiles
    trainer.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    trainer.openings.make(redrawn.sampled, redrawn.after, redrawn.before)
    await lacks(seat, AUDIT, trainer)
    assert await seat.fetch(redrawn, trainer) == redrawn.data


async def test_what_does_not_read_as_the_audits_set_is_judged_and_not_shown(make):
    """A trainer records the root of other bytes of the right length: the verdict needs them."""
    trainer, seat, other = await make(), await make(), await make()
    root = trainer.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    asked = replace(AUDIT.sampled, round=8)
    seat.transport.release(9)  # the gate of payloads is no way around the store
    found = await seat.openings.fetch(seat.transport, asked, root, [trainer.endpoint])
    assert found == AUDIT.data
    with pytest.raises(FetchError):
        await other.openings.fetch(other.transport, asked, root, [seat.endpoint])


async def test_a_value_that_is_not_finite_is_shown_to_the_other_seats(make):
    """It is the trainer's own: each of them must see it to call it a mismatch."""
    u = opened.residual(9).u.copy()
    u[:, 3, 4] = np.nan
    after = openings.Residual(u, residual_tree(u))
    sampled = replace(AUDIT.sampled, root_after=after.tree.root)
    trainer, seat, other = await make(), await make(), await make()
    root = trainer.openings.make(sampled, after, AUDIT.before)
    await seat.openings.fetch(seat.transport, sampled, root, [trainer.endpoint])
    assert await other.openings.fetch(other.transport, sampled, root, [seat.endpoint])


async def test_a_set_of_another_length_is_never_taken(make):
    trainer, seat = await make(), await make()
    short = opened.opened(previous=opened.NONE)
    root = trainer.openings.make(short.sampled, short.after, None)
    with pytest.raises(FetchError):
        await seat.openings.fetch(seat.transport, AUDIT.sampled, root, [trainer.endpoint])


async def test_the_transport_has_no_other_door_for_sets(make):
    trainer, seat = await make(), await make()
    with pytest.raises(BlobRefusedError, match="where it is shown from"):
        trainer.transport.hold(AUDIT.blob, AUDIT.data)
    payload, data = blobs.payload()
    trainer.transport.hold(payload, data)
    trainer.transport.release(5)
    as_set = BlobId(5, BlobKind.OPENINGS, payload.key)
    with pytest.raises(FetchError):
        await seat.transport.fetch(as_set, [trainer.endpoint], len(data), bytes)
