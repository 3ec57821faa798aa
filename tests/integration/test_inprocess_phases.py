"""Events around rounds: silence, halts, pauses, returns, replacements, the end."""

from dataclasses import replace

import pytest
from support.halts import begin_with_fewer, with_silent
from support.runs import (
    NO_AUDITS,
    WINDOWS,
    Chronicle,
    assert_conserved,
    assert_finished,
    authority,
    events_of,
    included,
    member,
    new_session,
    until,
    until_round,
    void_rounds,
)

from troth_attestation.quorum import AuditOutcome
from troth_client.network.errors import BarredError, ReplacedError
from troth_client.participant import cooldown
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import Status

pytestmark = pytest.mark.long(reason="runs that halt, pause, lose members and start again")


async def test_a_silent_third_does_not_stop_the_run(run_factory):
    run = await run_factory.create(6, **NO_AUDITS)
    await with_silent(run, ["ada", "bob", "cyd", "dan"], ["eve", "fay"])
    await run.finish()
    view = await assert_finished(run)
    assert included(run, "ada") == {round_: [0, 1, 2, 3] for round_ in range(6)}
    assert void_rounds(run, "ada") == []
    for silent in view.entries[4:6]:
        assert silent.status == Status.INACTIVE
        assert silent.strikes == 0
        assert (
            silent.stake == run.settings.chain.min_stake_lamports - run.settings.chain.absence_fee
        )


async def test_a_silent_third_delays_no_audit_and_pays_for_its_seats(run_factory):
    """Seats are drawn from the silent too: two more judge, and who said nothing is fined (P6)."""
    run = await run_factory.create(10, **WINDOWS, p_new_ppm=1_000_000)
    reported = Chronicle(run)
    await with_silent(run, ["ada", "bob", "cyd", "dan"], ["eve", "fay"])
    await run.finish()
    view = await assert_finished(run)
    assert included(run, "ada") == {round_: [0, 1, 2, 3] for round_ in range(10)}
    settled = reported.named("AuditSettled")
    assert len(settled) == len(reported.named("AuditOpened")) > 0
    assert {event.outcome for event in settled} == {AuditOutcome.CLEARED}
    fines = reported.named("Penalised")
    assert {event.fault for event in fines} == {6}
    assert {event.index for event in fines} == {4, 5}
    chain, closed = run.settings.chain, reported.named("RoundSettled")
    for index, entry in enumerate(view.entries[:6]):
        fined = sum(event.stake for event in fines if event.index == index)
        # A member whose third fine (jail) comes first is not absent any more. The seeds decide.
        absences = sum(bitmap.has(event.inactivated, index) for event in closed)
        assert entry.stake == chain.min_stake_lamports - fined - absences * chain.absence_fee, index
        assert absences in ((0, 1) if index in (4, 5) else (0,)), index
    await assert_conserved(run)


async def test_exactly_half_silent_still_closes(run_factory):
    """Attestations of half of the members are enough; fewer are not."""
    run = await run_factory.create(4)
    await with_silent(run, ["ada", "bob"], ["cyd", "dan"])
    await run.finish()
    await assert_finished(run)
    assert void_rounds(run, "ada") == []


async def test_silence_of_more_than_half_is_void_and_no_strike(run_factory):
    """The silent are inactive after two rounds. The others halt, and wait for their authority."""
    run = await run_factory.create(5)
    await with_silent(run, ["ada", "bob"], ["cyd", "dan", "eve"])
    view = await until(run, lambda view: view.run.phase == Phase.HALTED)
    assert view.run.round == 2
    await begin_with_fewer(run)
    await run.finish()
    view = await assert_finished(run)
    assert void_rounds(run, "ada") == [0, 1]
    assert included(run, "ada")[4] == [0, 1]
    for silent in view.entries[2:5]:
        assert silent.status == Status.INACTIVE
        assert silent.strikes == 0


async def test_pause_and_resume(run_factory):
    run = await run_factory.start(6, names="ada bob cyd")
    await until_round(run, 2)
    await authority(run).pause_run()
    view = await until(run, lambda view: view.run.phase == Phase.PAUSED)
    paused_at = view.run.round
    await until(run, lambda later: later.slot > view.slot + 30)
    later = await run.view()
    assert later.run.phase == Phase.PAUSED
    assert later.run.round == paused_at
    assert later.run.seeds_pending == 0, "seeds freeze meanwhile"
    await authority(run).resume_run()
    await run.finish()
    view = await assert_finished(run)
    assert view.run.pause_total_slots >= 30
    assert void_rounds(run, "ada") == []


async def test_a_pause_that_has_used_up_its_budget_is_ended_by_the_members(run_factory):
    run = await run_factory.start(5, names="ada bob cyd", max_pause_slots=20)
    await until_round(run, 2)
    await authority(run).pause_run()
    await run.finish()
    view = await assert_finished(run)
    assert 20 <= view.run.pause_total_slots < 40


async def test_a_member_killed_in_a_pause_comes_back(run_factory):
    run = await run_factory.start(6, names="ada bob cyd")
    await until_round(run, 2)
    await authority(run).pause_run()
    await until(run, lambda view: view.run.phase == Phase.PAUSED)
    await run.stop(member(run, "cyd"))
    await run.start(member(run, "cyd"))
    view = await run.view()
    await until(run, lambda later: later.slot > view.slot + 5)
    await authority(run).resume_run()
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(6)}


