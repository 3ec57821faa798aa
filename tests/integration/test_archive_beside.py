"""An archive that begins while its RPC node is away, or late: beside a participant, and alone."""

import asyncio
import contextlib
import errno
import threading
from functools import partial

import pytest
from support.hostile_rpc import http
from support.program.ledger_files import client_of, open_ledger
from support.program.rounds import RoundDriver
from support.rpc_nodes import Weather, nothing, refused
from support.todays_node import TodaysNode

from troth_client.archive.book import SPARE_ROUNDS
from troth_client.archive.fetching import Fetching
from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.following import ODD_LOOKS, Following
from troth_client.archive.keeper import Keeper, Ports
from troth_client.archive.process import ArchiveSettings, archive_beside, keep_archive
from troth_client.archive.room import Keeping
from troth_client.archive.wanting import MOST_A_LOOK
from troth_client.runtime.base import ProcessRuntime, end
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobKind
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.ledger.file import Ledger
from troth_coordinator.ledger.fold import Fold
from troth_localnet.direct import DirectRpc

ROUNDS = 3
AWAY = http(b"", "503 Service Unavailable")
NOT_ASKED = "not asked for yet"
FOUND = "getGenesisHash"
"""The last question of an archive before it begins to look."""


class Heard(EventList):
    """A sink in which a test waits for an event, or for the end of an archive."""

    async def wait_for(self, name, **fields):
        async with asyncio.timeout(60.0):
            while not any(map(self._is_end, self.events)):
                if found := [one for one in self.named(name) if one.items() >= fields.items()]:
                    return found[0]
                await asyncio.sleep(0.01)
        raise AssertionError(f"the archive has ended: {self.events}")

    @staticmethod
    def _is_end(event):
        return event["event"] == "archive_failed"


def finished(members, rounds, **params):
    """A finished run whose members are not there any more."""
    made = RoundDriver(members, max_rounds=rounds, checkpoint_every=3, keep_rounds=2, **params)
    for owner in made.owners:
        made.send(make.set_endpoint(made.at, owner.pubkey(), "http://127.0.0.1:9"), owner)
    made.start()
    made.play(rounds)
    made.cool_down()
    return made


@pytest.fixture(scope="module")
def driver():
    return finished(4, ROUNDS)


@pytest.fixture(scope="module")
def long_ago():
    """A run of which more is missing than an archive asks for in two looks."""
    return finished(16, 10)


def genesis(driver):
    return bytes(driver.chain.blocks.genesis_hash)


@contextlib.asynccontextmanager
async def beside(driver, rpc, path, poll_seconds=0.01):
    """An archive beside a participant of which nobody has any bytes; yields its events."""
    settings = ArchiveSettings(driver.at.run, path, poll_seconds=poll_seconds)
    client, events = CoordinatorClient(rpc), Heard()
    async with (
        memory_transport(MemoryNetwork(), "archivist", listens=False) as wire,
        archive_beside(settings, client, wire, events, genesis(driver)),
    ):
        yield events


def hash_of(path):
    """The chain hash of all events in an archive's ledger."""
    ledger, fold = Ledger.of(path / "ledger.jsonl"), Fold()
    reader = ledger.head.reader()
    for entry in ledger.entries():
        fold.absorb(reader.events(entry))
    return fold.hash


async def test_a_node_that_is_away_at_first_delays_an_archive_only(driver, tmp_path):
    async with TodaysNode(driver.chain) as node, HttpRpc(node.url) as rpc:
        node.answer, answers = lambda _: AWAY, node.answer
        async with beside(driver, rpc, tmp_path) as events:
            await events.wait_for("chain_unreachable")
            node.answer = answers
            await events.wait_for("archive_round", round=ROUNDS)
    assert hash_of(tmp_path) == driver.run.chain_hash


def of_a_disk(_name):
    return OSError(errno.EIO, "Input/output error")


def out_of_memory(_name):
    return MemoryError("std::bad_alloc")


