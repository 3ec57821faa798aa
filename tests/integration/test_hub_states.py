"""Weights in a hub: what it takes of them, from whom, how much, and what is left after trouble."""

import asyncio
import contextlib
import random
from types import SimpleNamespace

import pytest
from support import disks, showing, states, views
from support.holders import Hostile

from troth_attestation.pieces import list_bytes
from troth_client.hub.keeping import BoundedFiles
from troth_client.hub.states import KeptStates
from troth_client.participant.checkpoints import Checkpoints
from troth_client.run_files.files import KeptFiles
from troth_client.runtime.files import DiskFullError
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.blob_cache import BlobCache, MemoryBlobs
from troth_client.transport.errors import BlobRefusedError
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_reader
from troth_client.transport.quota import Quota
from troth_client.transport.server import BlobServer, Extras
from troth_coordinator.rules.ids import RoundIndex
from troth_coordinator.rules.phase import Phase

OLD, MIDDLE, NEW = (states.state(at, seed=at) for at in (10, 20, 30))
CONFIG = states.CONFIG
NUM_BYTES = NEW.pieces.num_bytes + list_bytes(NEW.shapes)
NUM_PIECES = len(NEW.piece_bytes())
ROOM = 2 * NUM_BYTES
SOON = 10  # seconds; an offer that nobody answers is tried three times, 5 seconds each


class Hub:
    """The part of a hub that keeps weights; `is_told` if it has the run's config."""

    def __init__(self, folder, max_bytes=ROOM, *, is_told=True):
        hashes = CONFIG.config_hash(), CONFIG.manifest_digest()
        self.files = BoundedFiles(folder / "files", hashes, ROOM)
        if is_told:
            self.files.accept(BlobKind.CONFIG, hashes[0], CONFIG.canonical_json())
        self.folder = folder / "states"
        self.states = KeptStates(self.folder, self.files, hashes[0], max_bytes)
        self.cache = BlobCache(MemoryBlobs())
        self.cache.show_states(self.states)
        self.cache.show_files(self.files)

    def push(self, kind, key, data):
        address = BlobId(0, kind, key).address
        if not self.cache.is_known(address):
            self.cache.accept(self.cache.judge(address, data), data)

    def push_list(self, state):
        self.states.want(state.committed)
        self.push(BlobKind.PIECES, state.root, state.pieces.encode())

    def push_all(self, state):
        self.push_list(state)
        for key, data in state.piece_bytes().items():
            self.push(BlobKind.PIECE, key, data)

    def num_held(self, state):
        """How many pieces of a state others can read here."""
        found = (self.cache.served(f"piece/{key.hex()}") for key in state.piece_bytes())
        return sum(data is not None for data in found)

    def has_list(self, state):
        return self.cache.served(f"pieces/{state.root.hex()}") == state.pieces.encode()


def test_a_hub_takes_the_newest_list_and_then_the_pieces_that_it_names(tmp_path):
    hub = Hub(tmp_path)
    with pytest.raises(BlobRefusedError):
        hub.push(BlobKind.PIECE, *next(iter(NEW.piece_bytes().items())))
    hub.push_all(NEW)
    assert hub.has_list(NEW)
    assert hub.num_held(NEW) == hub.states.num_pieces == NUM_PIECES
    assert hub.cache.is_known(f"pieces/{NEW.root.hex()}")


def test_wrong_lists_pieces_and_states_are_refused(tmp_path):
    hub = Hub(tmp_path)
    key, data = next(iter(NEW.piece_bytes().items()))
    hub.states.want(NEW.committed)
    with pytest.raises(BlobRefusedError):  # the list of another root
        hub.push(BlobKind.PIECES, OLD.root, OLD.pieces.encode())
    with pytest.raises(BlobRefusedError, match="state root"):  # another list under this root
        hub.push(BlobKind.PIECES, NEW.root, OLD.pieces.encode())
    with pytest.raises(BlobRefusedError):
        hub.push(BlobKind.PIECES, NEW.root, NEW.pieces.encode()[:-1])
    hub.push_list(NEW)
    with pytest.raises(BlobRefusedError):  # another byte
        hub.push(BlobKind.PIECE, key, bytes([data[0] ^ 1]) + data[1:])
    with pytest.raises(BlobRefusedError):  # a piece that the list does not name
        hub.push(BlobKind.PIECE, *next(iter(OLD.piece_bytes().items())))
    assert [path.name for path in hub.folder.iterdir()] == ["30-3000"]


