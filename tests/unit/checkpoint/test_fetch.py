"""Fetching a state: from whoever has it, each piece once, and on after every interruption."""

import asyncio
import contextlib
from dataclasses import dataclass, field

import numpy as np
import pytest
from support import showing, states

from troth_client.checkpoint.errors import CheckpointGoneError
from troth_client.checkpoint.fetch import (
    fetch_draft,
    fetch_list,
    fetch_pieces,
)
from troth_client.checkpoint.folder import CheckpointFolder, Draft
from troth_client.runtime.base import ProcessRuntime
from troth_client.runtime.files import DiskFullError
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobKind
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_client.transport.parallel import PARALLEL, Source

STATE = states.state()
TOTAL = STATE.pieces.num_bytes


@dataclass
class Taker:
    """The one who fetches. It asks `names`, and gives up after `patience` vain tries."""

    transport: object
    names: list[str]
    patience: int = 0
    events: EventList = field(default_factory=EventList)
    num_asked: int = 0
    num_tries: int = 0
    num_steps: int = 0

    @property
    def source(self):
        runtime = ProcessRuntime(0.0)
        doors = (self.holders, self.is_vain, self.note_progress)
        return Source(self.transport, runtime, self.events, *doors)

    async def holders(self):
        self.num_tries += 1
        return self.names

    def note_progress(self):
        self.num_steps += 1

    def is_vain(self):
        self.num_asked += 1
        return self.num_asked > self.patience


class Holders:
    """The holders of a memory network by name."""

    def __init__(self, stack, folder):
        self.network = MemoryNetwork()
        self.counts = {}
        self._stack, self._folder = stack, folder

    async def add(self, name, state=STATE, port=None):
        transport = memory_transport(self.network, name)
        store, shown = self._stack.enter_context(showing.state_store(self._folder / name))
        if state is not None:
            showing.show_round(store, shown, state)
        self.counts[name] = showing.shows(transport, shown if port is None else port(shown))
        return await self._stack.enter_async_context(transport)

    @property
    def fetched(self):
        return [hash_ for count in self.counts.values() for hash_ in count.pieces]

    async def taker(self, **settings):
        return Taker(await self.add("taker", None), [*self.counts][:-1], **settings)


@pytest.fixture
async def holders(tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        yield Holders(stack, tmp_path)


async def test_a_state_comes_whole_from_several_holders(holders, tmp_path):
    for name in "abc":
        await holders.add(name)
    taker = await holders.taker()
    pieces = await fetch_list(taker.source, STATE.committed, STATE.shapes)
    assert pieces == STATE.pieces
    with Draft(tmp_path / "20", pieces) as draft:
        assert await fetch_draft(taker.source, draft) == TOTAL
        draft.finish(STATE.manifest)
    found = CheckpointFolder.open(tmp_path / "20").weights()
    for name, value in STATE.weights.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name, strict=True)
    assert sorted(holders.fetched) == sorted(STATE.piece_bytes())
    assert [name for name, count in holders.counts.items() if count.pieces] == ["a", "b", "c"]


async def test_progress_begins_with_what_is_here_and_ends_with_everything(holders, tmp_path):
    await holders.add("a")
    taker = await holders.taker()
    first = next(STATE.pieces.pieces())
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        draft.put(first, STATE.piece_bytes()[first.hash])
        await fetch_draft(taker.source, draft)
    events = taker.events.named("fetching")
    assert [events[0]["done_bytes"], events[-1]["done_bytes"]] == [first.num_bytes, TOTAL]
    assert {event["total_bytes"] for event in events} == {TOTAL}
    assert {event["round"] for event in events} == {20}


async def test_the_list_the_hashing_and_each_piece_are_a_step_forward(holders, tmp_path):
    """A fetch that moves on is not given up, however slow it is."""
    await holders.add("a")
    taker = await holders.taker()
    pieces = await fetch_list(taker.source, STATE.committed, STATE.shapes)
    assert taker.num_steps == 1
    with Draft(tmp_path / "20", pieces) as draft:
        await fetch_draft(taker.source, draft)
        assert taker.num_steps == 2 + len(STATE.piece_bytes())
        await fetch_draft(taker.source, draft)
    assert taker.num_steps == 3 + len(STATE.piece_bytes())


