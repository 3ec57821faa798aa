"""Late is fine: newcomers and long absent members come back over the newest checkpoint."""

from dataclasses import replace

import pytest
from support.event_fields import number
from support.ports import Wrapped, refused_by
from support.runs import (
    NO_AUDITS,
    assert_conserved,
    assert_finished,
    events_of,
    included,
    member,
    start_members,
    time_stopped,
    until,
    until_round,
)

from troth_client.network.chain import OUTSIDE
from troth_client.network.errors import RunOverError, TooSlowError
from troth_client.steps.restore import MOST_MISSED
from troth_client.transport.base import BlobKind
from troth_coordinator.chain.instructions import Manifest
from troth_coordinator.chain.operations import Session
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.phase import Phase
from troth_simulation.hub import SimulatedHub

QUIET = {"ring": 16, "keep_rounds": 3, "checkpoint_every": 10, **NO_AUDITS}
VARIANT = pytest.mark.long(reason="another way to be late, a run each")
CONTRIBUTES_WITHIN = 3
"""Rounds from the start of a fetch to the first round that includes the newcomer's payload."""


def first_round(run, name: str) -> int:
    """The first round that included the payload of a member."""
    index = member(run, name).index
    return min(round_ for round_, held in included(run, name).items() if index in held)


async def join_late(run, name: str, round_: int):
    """A newcomer that starts when the run is at `round_`."""
    await until_round(run, round_)
    return await run.add_late(name)


async def assert_late(run, name: str, round_: int) -> None:
    """It came over a checkpoint, joined after its arrival, and worked soon after."""
    await assert_finished(run)
    events = [event["event"] for event in member(run, name).events.events]
    assert events.index("fetched") < events.index("arrived") < events.index("joined")
    assert first_round(run, name) <= round_ + CONTRIBUTES_WITHIN
    assert not events_of(run, name, "root_differs")


async def test_a_joiner_at_round_10_of_18(run_factory):
    """The ring has dropped the first rounds: only a checkpoint leads to the open one."""
    brief = QUIET | {"ring": 8, "checkpoint_every": 4}
    run = await run_factory.start(18, names="ada bob cyd", **brief)
    await join_late(run, "dan", 10)
    await run.finish()
    await assert_late(run, "dan", 10)
    assert events_of(run, "dan", "restoring")[0]["round"] == 8


@pytest.mark.long(reason="forty rounds; make test has a joiner at round 10 of 18")
async def test_a_joiner_at_round_20_of_40(run_factory):
    run = await run_factory.start(40, names="ada bob cyd", **QUIET)
    await join_late(run, "dan", 20)
    await run.finish()
    await assert_late(run, "dan", 20)
    assert events_of(run, "dan", "restoring")[0]["round"] == 10


async def start_unheard(run_factory, names, **relays):
    """A run of members that listen nowhere and know only these hubs or stores."""
    run = await run_factory.create(24, **QUIET)
    run.wrap = lambda _member, ports: replace(ports, **relays)
    for name in names.split():
        await run.add(name, listens=False)
    return run


@pytest.mark.long(reason="a run of seven; what a hub takes is in make test")
async def test_a_joiner_that_reaches_nobody_takes_the_weights_from_a_hub(run_factory, tmp_path):
    """Six members listen nowhere; they have pushed config and checkpoint to the one hub."""
    run = await start_unheard(run_factory, "ada bob cyd eve fay gus", hubs=("hub",))
    hub = SimulatedHub(run, "hub", tmp_path / "hub")
    hub.start()
    for one in run.members:
        await run.start(one)
    await join_late(run, "dan", 18)
    await run.finish()
    await hub.stop()
    await assert_late(run, "dan", 18)
    assert events_of(run, "dan", "restoring")[0]["round"] == 10


