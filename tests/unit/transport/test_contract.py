"""The contract of every transport: memory, also with a store on disk, and HTTP on loopback."""

import contextlib

import pytest
from support import blobs

from troth_client.compression.errors import PaddingError
from troth_client.transport.errors import (
    BlobRefusedError,
    FetchError,
    HolderError,
    HolderLiedError,
    HolderUnreachableError,
    NotReleasedError,
)
from troth_client.transport.exchange import Patience
from troth_client.transport.files import FolderBlobs
from troth_client.transport.http import http_transport
from troth_client.transport.memory import MemoryNetwork, memory_transport


@pytest.fixture(params=["memory", "stored", "http"])
async def make(request, tmp_path):
    """A function that starts one more participant of the same network."""
    network, names = MemoryNetwork(), iter("abcdefgh")
    async with contextlib.AsyncExitStack() as stack:

        async def start():
            name = next(names)
            made = {
                "memory": lambda: memory_transport(network, name),
                "stored": lambda: memory_transport(
                    network, name, blobs=FolderBlobs(tmp_path / name)
                ),
                "http": lambda: http_transport("127.0.0.1", 0, patience=Patience(2.0)),
            }[request.param]()
            return await stack.enter_async_context(made)

        yield start


NOWHERE = {"memory": "nobody", "stored": "nobody", "http": "http://127.0.0.1:9"}


async def lacks(taker, blob, holder, data):
    with pytest.raises(FetchError) as found:
        await taker.fetch(blob, [holder.endpoint], len(data), bytes)
    assert blobs.reasons(found.value) == {holder.endpoint: "HolderLacksError"}


async def test_nothing_of_a_round_is_readable_before_its_release(make):
    giver, taker = await make(), await make()
    blob, data = blobs.payload(round_=5)
    signed, signed_data = blobs.header(round_=5)
    giver.hold(blob, data)
    giver.hold(signed, signed_data)
    giver.release(4)
    await lacks(taker, blob, giver, data)
    await lacks(taker, signed, giver, signed_data)
    giver.release(5)
    assert await taker.fetch(blob, [giver.endpoint], len(data), bytes) == data
    args = (signed, [giver.endpoint], len(signed_data), blobs.signed)
    assert await taker.fetch(*args) == signed_data


async def test_the_gate_opens_for_earlier_rounds_and_never_closes(make):
    giver, taker = await make(), await make()
    giver.release(7)
    giver.release(3)
    for round_ in (0, 6, 7):
        blob, data = blobs.payload(round_, seed=round_)
        giver.hold(blob, data)
        assert await taker.fetch(blob, [giver.endpoint], len(data), bytes) == data
    blob, data = blobs.payload(8, seed=8)
    giver.hold(blob, data)
    await lacks(taker, blob, giver, data)


async def test_what_was_fetched_is_served_to_others(make):
    giver, middle, taker = await make(), await make(), await make()
    blob, data = blobs.payload(leaves=9)
    giver.hold(blob, data)
    giver.release(5)
    middle.release(5)
    await middle.fetch(blob, [giver.endpoint], len(data), bytes)
    assert await taker.fetch(blob, [middle.endpoint], len(data), bytes) == data


async def test_what_was_fetched_early_stays_behind_the_own_gate(make):
    giver, middle, taker = await make(), await make(), await make()
    blob, data = blobs.payload()
    giver.hold(blob, data)
    giver.release(5)
    await middle.fetch(blob, [giver.endpoint], len(data), bytes)
    await lacks(taker, blob, middle, data)


async def test_bytes_that_are_held_need_no_holder(make):
    alone = await make()
    blob, data = blobs.payload()
    alone.hold(blob, data)
    assert await alone.fetch(blob, [], len(data), len) == len(data)


async def test_holding_bytes_under_another_address_is_refused(make):
    alone = await make()
    (blob, data), (other, _) = blobs.payload(), blobs.payload(seed=1)
    with pytest.raises(BlobRefusedError, match="address"):
        alone.hold(other, data)
    with pytest.raises(BlobRefusedError):
        alone.hold(blob, b"")


async def test_a_fetch_without_holders_says_so(make):
    alone = await make()
    blob, data = blobs.payload()
    with pytest.raises(FetchError, match="no holder is known"):
        await alone.fetch(blob, [alone.endpoint], len(data), bytes)