@pytest.mark.parametrize(("room", "is_told"), [(NUM_BYTES - 1, True), (ROOM, False)])
def test_no_byte_is_taken_of_a_state_that_is_too_large_or_of_unknown_shape(tmp_path, room, is_told):
    hub = Hub(tmp_path, room, is_told=is_told)
    hub.states.want(NEW.committed)
    assert not hub.cache.welcome(f"pieces/{NEW.root.hex()}")
    assert list(hub.folder.iterdir()) == []


def test_a_config_that_comes_later_is_enough(tmp_path):
    hub = Hub(tmp_path, is_told=False)
    hub.states.want(NEW.committed)
    hub.push(BlobKind.CONFIG, CONFIG.config_hash(), CONFIG.canonical_json())
    hub.push_all(NEW)
    assert hub.num_held(NEW) == NUM_PIECES


@pytest.mark.parametrize(("room", "kept"), [(ROOM, [MIDDLE, NEW]), (ROOM - 1, [NEW])])
def test_the_newest_two_are_kept_if_there_is_room(tmp_path, room, kept):
    hub = Hub(tmp_path, room)
    for state in (OLD, MIDDLE, NEW):
        hub.push_all(state)
    for one in (hub, Hub(tmp_path, room)):
        assert [state for state in (OLD, MIDDLE, NEW) if one.has_list(state)] == kept
        assert one.states.num_pieces == len(kept) * NUM_PIECES
        assert sum(path.stat().st_size for path in hub.folder.iterdir()) <= room


def test_a_restart_goes_on_and_removes_what_is_half_or_spoilt(tmp_path):
    hub, pieces = Hub(tmp_path), list(NEW.piece_bytes().items())
    hub.push_list(NEW)
    for key, data in pieces[:4]:
        hub.push(BlobKind.PIECE, key, data)
    paths = [hub.folder / key.hex() for key, _ in pieces]
    paths[0].write_bytes(bytes(paths[0].stat().st_size))
    paths[1].write_bytes(b"cut short")
    paths[4].with_name(paths[4].name + ".tmp").write_bytes(b"half")  # as kill -9 leaves it
    (hub.folder / "5-1").write_bytes(b"no list")
    again = Hub(tmp_path)
    assert again.has_list(NEW)
    assert again.states.num_pieces == 3, "a length is compared at once, bytes when they are read"
    assert again.num_held(NEW) == again.states.num_pieces == 2
    again.push_all(NEW)
    assert again.num_held(NEW) == NUM_PIECES
    assert len(list(again.folder.iterdir())) == NUM_PIECES + 1


def test_a_full_disk_refuses_a_piece_and_keeps_the_others(tmp_path):
    with disks.small_disk(tmp_path / "disk", "2000k") as disk:
        hub = Hub(disk)
        with pytest.raises(DiskFullError):
            hub.push_all(NEW)
        held = hub.num_held(NEW)
        assert 0 < held < NUM_PIECES
        assert Hub(disk).num_held(NEW) == held
        assert not list(hub.folder.glob("*.tmp"))


class Member:
    """As much of a member as `Checkpoints` needs: it has the checkpoint of `NEW` on its disk."""

    def __init__(self, transport, shown, relay):
        self.chain = SimpleNamespace(watch=SimpleNamespace(latest=None))
        self.events = EventList()
        self.state = SimpleNamespace(states=shown, stop=asyncio.Event(), events=self.events)
        self.submissions = SimpleNamespace(
            transport=transport, random=random.Random(1), relays=(relay,)
        )
        self.checkpoints = Checkpoints(self)

    def see(self, round_, phase=Phase.COMMIT):
        """Look at the chain, on which the weights of `NEW` are the newest."""
        run = views.run_view(
            phase=phase,
            config_hash=CONFIG.config_hash(),
            root=NEW.root,
            root_round=RoundIndex(30),
            root_cursor=3000,
            round=RoundIndex(round_),
        )
        self.chain.watch.latest = views.network(run=run)
        return self.chain.watch.latest

    async def look(self, round_):
        """Do what is due in a round; returns whether anything was."""
        view = self.see(round_)
        is_due = self.checkpoints.is_offer_due(view)
        if is_due:
            await self.checkpoints.offer(view)
        return is_due


@contextlib.asynccontextmanager
async def offering(folder, hub, quota_bytes):
    """The quota of a hub that listens, and how to start a member that has the checkpoint."""
    hub.states.want(NEW.committed)
    quota = Quota(quota_bytes)
    server = BlobServer(hub.cache, Patience(), Extras(quota))
    url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    kept = KeptFiles(folder / "data", CONFIG.config_hash(), CONFIG.manifest_digest())
    kept.show_config(CONFIG)
    with showing.state_store(folder / "member") as (_, shown):
        showing.show_checkpoint(shown, NEW)
        async with http_reader() as transport:
            transport.show_states(shown)
            transport.show_files(kept)
            yield quota, lambda: Member(transport, shown, url)
    await server.stop()


