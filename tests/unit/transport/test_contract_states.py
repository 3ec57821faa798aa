"""The contract of the transports for states: participants read lists and pieces, and push none."""

import contextlib
from dataclasses import dataclass

import pytest
from support import blobs, showing, states

from troth_attestation.pieces import list_bytes
from troth_client.checkpoint.state_store import StateStore
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import BlobRefusedError, FetchError, HolderRefusedError
from troth_client.transport.exchange import Exchange, Patience
from troth_client.transport.http import http_transport
from troth_client.transport.memory import MemoryNetwork, memory_transport

STATE = states.state()
DATA = STATE.piece_bytes()
LIST = BlobId(20, BlobKind.PIECES, STATE.root)
HASH, BYTES = next(iter(DATA.items()))
PIECE = BlobId(20, BlobKind.PIECE, HASH)


@dataclass
class Participant:
    transport: Exchange
    states: StateStore

    @property
    def endpoint(self):
        return self.transport.endpoint

    def show(self, port=None):
        """Show the state, or what `port` makes of it."""
        showing.show_checkpoint(self.states, STATE)
        self.transport.show_states(self.states if port is None else port(self.states))

    async def list(self, *holders):
        return await self.transport.fetch(
            LIST,
            [one.endpoint for one in holders],
            list_bytes(STATE.shapes),
            lambda data: STATE.committed.check_pieces(data, STATE.shapes),
        )

    async def piece(self, *holders, blob=PIECE):
        endpoints = [one.endpoint for one in holders]
        return await self.transport.fetch(blob, endpoints, len(BYTES), bytes)


@pytest.fixture(params=["memory", "http"])
async def make(request, tmp_path):
    """A function that starts one more participant of the same network."""
    network, names = MemoryNetwork(), iter("abcdefgh")
    async with contextlib.AsyncExitStack() as stack:

        async def start():
            name = next(names)
            transport = {
                "memory": lambda: memory_transport(network, name),
                "http": lambda: http_transport("127.0.0.1", 0, patience=Patience(2.0)),
            }[request.param]()
            folder = showing.state_store(tmp_path / (name + "-store"))
            _, shown = stack.enter_context(folder)
            transport.show_states(shown)
            return Participant(await stack.enter_async_context(transport), shown)

        yield start


async def lacks(fetching, holder):
    with pytest.raises(FetchError) as found:
        await fetching
    assert blobs.reasons(found.value) == {holder.endpoint: "HolderLacksError"}


async def test_a_list_and_every_piece_come_from_who_shows_the_state(make):
    giver, taker = await make(), await make()
    giver.show()
    pieces = await taker.list(giver)
    assert pieces == STATE.pieces
    for piece in pieces.pieces():
        blob = BlobId(20, BlobKind.PIECE, piece.hash)
        found = await taker.transport.fetch(blob, [giver.endpoint], piece.num_bytes, bytes)
        assert found == DATA[piece.hash]


async def test_only_what_is_shown_is_readable(make):
    """Not before it is shown, not under another kind, not what others show."""
    giver, taker = await make(), await make()
    await lacks(taker.list(giver), giver)
    await lacks(taker.piece(giver), giver)
    showing.show_checkpoint(giver.states, states.state(seed=1))
    await lacks(taker.list(giver), giver)
    await lacks(taker.piece(giver), giver)
    for kind, key in ((BlobKind.PIECE, STATE.root), (BlobKind.PAYLOAD, HASH)):
        await lacks(taker.piece(giver, blob=BlobId(20, kind, key)), giver)


async def test_a_state_that_is_not_shown_any_more_is_not_readable(make):
    giver, taker = await make(), await make()
    giver.show()
    assert await taker.piece(giver) == BYTES
    for later in (30, 40):
        showing.show_checkpoint(giver.states, states.state(later, seed=later))
    await lacks(taker.list(giver), giver)
    await lacks(taker.piece(giver), giver)