@pytest.mark.parametrize(
    ("mood", "event"),
    [
        ({"raises": refused}, "chain_unreachable"),
        ({"alter": nothing}, "archive_trouble"),
        ({"raises": of_a_disk}, "archive_trouble"),
        ({"raises": out_of_memory}, "archive_trouble"),
    ],
    ids=["away", "no account", "disk", "memory"],
)
async def test_what_may_pass_ends_no_archive_beside_a_participant(driver, tmp_path, mood, event):
    node = Weather("node", DirectRpc(driver.chain), **mood)
    async with beside(driver, node, tmp_path) as events:
        await events.wait_for(event)
        node.heal()
        await events.wait_for("archive_round", round=ROUNDS)
    assert hash_of(tmp_path) == driver.run.chain_hash


class Behind(DirectRpc):
    """A node that lists five transactions at a time, and none of the last `lag_slots`."""

    lag_slots = num_calls = 0

    async def signatures(self, address, *, before=None, until=None):
        self.num_calls += 1
        newest = self.chain.slot - self.lag_slots
        known = [one for one in await super().signatures(address) if one.slot <= newest]
        names = [one.signature for one in known]
        first = names.index(before) + 1 if before in names else 0
        last = names.index(until) if until in names else len(names)
        return known[first:last][:5]


async def test_a_node_that_lacks_the_last_entry_is_not_asked_for_its_whole_history(tmp_path):
    """A backend some slots behind another one: it may know none of the last two entries."""
    driver = RoundDriver(4, max_rounds=9, checkpoint_every=3, keep_rounds=2)
    driver.start()
    driver.play(4)
    rpc, num_calls, taken = Behind(driver.chain), [], []
    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        following = Following(
            CoordinatorClient(rpc), ledger, EventList(), taken.append, taken.clear
        )
        await following.look()
        driver.chain.advance()
        driver.commit_all()
        await following.look()
        driver.chain.advance()
        for index in range(4):
            driver.attest(index)
        rpc.lag_slots = 2
        for _ in range(ODD_LOOKS):
            rpc.num_calls = 0
            with contextlib.suppress(MalformedReplyError):
                await following.look()
            num_calls.append(rpc.num_calls)
        assert max(num_calls) <= 5
        rpc.lag_slots = 0
        await following.look()
        assert ledger.fold.hash == driver.run.chain_hash


async def test_trouble_that_lasts_is_told_ever_more_seldom(driver, tmp_path):
    node = Weather("node", DirectRpc(driver.chain), raises=out_of_memory)
    async with beside(driver, node, tmp_path) as events, asyncio.timeout(60.0):
        while node.calls.count("get_accounts") < 20:
            await asyncio.sleep(0.01)
    counts = [one["count"] for one in events.named("archive_trouble")]
    assert counts[:5] == [1, 2, 4, 8, 16]
    assert len(counts) < 8


async def test_an_archive_that_ends_for_a_reason_nobody_foresaw_says_so(driver, tmp_path):
    node = Weather("node", DirectRpc(driver.chain), raises=lambda _: KeyError("slot"))
    async with beside(driver, node, tmp_path) as events:
        with pytest.raises(AssertionError, match="has ended"):
            await events.wait_for("archive_round", round=ROUNDS)
    (told,) = events.named("archive_failed")
    assert told["reason"] == "KeyError('slot')"


async def test_an_archive_alone_goes_on_where_the_first_look_fails(driver, tmp_path):
    events, num_away = Heard(), 3
    async with TodaysNode(driver.chain) as node, HttpRpc(node.url) as rpc:
        answers = node.answer

        def answer(request):
            """Be away for some calls, once the archive has found the run and the chain."""
            asked = [one["method"] for one in node.requests]
            since = asked[asked.index(FOUND) + 1 :] if FOUND in asked else []
            return AWAY if 0 < len(since) <= num_away else answers(request)

        node.answer = answer
        settings = ArchiveSettings(driver.at.run, tmp_path, poll_seconds=0.01)
        keeping = asyncio.create_task(keep_archive(settings, CoordinatorClient(rpc), events))
        waiting = asyncio.create_task(events.wait_for("archive_round", round=ROUNDS))
        await asyncio.wait({keeping, waiting}, return_when=asyncio.FIRST_COMPLETED)
        await end(waiting)
        assert len(events.named("chain_unreachable")) == num_away
        assert not keeping.done()
        await end(keeping)
    assert hash_of(tmp_path) == driver.run.chain_hash


