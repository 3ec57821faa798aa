"""Runs that halt: weights, residuals, files and latecomers follow back to the checkpoint."""

import pytest
from support.halts import begin_with_fewer, half_dead, halted_after_progress, with_silent
from support.runs import (
    NO_AUDITS,
    assert_finished,
    events_of,
    included,
    time_stopped,
    until,
    until_round,
    void_rounds,
)

from troth_coordinator.rules.phase import Phase

pytestmark = pytest.mark.long(reason="runs that halt and start again")


async def test_three_void_rounds_halt_and_the_run_starts_again_at_its_checkpoint(run_factory):
    """No strikes; w_h := w_c, residuals zero, round and cursor go on."""
    run = await run_factory.create(9, checkpoint_every=100)
    await with_silent(run, ["ada", "bob"], ["cyd", "dan", "eve"])
    async with half_dead(run, run.members[2:]):
        view = await until(run, lambda view: view.run.phase == Phase.HALTED)
    assert view.run.round == 3
    assert view.run.cursor == 3 * 5 * 2
    assert [entry.strikes for entry in view.entries[:5]] == [0] * 5
    await begin_with_fewer(run)
    await run.finish()
    view = await assert_finished(run)
    assert void_rounds(run, "ada") == [0, 1, 2]
    assert view.run.restart_round == 3
    assert view.run.restart_root_round == 0
    assert view.run.cursor == 3 * 5 * 2 + 6 * 2 * 2
    for name in ("ada", "bob"):
        (restarted,) = events_of(run, name, "restarted")
        assert restarted["round"] == 3
        assert restarted["root_round"] == 0
        first = next(one for one in events_of(run, name, "encoded") if one["round"] == 3)
        assert first["previous"] is None
    assert list(included(run, "ada").values()) == [[]] * 3 + [[0, 1]] * 6


async def test_a_halt_after_progress_goes_back_to_the_checkpoint(run_factory):
    """Rounds after 4 are lost with the halt: weights, residuals and stored files follow."""
    run = await run_factory.create(16, checkpoint_every=4, **NO_AUDITS)
    halted, members = await halted_after_progress(run)
    # One of them comes back in the middle of the halt, one only when all is under way again.
    await run.start(members[2])
    await until_round(run, halted + 1)
    await run.start(members[3])
    await run.finish()
    view = await assert_finished(run)
    assert view.run.restart_round == halted
    assert view.run.restart_root_round == 4
    for name in ("ada", "bob", "cyd", "dan"):
        assert len(events_of(run, name, "restarted")) == 1, name
        assert not events_of(run, name, "root_differs"), name
    assert 2 in included(run, "ada")[halted]
    assert 3 in included(run, "ada")[15]


def is_ready_again(view) -> bool:
    return view.run.phase == Phase.WARMUP and view.entries[1].ready_round == 4


async def test_killed_while_the_run_starts_again_after_a_halt(run_factory):
    """Its newest stored state is the one before the halt, of the very round that opens now."""
    run = await run_factory.create(16, checkpoint_every=4, **NO_AUDITS)
    halted, members = await halted_after_progress(run)
    bob = members[1]
    await run.start(members[2])
    with time_stopped(run):
        await until(run, is_ready_again, is_stopped=True)
        await run.stop(bob)
        await until(run, lambda view: view.run.phase == Phase.COMMIT, is_stopped=True)
        assert bob.here.state.store.weight_rounds()[-1] == halted
        await run.start(bob)
    await run.finish()
    await assert_finished(run)
    assert not events_of(run, "bob", "root_differs")
    assert 1 in included(run, "ada")[halted]


async def test_a_latecomer_after_a_halt_takes_the_checkpoint_of_the_restart(run_factory):
    """Its first canonical round after the halt is a checkpoint itself: that state has two roots."""
    run = await run_factory.create(26, ring=8, keep_rounds=3, checkpoint_every=4, **NO_AUDITS)
    halted, members = await halted_after_progress(run)
    await run.start(members[2])
    await until(run, lambda view: view.run.root_round == halted)
    await run.add_late("late")
    await run.start(members[3])
    await run.finish()
    view = await assert_finished(run)
    assert view.run.restart_round == halted
    assert events_of(run, "late", "restoring")[0]["round"] == halted
    assert not events_of(run, "late", "root_differs")
    assert 5 in included(run, "ada")[25]


async def test_a_latecomer_while_a_halted_run_waits_takes_the_stored_root(run_factory):
    """The run may need it to start again: it does not wait for a round that nobody can replay."""
    run = await run_factory.create(26, ring=8, keep_rounds=3, checkpoint_every=4, **NO_AUDITS)
    halted, _members = await halted_after_progress(run)
    late = await run.add_late("late")
    await until(run, lambda _view: bool(late.events.named("joined")))
    assert late.here.state.replica.round == 4
    await until_round(run, halted + 4)
    await run.finish()
    await assert_finished(run)
    assert 5 in included(run, "ada")[25]