async def test_rounds_neither_open_nor_forget_a_state(make):
    giver, taker = await make(), await make()
    giver.show()
    giver.transport.drop_before(100)
    assert await taker.list(giver) == STATE.pieces
    assert await taker.piece(giver) == BYTES


async def test_what_was_fetched_is_kept_by_nobody(make):
    """The draft of the fetch has it; a second copy of all weights would fill the memory."""
    giver, middle, taker = await make(), await make(), await make()
    giver.show()
    middle.transport.release(100)
    await middle.list(giver)
    await middle.piece(giver)
    await lacks(taker.list(middle), middle)
    await lacks(taker.piece(middle), middle)
    for fetching in (middle.list(), middle.piece()):
        with pytest.raises(FetchError, match="no holder is known"):
            await fetching


async def test_what_we_show_ourselves_needs_no_holder(make):
    alone = await make()
    alone.show()
    assert await alone.list() == STATE.pieces
    assert await alone.piece() == BYTES


@pytest.mark.parametrize("blob", [LIST, PIECE], ids=["list", "piece"])
async def test_nobody_can_push_a_state(make, blob):
    giver, empty = await make(), await make()
    giver.show()
    (result,) = await giver.transport.offer(blob, [empty.endpoint])
    assert type(result.error) is HolderRefusedError
    assert result.num_accepted == 0


@pytest.mark.parametrize("blob", [LIST, PIECE], ids=["list", "piece"])
async def test_who_shows_a_state_says_so_when_it_is_offered(make, blob):
    giver, full = await make(), await make()
    giver.show()
    full.show()
    (result,) = await giver.transport.offer(blob, [full.endpoint])
    assert result.error is None
    assert result.num_accepted == 1


@pytest.mark.parametrize("blob", [LIST, PIECE], ids=["list", "piece"])
async def test_the_cache_has_no_door_for_states(make, blob):
    alone = await make()
    with pytest.raises(BlobRefusedError, match="where it is shown from"):
        alone.transport.hold(blob, BYTES)
    with pytest.raises(BlobRefusedError, match="a header or a payload"):
        alone.transport.expect(blob, len(BYTES), bytes)


LIARS = {
    "wrong bytes of the right length": showing.Spoiled,
    "a byte too few": lambda inner: showing.Short(inner, -1),
    "a byte too many": lambda inner: showing.Short(inner, 1),
    "a hash too few": lambda inner: showing.Short(inner, -32),
}


@pytest.mark.parametrize("what", LIARS)
async def test_a_holder_that_sends_something_else_is_demoted_and_the_next_one_asked(make, what):
    liar, honest, taker = await make(), await make(), await make()
    liar.show(LIARS[what])
    honest.show()
    assert await taker.list(liar, honest) == STATE.pieces
    blamed = taker.transport.scores.faults(liar.endpoint)
    assert blamed > taker.transport.scores.faults(honest.endpoint)
    ranked = taker.transport.scores.ranked([liar.endpoint, honest.endpoint])
    assert ranked == [honest.endpoint, liar.endpoint]


@pytest.mark.parametrize("what", LIARS)
async def test_a_wrong_piece_is_its_holders_fault(make, what):
    liar, honest, taker = await make(), await make(), await make()
    liar.show(LIARS[what])
    honest.show()
    assert await taker.piece(liar, honest) == BYTES
    assert taker.transport.scores.faults(liar.endpoint) > 0
    assert taker.transport.scores.faults(honest.endpoint) == 0
    with pytest.raises(FetchError):
        await taker.piece(liar)


async def test_a_list_that_only_liars_have_is_refused(make):
    """A right length is no right list: the reader knows the root."""
    liar, taker = await make(), await make()
    liar.show(showing.Spoiled)
    with pytest.raises(FetchError) as found:
        await taker.list(liar)
    assert blobs.reasons(found.value) == {liar.endpoint: "HolderLiedError"}
