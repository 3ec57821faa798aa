"""Places are shared fairly: nobody keeps another address out by taking many."""

import asyncio

import pytest

from troth_client.transport.places import Places, caller_of

GREEDY, HONEST, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"


class Ended:
    """The places that were given up, in order."""

    def __init__(self):
        self.names = []

    def by(self, name):
        return lambda: self.names.append(name)


def filled(num, ended):
    places = Places(num)
    held = [places.take(GREEDY, ended.by(f"greedy {at}")) for at in range(num)]
    assert all(held)
    return places, held


def test_one_address_may_have_all_places_and_no_more():
    ended = Ended()
    places, _ = filled(4, ended)
    assert places.take(GREEDY, ended.by("one too many")) is None
    assert ended.names == []


def test_a_newcomer_takes_the_oldest_place_of_the_address_with_the_most():
    ended = Ended()
    places, _ = filled(4, ended)
    assert places.take(HONEST, ended.by("honest 0"))
    assert places.take(HONEST, ended.by("honest 1"))
    assert ended.names == ["greedy 0", "greedy 1"]
    # Both have two now: nobody is better off by a change.
    assert places.take(HONEST, ended.by("honest 2")) is None
    assert places.take(GREEDY, ended.by("greedy 4")) is None
    assert places.take(THIRD, ended.by("third 0"))
    assert len(ended.names) == 3


def test_a_place_is_given_back_once():
    ended = Ended()
    places, held = filled(2, ended)
    assert places.take(HONEST, ended.by("honest"))
    places.leave(held[0])  # its connection ends after the place was taken from it
    assert places.take(GREEDY, ended.by("back")) is None
    places.leave(held[1])
    assert places.take(GREEDY, ended.by("back"))


async def test_those_who_wait_go_on_one_by_one_the_poorest_address_first():
    ended = Ended()
    places, (first, *_) = filled(2, ended)
    order = []

    async def use(caller):
        async with places.wait(caller, ended.by(caller)):
            order.append(caller)

    greedy = asyncio.create_task(use(GREEDY))
    await asyncio.sleep(0)
    honest = asyncio.create_task(use(HONEST))  # displaces, and does not wait behind the other
    await honest
    await greedy  # takes the place that the honest one gave back
    assert order == [HONEST, GREEDY]
    places.leave(first)  # given up before: nothing changes
    assert ended.names == ["greedy 0"]


async def test_a_waiter_that_is_cancelled_loses_nobody_a_place():
    ended = Ended()
    places, (only,) = filled(1, ended)
    waiting = [asyncio.create_task(places.wait(GREEDY, ended.by("")).__aenter__()) for _ in "ab"]
    await asyncio.sleep(0)
    places.leave(only)  # wakes the first, which is cancelled before it runs
    waiting[0].cancel()
    await asyncio.wait_for(waiting[1], 5)
    assert waiting[0].cancelled()


async def test_a_place_that_is_given_back_as_its_next_taker_is_cancelled_goes_to_another():
    """Somebody closes all its connections at once, some that had a place and some that waited."""
    ended = Ended()
    places, (only,) = filled(1, ended)
    waiting = [asyncio.create_task(places.wait(GREEDY, ended.by("")).__aenter__()) for _ in "ab"]
    await asyncio.sleep(0)
    waiting[0].cancel()  # it is listed until it runs
    places.leave(only)
    await asyncio.wait_for(waiting[1], 5)
    assert waiting[0].cancelled()


@pytest.mark.parametrize(
    ("peer", "caller"),
    [
        (("192.0.2.1", 9), "192.0.2.1"),
        (("::ffff:192.0.2.1", 9, 0, 0), "192.0.2.1"),
        (("2001:db8:1:2:3:4:5:6", 9, 0, 0), "2001:db8:1:2::/64"),
        (("2001:db8:1:2::9", 9, 0, 0), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 9, 0, 2), "fe80::/64"),
        (None, ""),
        ("", ""),
    ],
)
def test_callers_count_by_what_one_host_cannot_choose(peer, caller):
    assert caller_of(peer) == caller