class CountingFolder(ArchiveFolder):
    """A folder that counts the lines of its lists, and notes which threads write them."""

    def __init__(self, path):
        super().__init__(path, durable=False)
        self.num_lines, self.writers = [], set()

    def write_missing(self, forgotten_before, missing):
        found = list(missing)
        self.num_lines.append(len(found))
        self.writers.add(threading.get_ident())
        super().write_missing(forgotten_before, found)


@contextlib.asynccontextmanager
async def keeping(driver, folder, events=None, make_fetching=Fetching):
    """A keeper in a folder; nobody that it asks has any bytes."""
    with open_ledger(driver, folder.ledger) as ledger:
        async with memory_transport(MemoryNetwork(), "archivist", listens=False) as wire:
            fetching, told = make_fetching(wire, folder), events or EventList()
            ports = Ports(client_of(driver), ProcessRuntime(0), told, fetching, folder)
            yield Keeper(folder, ledger, ports, Keeping())


async def test_an_archive_that_begins_late_writes_as_many_lines_as_it_asks_for_items(
    long_ago, tmp_path
):
    """Members have forgotten everything, so most of its looks find that another item is gone."""
    folder, looks, most = CountingFolder(tmp_path), 0, []
    async with keeping(long_ago, folder) as keeper:
        while not keeper.is_done:
            await keeper.look()
            looks += 1
            most.append(sum(folder.num_lines) - MOST_A_LOOK * looks)
    assert max(most) <= keeper.num_missing, "more than the first list, and 64 lines a look"
    assert threading.get_ident() not in folder.writers
    assert len(not_asked_for(folder)) == 0
    assert len(folder.missing()) == keeper.num_missing


async def test_an_archive_that_begins_late_asks_first_for_what_members_still_have(tmp_path):
    """It asked for 64 old headers a look, while the new ones went out of reach as well."""
    driver, folder = finished(4, 45, ring=16), ArchiveFolder(tmp_path)
    async with keeping(driver, folder) as keeper:
        await keeper.look()
    headers = [one for one in folder.missing() if one["kind"] == "header"]
    asked = {one["round"] for one in headers if one["why"] != NOT_ASKED}
    assert min(asked) == 45 - 16 - SPARE_ROUNDS
    assert len(headers) == 45 * 4


class FailingForConfigs(Fetching):
    """Asks nobody for configs: something is wrong with this machine."""

    async def fetch(self, item, book):
        if item.kind is BlobKind.CONFIG:
            raise self.trouble
        return await super().fetch(item, book)


@pytest.mark.parametrize("make_error", [of_a_disk, out_of_memory])
async def test_trouble_with_one_item_delays_no_other(driver, tmp_path, make_error):
    folder, events, error = ArchiveFolder(tmp_path), EventList(), make_error("")
    failing = partial(FailingForConfigs, trouble=error)
    async with keeping(driver, folder, events, failing) as keeper:
        await keeper.look()
    (config,) = [one for one in folder.missing() if one["kind"] == "config"]
    assert config["why"] == str(error)
    assert len(not_asked_for(folder)) == 0
    assert [one["reason"] for one in events.named("archive_trouble")] == [str(error)]


def not_asked_for(folder):
    return [one for one in folder.missing() if one["why"] == NOT_ASKED]


async def test_the_list_is_exact_after_a_stop(long_ago, tmp_path):
    """Of two looks, the second one comes after the stop: it leaves the list as it is."""
    rpc, folder = DirectRpc(long_ago.chain), ArchiveFolder(tmp_path)
    async with beside(long_ago, rpc, tmp_path, poll_seconds=600.0) as events:
        await events.wait_for("archive_round", round=10)
        num_missing = len(folder.missing())
        assert len(not_asked_for(folder)) == num_missing - MOST_A_LOOK
    assert len(folder.missing()) == num_missing
    assert len(not_asked_for(folder)) == num_missing - 2 * MOST_A_LOOK
