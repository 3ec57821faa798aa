"""Looks read little and never too late, on a clock that the test moves."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.looks import TICK_SECONDS, Bench
from support.views import round_view

from troth_client.network.reading import (
    HEED_SECONDS,
    LATE_SECONDS,
    LONGEST_SECONDS,
    MAX_AHEAD_SLOTS,
    PACE_SECONDS,
    STRANGE_LOOKS,
)
from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.chain.subscription import Mark, mark_of
from troth_coordinator.rules.phase import Phase


@pytest.fixture
async def bench() -> Bench:
    return await Bench().steady()


async def test_changes_that_follow_each_other_at_once_are_read_at_once(bench):
    """Phases of a local chain are shorter than the time in which a false push is heeded once."""
    for phase_end in (5_000, 5_001, 5_002):
        bench.change(phase_end_slot=phase_end)
        (view,) = await bench.pass_seconds(TICK_SECONDS)
        assert view.run.phase_end_slot == phase_end


async def test_within_a_slot_the_view_is_the_same_record(bench):
    """So nobody is woken for it; see the watcher."""
    first, again = await bench.reader.newest(), await bench.reader.newest()
    bench.node.seconds += 1
    later = await bench.reader.newest()
    assert again is first
    assert later.slot > first.slot
    assert bench.node.reads == []


async def test_a_push_of_a_new_phase_ends_the_wait_for_the_next_look(bench):
    (early,) = bench.reader.early()
    bench.change()
    assert not early.done()  # audits go on within a phase, and nobody waits for them
    bench.change(phase=Phase.ATTEST, phase_end_slot=5_000)
    assert early.done()
    await bench.reader.newest()
    assert bench.node.reads == ["all"]
    assert not next(iter(bench.reader.early())).done()


async def test_a_push_that_came_before_the_wait_ends_it_at_once(bench):
    bench.change(phase=Phase.ATTEST, phase_end_slot=5_000)
    (early,) = bench.reader.early()
    assert early.done()


async def test_a_quiet_minute_is_a_read_of_run_and_round_every_eighteen_slots(bench):
    views = await bench.pass_seconds(60)
    assert bench.node.reads == ["round"] * 8
    assert len(views) == 150


async def test_short_slots_are_read_more_often(bench):
    """Windows count in slots: there, five seconds may be most of one."""
    bench.node.slots_per_second = 10.0
    await bench.pass_seconds(20)
    bench.node.reads.clear()
    await bench.pass_seconds(20)
    assert bench.node.reads == ["round"] * 10


async def test_nobody_waits_longer_for_a_change_that_is_not_pushed(bench):
    await bench.pass_seconds(1)
    bench.change(is_pushed=False, round=4)
    views = await bench.pass_seconds(8)
    assert views[-1].run.round == 4


async def test_without_pushes_a_minute_is_a_read_every_two_seconds(bench):
    bench.pushes.is_live = False
    await bench.pass_seconds(60)
    assert bench.node.reads == ["round"] * 30


async def test_slots_go_on_between_reads(bench):
    views = await bench.pass_seconds(4)
    assert bench.node.reads == []
    ahead = [view.slot - (1_013 + number) for number, view in enumerate(views)]
    assert set(ahead) <= {-1, 0, 1}
    assert [view.slot for view in views] == sorted(view.slot for view in views)


async def test_slots_stand_still_with_the_chain(bench):
    await bench.pass_seconds(LONGEST_SECONDS + TICK_SECONDS)
    slot = bench.node.slot
    bench.node.slots_per_second, bench.node.lag_slots = 0.0, 1_000 - slot
    await bench.pass_seconds(2 * LONGEST_SECONDS + 2 * TICK_SECONDS)
    slots = {view.slot for view in await bench.pass_seconds(2)}
    assert slots == {slot}


async def test_a_slot_that_a_node_made_up_is_no_answer(bench):
    """At a slot of the future every window is over, and evidence would be thrown away."""
    bench.node.lag_slots = -1_000
    for _ in range(STRANGE_LOOKS - 1):
        with pytest.raises(MalformedReplyError, match="slot 20"):
            await bench.reader.read()
    bench.node.lag_slots = 0
    assert (await bench.reader.read()).slot == bench.node.slot


async def test_after_a_sleep_the_third_read_is_believed(bench):
    bench.node.seconds += 1.0
    bench.node.lag_slots = -9_000
    for _ in range(STRANGE_LOOKS - 1):
        with pytest.raises(MalformedReplyError):
            await bench.reader.read()
    assert (await bench.reader.read()).slot == bench.node.slot
    assert (await bench.pass_seconds(20))[-1].slot == pytest.approx(bench.node.slot, abs=1)


async def test_a_read_of_a_slot_before_the_last_takes_back_nothing(bench):
    """Of several nodes behind one address one lags; the others have shown what happened since."""
    past, slot = bench.node.run, bench.node.slot
    bench.change(round=4)
    await bench.reader.read()
    bench.node.run, bench.node.lag_slots = past, 5
    views = [await bench.reader.read() for _ in range(2 * STRANGE_LOOKS)]
    assert {view.run.round for view in views} == {4}
    assert {view.slot for view in views} == {slot}


async def test_slots_that_stay_behind_are_believed_in_the_end(bench):
    """The chain went back, or what was shown before was never true."""
    bench.node.lag_slots = 500
    bench.reader.expect_change()
    (first, *_rest) = await bench.pass_seconds(LONGEST_SECONDS)
    assert first.slot > bench.node.slot
    assert (await bench.pass_seconds(3 * TICK_SECONDS))[-1].slot == bench.node.slot


async def test_a_look_back_does_not_hasten_the_slots(bench):
    bench.node.lag_slots = 10
    await bench.reader.read()
    bench.node.lag_slots = 0
    await bench.pass_seconds(PACE_SECONDS)
    await bench.reader.read()
    bench.node.seconds += 4 * TICK_SECONDS
    assert (await bench.reader.newest()).slot == pytest.approx(bench.node.slot, abs=1)


async def test_the_edge_of_a_phase_is_read_at_once_when_it_is_pushed(bench):
    bench.change(phase=Phase.ATTEST, phase_start_slot=1_020)
    (view,) = await bench.pass_seconds(TICK_SECONDS)
    assert view.run.phase == Phase.ATTEST
    assert bench.node.reads == ["all"]


async def test_a_quorum_is_read_at_once_and_only_run_and_round(bench):
    bench.node.run = replace(bench.node.run, quorum_slot=1_020)
    bench.pushes.newest = mark_of(bench.node.run, bench.node.slot)
    (view,) = await bench.pass_seconds(TICK_SECONDS)
    assert view.run.quorum_slot == 1_020
    assert bench.node.reads == ["round"]


async def test_a_new_round_that_is_pushed_is_asked_for_by_its_number(bench):
    bench.change(round=4)
    await bench.pass_seconds(TICK_SECONDS)
    assert bench.node.hints[-1] == 4


async def test_events_of_audits_wait_for_the_next_read(bench):
    await bench.pass_seconds(1.2)
    for _ in range(3):
        bench.change()
        await bench.pass_seconds(TICK_SECONDS)
    assert bench.node.reads == []
    views = await bench.pass_seconds(8)
    assert bench.node.reads == ["all"]
    assert views[-1].run.event_sequence == 10


async def test_while_no_round_is_open_every_event_is_awaited(bench):
    bench.change(phase=Phase.WARMUP, phase_start_slot=1_020)
    await bench.pass_seconds(HEED_SECONDS + TICK_SECONDS)
    bench.node.reads.clear()
    bench.change()
    await bench.pass_seconds(TICK_SECONDS)
    assert bench.node.reads == ["all"]


async def test_our_own_act_is_looked_for_at_once(bench):
    bench.change(is_pushed=False)
    bench.reader.expect_change()
    (view,) = await bench.pass_seconds(TICK_SECONDS)
    assert view.run.event_sequence == 8
    assert bench.node.reads == ["round", "all"]


async def test_whoever_acts_now_reads_now(bench):
    bench.node.round = round_view(round=3, committed=0b11)
    assert (await bench.reader.newest()).round.committed != 0b11
    assert (await bench.reader.read()).round.committed == 0b11


async def test_a_silent_subscription_is_dropped(bench):
    """It was live and took the subscription, then said nothing of what happened."""
    bench.change(is_pushed=False, round=4)
    await bench.pass_seconds(8)
    assert bench.pushes.num_dropped == 0
    await bench.pass_seconds(8)
    assert bench.pushes.num_dropped == 1
    bench.node.reads.clear()
    await bench.pass_seconds(10)
    assert len(bench.node.reads) == 5


async def test_a_push_that_is_only_late_is_no_silence(bench):
    bench.change(is_pushed=False, round=4)
    await bench.reader.read()
    await bench.pass_seconds(LATE_SECONDS / 2)
    bench.pushes.newest = mark_of(bench.node.run, bench.node.slot)
    await bench.pass_seconds(4 * LONGEST_SECONDS)
    assert bench.pushes.num_dropped == 0


async def test_pushes_of_a_change_that_no_look_shows_cost_a_read_a_second(bench):
    mark = mark_of(bench.node.run, 0)
    for _ in range(25):
        edge = (mark.edge[0] + 1, *mark.edge[1:])
        bench.pushes.newest = Mark(bench.node.slot + 8, edge, 99)
        await bench.pass_seconds(TICK_SECONDS)
    assert len(bench.node.reads) <= 10


async def test_a_push_from_the_future_ends_the_subscription(bench):
    mark = mark_of(bench.node.run, 0)
    bench.pushes.newest = Mark(bench.node.slot + MAX_AHEAD_SLOTS + 10, (9, *mark.edge[1:]), 99)
    await bench.pass_seconds(TICK_SECONDS)
    assert bench.pushes.num_dropped == 1


async def test_a_push_from_the_past_is_no_reason_to_look(bench):
    mark = mark_of(bench.node.run, 0)
    bench.pushes.newest = Mark(900, (1, *mark.edge[1:]), 3)
    await bench.pass_seconds(2)
    assert bench.node.reads == []


async def test_what_the_node_cannot_say_is_asked_again_at_the_next_look(bench):
    """The view does not go on by itself while the node is away."""
    reread, bench.node.reread = bench.node.reread, None
    bench.reader.expect_change()
    for _ in range(2):
        with pytest.raises(TypeError):
            await bench.pass_seconds(TICK_SECONDS)
    bench.node.reread = reread
    await bench.pass_seconds(TICK_SECONDS)
    assert bench.node.reads == ["round"]


async def test_looks_that_are_a_moment_ahead_of_each_push_end_no_subscription(bench):
    """The socket and the looks are two connections: either may be the first."""
    for round_ in range(4, 10):
        bench.change(is_pushed=False, round=round_)
        await bench.reader.read()
        bench.pushes.newest = mark_of(bench.node.run, bench.node.slot)
        await bench.pass_seconds(LONGEST_SECONDS)
    assert bench.pushes.num_dropped == 0


async def ticking(bench: Bench, seconds: float, act: Callable[[], None] = lambda: None) -> int:
    """Look twenty times a second, after an act each time; return how often that reads."""
    bench.node.reads.clear()
    for _ in range(round(20 * seconds)):
        bench.node.seconds += 0.05
        act()
        await bench.reader.newest()
    return len(bench.node.reads)


async def test_until_the_pace_is_known_a_view_is_a_fifth_of_a_second_old_at_most():
    """It keeps its slot until then, and whoever waits for the next one would not act."""
    assert 4 <= await ticking(Bench(), 1.0) <= 6


@pytest.mark.parametrize(("slots_per_second", "num_reads"), [(10.0, 20), (2.5, 5)])
async def test_true_pushes_are_heeded_two_slots_apart_while_no_round_is_open(
    slots_per_second, num_reads
):
    """Joins, and the audits after the last round: somebody has to act on each."""
    bench = Bench()
    bench.node.slots_per_second = slots_per_second
    await bench.steady()
    bench.change(phase=Phase.WARMUP, phase_start_slot=1_020)
    await ticking(bench, HEED_SECONDS + 1.0, bench.change)
    assert num_reads - 2 <= await ticking(bench, 4.0, bench.change) <= num_reads + 1


async def test_true_pushes_within_a_round_wait_as_before(bench):
    bench.change(phase=Phase.WARMUP, phase_start_slot=1_020)
    await ticking(bench, 2 * HEED_SECONDS, bench.change)
    bench.change(phase=Phase.COMMIT, phase_start_slot=1_030)
    await ticking(bench, 0.5)
    assert await ticking(bench, 4.0, bench.change) == 0


@pytest.mark.parametrize(
    ("phase", "event_sequence"),
    [
        (Phase.COMMIT, 0),
        (Phase.COMMIT, None),
        (Phase.COMMIT, 10_000),
        (Phase.WARMUP, 0),
        (Phase.WARMUP, 10_000),
    ],
    ids=["old", "true", "ahead", "old-between-rounds", "ahead-between-rounds"],
)
async def test_false_pushes_beside_true_events_cost_a_read_a_second(phase, event_sequence):
    """A socket makes up edges while audits go on."""
    bench = Bench()
    bench.node.slots_per_second = 10.0
    await bench.steady()
    bench.change(phase=phase, phase_start_slot=1_020)
    await ticking(bench, 2 * HEED_SECONDS, bench.change)  # the haste of true pushes
    edges = iter(range(5_000, 6_000))

    def lie() -> None:
        bench.change(is_pushed=False)
        true = mark_of(bench.node.run, bench.node.slot + 8)
        sequence = true.event_sequence if event_sequence is None else event_sequence
        edge = (next(edges), *true.edge[1:])
        bench.pushes.newest = replace(true, edge=edge, event_sequence=sequence)

    await ticking(bench, 0.5, lie)
    assert 3 <= await ticking(bench, 4.0, lie) <= 5