@pytest.mark.long(reason="the same over a folder as a store")
async def test_a_joiner_that_reaches_nobody_takes_the_weights_from_a_store(run_factory, tmp_path):
    """Nobody listens; the members have put the checkpoint into a folder that all know."""
    store = f"file://{tmp_path}/store"
    run = await start_unheard(run_factory, "ada bob cyd", stores=(store,))
    for one in run.members:
        await run.start(one)
    await join_late(run, "dan", 18)
    await run.finish()
    await assert_late(run, "dan", 18)
    assert events_of(run, "dan", "restoring")[0]["round"] == 10


@pytest.mark.nightly(reason="260 rounds; make check has joiners at rounds 10 and 12")
async def test_a_joiner_at_round_200_of_260(run_factory):
    run = await run_factory.start(260, names="ada bob cyd", **QUIET)
    await join_late(run, "dan", 200)
    await run.finish()
    await assert_late(run, "dan", 200)


@VARIANT
async def test_a_joiner_near_the_start_replays_everything(run_factory):
    """The ring still holds round 0: nobody's weights are taken."""
    run = await run_factory.start(20, names="ada bob cyd", **QUIET)
    await join_late(run, "dan", 12)
    await run.finish()
    await assert_finished(run)
    assert not events_of(run, "dan", "restoring")
    assert first_round(run, "dan") <= 12 + CONTRIBUTES_WITHIN


@VARIANT
async def test_an_absent_member_returns_without_a_deposit(run_factory):
    run = await run_factory.start(60, names="ada bob cyd dan", **QUIET)
    dan = member(run, "dan")
    await until_round(run, 3)
    await run.stop(dan)
    await until_round(run, 44)
    before = run.balance(dan.owner.pubkey())
    await run.start(dan)
    await run.finish()
    await assert_finished(run)
    assert run.balance(dan.owner.pubkey()) == before
    assert events_of(run, "dan", "restoring")[0]["round"] >= 40
    back = [round_ for round_, held in included(run, "ada").items() if 3 in held and round_ > 3]
    assert min(back) <= 44 + CONTRIBUTES_WITHIN


@pytest.mark.long(reason="120 rounds")
async def test_a_member_that_was_absent_for_100_rounds_returns(run_factory):
    run = await run_factory.start(120, names="ada bob cyd dan", **QUIET)
    dan = member(run, "dan")
    await until_round(run, 3)
    await run.stop(dan)
    await until_round(run, 103)
    await run.start(dan)
    await run.finish()
    await assert_finished(run)
    back = [round_ for round_, held in included(run, "ada").items() if 3 in held and round_ > 3]
    assert min(back) <= 103 + CONTRIBUTES_WITHIN


@VARIANT
async def test_the_only_seed_dies_in_mid_transfer(run_factory):
    """Only ada serves pieces, and dies after four of them; bob is there from then on."""
    run = await run_factory.create(40, **QUIET)
    served: list[str] = []

    def is_refused(holder: str, wanted) -> bool:
        if wanted.kind is not BlobKind.PIECE:
            return False
        if holder == "ada" and len(served) == 4:
            run.network.cut("ada")
        if holder != ("ada" if len(served) < 4 else "bob"):
            return True
        served.append(holder)
        return False

    run.wrap = lambda one, ports: refused_by(ports, is_refused) if one.name == "dan" else ports
    await start_members(run, ["ada", "bob", "cyd", "eve"])
    dan = await join_late(run, "dan", 20)
    await until(run, lambda _view: bool(dan.events.named("arrived")))
    run.network.mend("ada")
    await run.finish()
    await assert_late(run, "dan", 20)
    assert served.count("ada") == 4
    assert served.count("bob") == len(served) - 4 > 0