async def test_an_inactive_member_returns(run_factory):
    run = await run_factory.start(12, names="ada bob cyd dan", **NO_AUDITS)
    dan = member(run, "dan")
    await until_round(run, 2)
    await run.stop(dan)
    view = await until(run, lambda view: view.entries[3].status == Status.INACTIVE)
    away = view.run.round
    await run.start(dan)
    await run.finish()
    view = await assert_finished(run)
    assert events_of(run, "dan", "activated")
    assert included(run, "ada")[11] == [0, 1, 2, 3]
    first = next(one for one in events_of(run, "dan", "encoded") if one["round"] >= away)
    assert first["previous"] is None, "a residual does not outlive an absence"


async def test_a_second_process_of_the_owner_replaces_the_first(run_factory):
    run = await run_factory.start(8, names="ada bob cyd")
    cyd = member(run, "cyd")
    await until_round(run, 2)
    session = new_session(run, cyd)
    old, old_folder = cyd.task, cyd.folder
    owner = Owner(run.client, run.at, cyd.owner)
    await owner.set_session_key(session.pubkey())
    with pytest.raises(ReplacedError, match="Another process"):
        await old
    # The second process works in a folder of its own and knows nothing of the first.
    cyd.session, cyd.folder = session, old_folder.with_name("cyd-again")
    await run.start(cyd)
    await run.finish()
    view = await assert_finished(run)
    assert view.entries[2].session == bytes(session.pubkey())
    assert view.entries[2].strikes == 0
    assert included(run, "ada")[7] == [0, 1, 2]


async def test_a_replacement_on_the_same_folder_loses_at_most_a_round(run_factory):
    """The stored submission names the old session key: it is not sent by the new one."""
    run = await run_factory.start(8, names="ada bob cyd")
    cyd = member(run, "cyd")
    await until_round(run, 2)
    await run.stop(cyd)
    cyd.session = new_session(run, cyd)
    await Owner(run.client, run.at, cyd.owner).set_session_key(cyd.session.pubkey())
    await run.start(cyd)
    await run.finish()
    await assert_finished(run)
    missed = [round_ for round_, who in included(run, "ada").items() if 2 not in who]
    assert len(missed) <= 1
    assert not events_of(run, "ada", "header_refused")


async def test_leaving_ends_the_client_once_no_jury_can_need_it(run_factory):
    run = await run_factory.start(24, names="ada bob cyd", case_slots=20)
    cyd = member(run, "cyd")
    await until_round(run, 2)
    await Owner(run.client, run.at, cyd.owner).leave_run()
    last = await cyd.task
    assert last.entries[2].status == Status.LEFT
    assert last.run.phase != Phase.FINISHED
    cyd.task = None
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada")[23] == [0, 1]


async def test_a_barred_participant_is_told(run_factory):
    from troth_client.participant.membership import check_standing  # noqa: PLC0415

    run = await run_factory.start(4, names="ada bob")
    view = await run.view()
    barred = replace(view.entries[0], status=Status.BARRED)
    with pytest.raises(BarredError, match="barred"):
        check_standing(
            run.members[0].here.chain, replace(view, entries=(barred, *view.entries[1:]))
        )
    await run.finish()


async def test_a_stop_lets_the_round_end_and_the_next_start_goes_on(run_factory):
    run = await run_factory.start(8, names="ada bob cyd")
    cyd = member(run, "cyd")
    await until(run, lambda view: view.run.round == 2 and view.run.phase == Phase.COMMIT)
    cyd.here.state.stop.set()
    last = await cyd.task
    settled = events_of(run, "cyd", "round_closed")[-1]["round"]
    assert last.run.round == settled + 1
    await run.start(cyd)
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(8)}


def disagree(monkeypatch, run, name: str, num_votes: int) -> None:
    """Let a member vote for another root in the first root-only steps."""
    left = [num_votes]

    def vote(run_, round_, owner, state_root):
        if owner == bytes(member(run, name).owner.pubkey()) and left[0] > 0:
            left[0] -= 1
            return root_vote(run_, round_, owner, b"x" * 32)
        return root_vote(run_, round_, owner, state_root)

    monkeypatch.setattr(cooldown, "root_vote", vote)


async def test_cooldown_without_majority_is_repeated(run_factory, monkeypatch):
    run = await run_factory.start(3, names="ada bob")
    disagree(monkeypatch, run, "bob", 1)
    await run.finish()
    view = await assert_finished(run)
    assert len(events_of(run, "bob", "root_voted")) == 2
    assert view.run.void_streak == 0


async def test_cooldown_that_never_agrees_halts_and_finds_its_way_out(run_factory, monkeypatch):
    run = await run_factory.start(3, names="ada bob", checkpoint_every=2)
    disagree(monkeypatch, run, "bob", 3)
    await until(run, lambda view: view.run.phase == Phase.HALTED)
    await run.finish()
    view = await assert_finished(run)
    # All rounds are done, so the run ends with the last root that found a majority.
    assert view.run.round == 3
    assert view.run.root_round == 2