async def test_holders_that_are_away_cost_only_a_try(make, request):
    giver, taker = await make(), await make()
    away = NOWHERE[request.node.callspec.params["make"]]
    blob, data = blobs.payload()
    giver.hold(blob, data)
    giver.release(5)
    assert await taker.fetch(blob, [away, giver.endpoint], len(data), bytes) == data
    assert taker.scores.faults(away) > 0
    assert taker.scores.ranked([away, giver.endpoint]) == [giver.endpoint, away]
    (result,) = await giver.push(5, [away])
    assert isinstance(result.error, HolderUnreachableError)


async def test_a_size_that_differs_from_the_header_is_a_failure(make):
    giver, taker = await make(), await make()
    blob, data = blobs.payload()
    giver.hold(blob, data)
    giver.release(5)
    for wrong in (len(data) - 1, len(data) + 1024):
        with pytest.raises(FetchError) as found:
            await taker.fetch(blob, [giver.endpoint], wrong, bytes)
        ((_, failure),) = found.value.failures
        assert isinstance(failure, HolderError)


async def test_a_malformed_payload_is_its_senders_fault_and_kept_by_nobody(make):
    giver, taker = await make(), await make()
    blob, data = blobs.payload()
    giver.hold(blob, data)
    giver.release(5)

    def judge(_):
        raise PaddingError("zeros", "ones", "")

    with pytest.raises(PaddingError):
        await taker.fetch(blob, [giver.endpoint, giver.endpoint], len(data), judge)
    assert taker.scores.faults(giver.endpoint) == 0
    taker.release(5)
    third = await make()
    await lacks(third, blob, taker, data)


async def test_a_header_with_a_bad_signature_is_its_holders_fault(make):
    """The address of a header does not cover the signature, so a holder can spoil it."""
    liar, honest, taker = await make(), await make(), await make()
    blob, data = blobs.header()
    liar.hold(blob, data[:-1] + b"x")
    honest.hold(blob, data)
    for one in (liar, honest):
        one.release(5)
    holders = [liar.endpoint, honest.endpoint]
    assert await taker.fetch(blob, holders, len(data), blobs.signed) == data
    assert taker.scores.faults(liar.endpoint) > taker.scores.faults(honest.endpoint)


async def test_push_before_release_is_refused_at_home(make):
    giver, taker = await make(), await make()
    blob, data = blobs.payload()
    giver.hold(blob, data)
    with pytest.raises(NotReleasedError, match="round 5"):
        await giver.push(5, [taker.endpoint])


async def test_a_push_reaches_a_holder_that_expects_it(make):
    giver, middle, taker = await make(), await make(), await make()
    blob, data = blobs.payload()
    signed, signed_data = blobs.header()
    giver.hold(blob, data)
    giver.hold(signed, signed_data)
    giver.release(5)
    middle.release(5)

    def then_the_payload(found):
        blobs.signed(found)
        middle.expect(blob, len(data), bytes)

    middle.expect(signed, len(signed_data), then_the_payload)
    giver.scores.failed(middle.endpoint, HolderLiedError("", "", ""))
    before = giver.scores.faults(middle.endpoint)
    (result,) = await giver.push(5, [middle.endpoint, giver.endpoint])
    assert giver.scores.faults(middle.endpoint) == before, "to take a push makes up for no lie"
    assert result.holder == middle.endpoint
    assert result.num_accepted == 2
    assert result.error is None
    # The giver dies; the holder serves what it was given.
    assert await middle.fetch(blob, [giver.endpoint], len(data), bytes) == data
    assert await middle.fetch(signed, [giver.endpoint], len(signed_data), bytes) == signed_data
    assert await taker.fetch(blob, [middle.endpoint], len(data), bytes) == data


async def test_earlier_rounds_are_forgotten(make):
    giver, taker = await make(), await make()
    (old, old_data), (new, new_data) = blobs.payload(4, seed=4), blobs.payload(5, seed=5)
    giver.hold(old, old_data)
    giver.hold(new, new_data)
    giver.release(5)
    giver.drop_before(5)
    await lacks(taker, old, giver, old_data)
    assert await taker.fetch(new, [giver.endpoint], len(new_data), bytes) == new_data


async def test_equal_bytes_of_two_rounds_outlive_the_first(make):
    giver, taker = await make(), await make()
    first, data = blobs.payload(4)
    second, _ = blobs.payload(6)
    giver.hold(first, data)
    giver.release(4)
    giver.hold(second, data)
    assert await taker.fetch(first, [giver.endpoint], len(data), bytes) == data
    giver.release(6)
    giver.drop_before(6)
    other = await make()
    assert await other.fetch(second, [giver.endpoint], len(data), bytes) == data