@VARIANT
async def test_the_ring_moves_on_while_a_slow_joiner_fetches(run_factory):
    """Its pieces take 12 slots each: when all are here, the ring has dropped the first rounds."""
    quiet = {"ring": 10, "keep_rounds": 3, "checkpoint_every": 6, **NO_AUDITS}
    run = await run_factory.create(40, **quiet)

    def wrap(one, ports):
        if one.name != "dan":
            return ports
        wire = ports.transport._wire

        async def read(holder, wanted, into):
            for _ in range(12 if wanted.kind is BlobKind.PIECE else 0):
                await ports.runtime.wait()
            await wire.read(holder, wanted, into)

        ports.transport._wire = Wrapped(wire, read=read)
        return ports

    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd"])
    dan = await join_late(run, "dan", 11)
    view = await until(run, lambda _view: bool(dan.events.named("fetched")))
    fetched = number(dan.events.named("fetched")[0], "round")
    assert view.run.round >= fetched + 10, "the ring has moved on"
    await run.finish()
    await assert_finished(run)
    assert len(dan.events.named("fetched")) == 1
    assert 3 in included(run, "ada")[39]


@pytest.mark.long(reason="a whole run; a joiner without a liar is in make test")
async def test_a_liar_serves_wrong_pieces_and_is_passed_over(run_factory):
    """Bob answers each request for weights with other bytes, first of all."""
    run = await run_factory.create(40, **QUIET)

    class Lies:
        def __init__(self, honest):
            self._honest = honest

        def shown(self, kind, key):
            data = self._honest.shown(kind, key)
            return None if data is None else bytes([data[0] ^ 1]) + data[1:]

    await start_members(run, ["ada", "bob", "cyd"])
    bob = member(run, "bob").here
    bob.submissions.transport.show_states(Lies(bob.state.states))
    dan = await join_late(run, "dan", 20)
    await run.finish()
    await assert_late(run, "dan", 20)
    scores = dan.here.submissions.transport.scores
    assert scores.faults("bob") > scores.faults("ada")


@VARIANT
async def test_false_announcements_harm_nobody(run_factory):
    """Two announce the checkpoint with another hash and a made-up place; the fetch never looks."""
    run = await run_factory.start(40, names="ada bob cyd", **QUIET)
    await until_round(run, 12)
    for name in ("ada", "bob"):
        one = member(run, name)
        session = Session(run.client, run.at, one.session, one.index)
        false = Manifest(10, bytes(32), "http://192.0.2.1:1")
        await session.announce_manifest(one.owner.pubkey(), false)
    await join_late(run, "dan", 20)
    await run.finish()
    await assert_late(run, "dan", 20)


async def test_weights_of_an_open_round_are_shown_to_nobody(run_factory):
    """Read before the vote is over, they would let anybody copy a root."""
    run = await run_factory.create(12, **QUIET | {"checkpoint_every": 3})
    shown: list[tuple[str, int]] = []

    def look(_slot: int) -> None:
        for one in run.members:
            state = one.here.state
            known = state.replica.known_root
            if known is not None and state.states.shown(BlobKind.PIECES, known.root) is not None:
                shown.append((one.name, known.round))

    await start_members(run, ["ada", "bob", "cyd"])
    run.on_slot.append(look)
    await until_round(run, 11)
    run.on_slot.remove(look)
    assert shown == []
    closed = roots_of(run, "ada")[9]
    assert member(run, "ada").here.state.states.shown(BlobKind.PIECES, closed) is not None
    await run.finish()
    await assert_finished(run)


def roots_of(run, name: str) -> dict[int, bytes]:
    """The roots that a member's last rounds trained on."""
    closed = events_of(run, name, "round_closed")
    return {event["round"] + 1: bytes.fromhex(event["root"]) for event in closed}


@VARIANT
async def test_the_run_ends_while_one_joins(run_factory):
    """All pieces are withheld until the run is over: nothing was deposited."""
    run = await run_factory.create(24, **QUIET)
    run.wrap = lambda one, ports: (
        refused_by(ports, lambda _holder, wanted: wanted.kind is BlobKind.PIECES)
        if one.name == "dan"
        else ports
    )
    await start_members(run, ["ada", "bob", "cyd"])
    dan = await join_late(run, "dan", 20)
    with pytest.raises(RunOverError, match="Nothing was deposited"):
        await dan.task
    dan.task = None
    await run.finish()
    view = await run.view()
    assert view.run.phase == Phase.FINISHED
    assert dan.index == OUTSIDE
    assert index_of_owner(view.entries, bytes(dan.owner.pubkey())) is None
    await assert_conserved(run)