async def test_a_busy_hub_takes_some_of_each_batch_and_the_rest_soon(tmp_path, monkeypatch):
    """Many members offer at the same time, and a place that is taken is no reason to stop."""
    monkeypatch.setattr("troth_client.transport.server._MAX_PIECES", 2)
    hub = Hub(tmp_path / "hub")
    async with offering(tmp_path, hub, 2 * ROOM) as (_, start):
        member = start()
        for round_ in range(31, 34):
            await member.look(round_)
        assert hub.num_held(NEW) == NUM_PIECES


async def test_what_a_quota_refuses_comes_with_the_next_rounds_and_all_again_after_a_restart(
    tmp_path,
):
    """The quota of pieces is spent; that for the round's own bytes is not."""
    hub = Hub(tmp_path / "hub", is_told=False)
    async with offering(tmp_path, hub, NUM_BYTES // 2) as (quota, start):
        member = start()
        assert await member.look(31)
        assert 0 < hub.num_held(NEW) < NUM_PIECES
        assert not await member.look(31)
        assert quota.take("127.0.0.1", NUM_BYTES // 4)
        for round_ in range(32, 36):
            quota.renew()
            await member.look(round_)
        assert hub.num_held(NEW) == NUM_PIECES
        assert not await member.look(36)
        lost = next(iter(NEW.piece_bytes()))
        (hub.folder / lost.hex()).unlink()
        assert hub.num_held(NEW) == NUM_PIECES - 1
        quota.renew()
        assert await start().look(36)
        assert hub.num_held(NEW) == NUM_PIECES


async def test_the_last_weights_are_offered_before_a_member_ends(tmp_path, monkeypatch):
    """Nobody looks any more, so what a busy hub refused is offered again at once."""
    monkeypatch.setattr("troth_client.transport.server._MAX_PIECES", 2)
    hub = Hub(tmp_path / "hub")
    async with offering(tmp_path, hub, 2 * ROOM) as (_, start):
        member = start()
        for stops, phase in ((True, Phase.FINISHED), (False, Phase.HALTED)):
            member.see(31, phase)
            (member.state.stop.set if stops else member.state.stop.clear)()
            await member.checkpoints.complete()
            assert hub.num_held(NEW) == 0
        member.see(31, Phase.FINISHED)
        await member.checkpoints.complete()
        assert hub.num_held(NEW) == NUM_PIECES
        assert missing_of(member) == [0]
        again = start()
        again.see(31, Phase.FINISHED)
        await again.checkpoints.complete()
        assert missing_of(again) == [0]


async def test_a_hub_that_takes_no_more_keeps_no_member_from_ending(tmp_path):
    hub = Hub(tmp_path / "hub", is_told=False)
    async with offering(tmp_path, hub, NUM_BYTES // 2) as (_, start):
        member = start()
        member.see(31, Phase.FINISHED)
        async with asyncio.timeout(60):
            await member.checkpoints.complete()
        (missing,) = missing_of(member)
        assert missing == NUM_PIECES - hub.num_held(NEW) > 0
        member.submissions.relays = ("http://127.0.0.1:9",)
        away = Checkpoints(member)
        async with asyncio.timeout(60):
            await away.complete()
        assert missing_of(member) == [missing, NUM_PIECES]


def missing_of(member):
    """Return how many pieces each event says that relays did not take."""
    return [event["missing"] for event in member.events.named("checkpoint_offered")]


async def test_a_stop_ends_the_offer_to_a_hub_that_never_answers(tmp_path):
    """It accepts connections and reads; a whole patience for each piece would be hours."""
    asked = asyncio.Event()

    async def swallows(_holder, _writer, _head):
        asked.set()
        await asyncio.Event().wait()

    hub = Hub(tmp_path / "hub")
    async with offering(tmp_path, hub, ROOM) as (_, start), Hostile(swallows) as silent:
        member = start()
        member.submissions.relays = (silent.endpoint,)
        member.see(31, Phase.FINISHED)
        ending = asyncio.create_task(Checkpoints(member).complete())
        async with asyncio.timeout(SOON):
            await asked.wait()
            member.state.stop.set()
            await ending
        assert missing_of(member) == [NUM_PIECES]