async def test_pieces_with_equal_bytes_travel_once(holders, tmp_path):
    """The norms of a new model are all ones."""
    tensors = {name: np.ones_like(value) for name, value in STATE.weights.items()}
    ones = states.state(tensors=tensors)
    await holders.add("a", ones)
    taker = await holders.taker()
    with Draft(tmp_path / "20", ones.pieces) as draft:
        fetched = await fetch_draft(taker.source, draft)
        assert all(draft.has(piece) for piece in ones.pieces.pieces())
    assert sorted(holders.fetched) == sorted(set(ones.piece_bytes()))
    assert fetched == sum(map(len, ones.piece_bytes().values()))
    assert fetched < ones.pieces.num_bytes
    assert taker.events.named("fetching")[-1]["done_bytes"] == ones.pieces.num_bytes


async def test_nothing_is_asked_for_when_everything_is_here(holders, tmp_path):
    await holders.add("a")
    taker = await holders.taker()
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        await fetch_draft(taker.source, draft)
        taker.num_tries = 0
        assert await fetch_draft(taker.source, draft) == 0
    assert taker.num_tries == 0


async def test_a_list_of_another_root_is_never_followed(holders):
    await holders.add("a", port=lambda shown: showing.Spoiled(shown, (BlobKind.PIECES,)))
    taker = await holders.taker(patience=2)
    with pytest.raises(CheckpointGoneError, match="weights of round 20"):
        await fetch_list(taker.source, STATE.committed, STATE.shapes)
    assert taker.num_tries == 3
    assert holders.fetched == []


async def test_it_gives_up_only_when_it_is_vain(holders, tmp_path):
    """Nobody is asked whether to give up while somebody delivers."""
    await holders.add("a")
    taker = await holders.taker()
    await fetch_list(taker.source, STATE.committed, STATE.shapes)
    assert taker.num_asked == 0
    holders.network.cut("a")
    taker.patience = 30
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        with pytest.raises(CheckpointGoneError, match="serves the weights of round 20"):
            await fetch_draft(taker.source, draft)
        assert not any(draft.has(piece) for piece in STATE.pieces.pieces())
    assert taker.num_asked > 30


async def test_holders_that_come_later_are_asked(holders, tmp_path):
    """The list of holders is read anew before each try."""
    taker = await holders.taker(patience=10**6)
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        fetching = asyncio.create_task(fetch_draft(taker.source, draft))
        while taker.num_tries < 3 * PARALLEL:
            await asyncio.sleep(0)
        await holders.add("late")
        taker.names = ["late"]
        assert await fetching == TOTAL


async def test_an_error_of_who_takes_ends_the_fetch(holders):
    """A full disk: the other pieces on their way are given up, and the error is the caller's."""
    await holders.add("a")
    taker = await holders.taker()
    taken = []

    def take(piece, _):
        taken.append(piece)
        if len(taken) == 3:
            raise DiskFullError("room", "none", "Free some space.")

    before = asyncio.all_tasks()
    with pytest.raises(DiskFullError):
        await fetch_pieces(taker.source, STATE.pieces, list(STATE.pieces.pieces()), take)
    assert asyncio.all_tasks() == before
    assert len(taken) < len(list(STATE.pieces.pieces()))


async def test_no_more_pieces_are_asked_for_at_a_time_than_allowed(holders):
    await holders.add("a")
    taker = await holders.taker()
    running, most = 0, 0
    fetch = taker.transport.fetch

    async def counted(*arguments):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        found = await fetch(*arguments)
        running -= 1
        return found

    taker.transport.fetch = counted
    everything = list(STATE.pieces.pieces())
    assert await fetch_pieces(taker.source, STATE.pieces, everything, lambda *_: None) == TOTAL
    assert most == PARALLEL


async def test_a_cancelled_fetch_goes_on_with_what_is_missing(holders, tmp_path):
    await holders.add("a")
    taker = await holders.taker()
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()

    def after_five():
        if len(holders.counts["a"].pieces) == 5:
            loop.call_soon_threadsafe(arrived.set)

    holders.counts["a"].on_piece = after_five
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        fetching = asyncio.create_task(fetch_draft(taker.source, draft))
        await arrived.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
    with Draft(tmp_path / "20", STATE.pieces) as draft:
        missing = draft.missing()
        holders.counts["a"].served.clear()
        fetched = await fetch_draft(taker.source, draft)
    assert fetched == sum(piece.num_bytes for piece in missing)
    assert sorted(holders.fetched) == sorted(piece.hash for piece in missing)