@VARIANT
async def test_a_joiner_that_is_too_slow_for_three_checkpoints_stops_and_says_why(run_factory):
    """Nothing that it asks for ever arrives, and the run goes on without it."""
    run = await run_factory.create(30, ring=6, keep_rounds=3, checkpoint_every=2, **NO_AUDITS)
    run.wrap = lambda one, ports: (
        refused_by(ports, lambda _holder, wanted: wanted.kind is BlobKind.PIECE)
        if one.name == "dan"
        else ports
    )
    await start_members(run, ["ada", "bob", "cyd"])
    dan = await join_late(run, "dan", 8)
    with pytest.raises(TooSlowError, match=f"found {MOST_MISSED} checkpoints"):
        await dan.task
    dan.task = None
    tried = {event["round"] for event in dan.events.named("restoring")}
    assert len(tried) == MOST_MISSED
    assert dan.index == OUTSIDE
    await run.finish()
    assert index_of_owner((await run.view()).entries, bytes(dan.owner.pubkey())) is None


@VARIANT
async def test_a_joiner_during_a_rest_of_the_run(run_factory):
    """The run waits for members: the newcomer takes the stored root, and the run goes on."""
    run = await run_factory.start(30, names="ada bob", **QUIET, min_members=2)
    await until_round(run, 12)
    await run.stop(member(run, "bob"))
    view = await until(run, lambda view: view.run.phase == Phase.WAITING_FOR_MEMBERS)
    assert view.run.round < 30
    await run.add_late("dan")
    await until_round(run, view.run.round + 2)
    await run.start(member(run, "bob"))
    await run.finish()
    await assert_finished(run)
    assert number(events_of(run, "dan", "joined")[0], "index") == 2


@VARIANT
async def test_a_checkpoint_that_was_damaged_on_our_disk_is_fetched_again(run_factory):
    """Killed after its fetch, with one byte changed since: the length alone looks right."""
    run = await run_factory.start(40, names="ada bob cyd", **QUIET)
    dan = await join_late(run, "dan", 22)
    with time_stopped(run):
        await until(run, lambda _view: bool(dan.events.named("fetched")), is_stopped=True)
        await run.stop(dan)
        (checkpoint,) = dan.folder.glob("checkpoints/*/model-*.safetensors")
        data = bytearray(checkpoint.read_bytes())
        data[-1] ^= 1
        checkpoint.write_bytes(bytes(data))
        for path in dan.folder.glob("weights-*.record"):
            path.unlink()
        await run.start(dan)
    await run.finish()
    await assert_finished(run)
    assert "other bytes" in events_of(run, "dan", "file_damaged")[0]["reason"]
    assert len(events_of(run, "dan", "fetched")) == 2


@pytest.mark.long(reason="a run for each step of joining")
@pytest.mark.parametrize(
    "door",
    ["restoring", "fetching", "fetched", "arrived", "joined", "ready", "activated", "committed"],
)
async def test_killed_at_a_step_of_joining(run_factory, door):
    """kill -9 when it has just reported a step: the next start goes on and joins once."""
    run = await run_factory.start(40, names="ada bob cyd", **QUIET)
    await until_round(run, 20)
    dan = await run.add_late("dan")
    await until(run, lambda _view: bool(dan.events.named(door)))
    await run.stop(dan)
    await run.start(dan)
    await run.finish()
    view = await assert_finished(run)
    assert sum(entry.owner == bytes(dan.owner.pubkey()) for entry in view.entries) == 1
    if door not in ("joined", "ready", "activated", "committed"):
        assert len(events_of(run, "dan", "joined")) == 1
    assert 3 in included(run, "ada")[39]
