"""Items that an archive lacks: a look asks for no more, and writes no more, where many do."""

import asyncio
import os
import random
import threading

import pytest

from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.items import Item
from troth_client.archive.listing import OLDEST, MissingList
from troth_client.archive.wanting import MOST_A_LOOK, Wanting
from troth_client.runtime.base import ProcessRuntime
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobKind

NOBODY = "nobody has it"


class Counted(int):
    """The number of a round that counts how often it is compared."""

    num_compared = 0

    def __eq__(self, other):
        Counted.num_compared += 1
        return int(self) == int(other)

    def __lt__(self, other):
        Counted.num_compared += 1
        return int(self) < int(other)

    __hash__ = int.__hash__


def header(round_):
    return Item(BlobKind.HEADER, os.urandom(32), round_, 1)


def wanting(*rounds, changed=lambda: None):
    made = Wanting(changed)
    for round_ in rounds:
        made.add(header(round_))
    return made


def num_compared(num_missing, looks=20):
    """The comparisons of so many looks that fail, after the first one."""
    made = wanting(*map(Counted, range(num_missing)))
    for look in range(looks):
        for one in made.due(look):
            made.failed(one, look, NOBODY)
        Counted.num_compared *= look > 0
    return Counted.num_compared


def test_what_a_look_chooses_from_does_not_grow_with_what_is_missing():
    few, many = num_compared(3_000), num_compared(9_000)
    assert many < 1.5 * few


def test_each_look_asks_for_the_most_urgent_of_all_that_are_due():
    chance, rounds = random.Random(7), iter(range(10_000))
    made, expected = Wanting(), {}
    for look in range(200):
        for round_ in (next(rounds) for _ in range(chance.randrange(60))):
            made.add(header(round_))
            expected[round_] = look
        asked = made.due(look)
        is_due = sorted(round_ for round_, due in expected.items() if due <= look)
        assert [one.item.round for one in asked] == is_due[:MOST_A_LOOK]
        for one in asked:
            act = chance.choice(["got", "failed", "wait", "give up", "cut short"])
            if act == "got":
                made.got(one.item)
            elif act == "failed":
                made.failed(one, look, NOBODY)
            elif act == "wait":
                made.wait(one, look, NOBODY)
            elif act == "give up":
                made.give_up(one)
            expected[one.item.round] = one.due
            if act in ("got", "give up"):
                del expected[one.item.round]


def test_what_members_still_have_comes_before_what_they_have_forgotten():
    """Also where rounds go by while an item is due."""
    past = set(range(100))
    made = Wanting(is_past=lambda item: item.round in past)
    for round_ in range(200):
        made.add(header(round_))
    assert [one.item.round for one in made.due(0)] == list(range(100, 164))
    past.update(range(190))
    assert [one.item.round for one in made.due(1)] == [*range(190, 200), *range(54)]


@pytest.fixture
def folder(tmp_path):
    return ArchiveFolder(tmp_path, durable=False)


def listed(folder):
    return [one["round"] for one in folder.missing()]


async def looked(made, missing, look):
    """A look of an archive that is at work; whether it has written the list."""
    is_due = made.is_due(look, 0, missing.num_missing)
    if is_due:
        await made.write(look, 0, missing)
    return is_due


@pytest.mark.parametrize(
    ("num_missing", "pause"), [(1, 1), (64, 1), (65, 2), (640, 10), (4_000, OLDEST)], ids=str
)
async def test_the_list_is_written_the_more_seldom_the_longer_it_is(folder, num_missing, pause):
    made = MissingList(folder, ProcessRuntime(0), EventList())
    missing = wanting(*range(num_missing), changed=made.has_changed)
    written = []
    for look in range(1, 2 * pause + 2):
        made.has_changed()
        if await looked(made, missing, look):
            written.append(look)
    assert written == [1, 1 + pause, 1 + 2 * pause]


async def test_a_list_without_news_is_not_written_again(folder):
    made = MissingList(folder, ProcessRuntime(0), EventList())
    missing = wanting(1, changed=made.has_changed)
    assert await looked(made, missing, 1)
    assert not await looked(made, missing, 500)
    (one,) = missing.due(500)
    missing.failed(one, 500, NOBODY)
    assert await looked(made, missing, 501)
    assert folder.missing()[0]["why"] == NOBODY
    missing.failed(one, 502, NOBODY)
    assert not await looked(made, missing, 502)
    assert made.is_due(503, forgotten_before=4, num_missing=1)


async def test_a_list_of_which_nothing_is_left_says_so_at_once(folder):
    made = MissingList(folder, ProcessRuntime(0), EventList())
    missing = wanting(*range(1_000), changed=made.has_changed)
    await looked(made, missing, 1)
    assert listed(folder) == list(range(1_000))
    for item, _ in missing.items()[1:]:
        missing.got(item)
    await looked(made, missing, 2)
    assert listed(folder) == [0]
    missing.got(missing.items()[0][0])
    await looked(made, missing, 3)
    assert listed(folder) == []


class SlowAtFirst(ArchiveFolder):
    """A folder whose first write takes until `opened`, which a later write sets, too."""

    def __init__(self, path):
        super().__init__(path, durable=False)
        self.begun, self.opened = threading.Event(), threading.Event()

    def write_missing(self, forgotten_before, missing):
        found = list(missing)
        if not self.begun.is_set():
            self.begun.set()
            assert self.opened.wait(60.0)
        super().write_missing(forgotten_before, found)
        self.opened.set()


async def test_the_last_list_stays_where_an_earlier_write_was_cut_short(tmp_path):
    """A stop cancels a look, but no thread: it writes an older list meanwhile."""
    folder = SlowAtFirst(tmp_path)
    made = MissingList(folder, ProcessRuntime(0), EventList())
    missing = wanting(1, 2, changed=made.has_changed)
    cut = asyncio.create_task(made.write(1, 0, missing))
    assert await asyncio.to_thread(folder.begun.wait, 60.0)
    cut.cancel()
    missing.got(missing.items()[0][0])
    last = asyncio.create_task(made.write(2, 0, missing))
    await asyncio.wait({last}, timeout=0.2)  # the time in which a wrong one would be done
    folder.opened.set()
    await last
    assert cut.cancelled()
    assert listed(folder) == [2]
