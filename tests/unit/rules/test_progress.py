"""The due transitions, phase by phase."""

from dataclasses import replace

import pytest
from support.views import PARAMS, entry, network, roster, round_view, run_view

from troth_coordinator.rules import progress
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, Role, RoundFlag, RunFlag, Status


def pending(number, **changes):
    return entry(number, status=Status.PENDING, **changes)


@pytest.mark.parametrize(
    ("phase", "required", "acted"),
    [
        (Phase.COMMIT, 0b0111, 0b0001),
        (Phase.COOLDOWN, 0b0111, 0b0001),
        (Phase.ATTEST, 0b1111, 0b0010),
        (Phase.HALTED, 0, 0),
    ],
)
def test_who_must_act(phase, required, acted):
    view = network(
        run=run_view(phase=phase),
        round_=round_view(trainers=0b0111, committed=0b0001, attested=0b0010),
    )
    who = progress.attendance(view)
    assert who.required == required
    assert who.acted == acted
    assert who.missing == required & ~acted


def test_without_a_round_account_nobody_must_act():
    whole = network()
    view = NetworkView(whole.slot, whole.run, whole.entries, None, None)
    assert progress.attendance(view).required == 0
    assert not progress.is_forced_void(view)


def test_commit_is_due_when_all_have_acted_or_the_time_is_over():
    some = round_view(committed=0b0111)
    assert not progress.is_transition_due(network(1_120, round_=some))
    assert progress.is_transition_due(network(1_121, round_=some))
    assert progress.is_transition_due(network(1_001, round_=round_view(committed=0b1111)))
    quorum = run_view(quorum_slot=1_020)
    assert not progress.is_transition_due(network(1_027, quorum, round_=some))
    assert progress.is_transition_due(network(1_028, quorum, round_=some))


@pytest.mark.parametrize("phase", [Phase.COMMIT, Phase.ATTEST, Phase.COOLDOWN])
def test_a_forced_void_is_due_at_once(phase):
    forced = round_view(flags=RoundFlag.FORCED_VOID)
    assert progress.is_transition_due(network(1_001, run_view(phase=phase), round_=forced))
    assert progress.is_forced_void(network(round_=forced))


def test_warmup_ends_when_all_pending_are_ready():
    run = run_view(phase=Phase.WARMUP, root_round=5)
    ready, late = pending(1, ready_round=5), pending(2, ready_round=4)
    view = network(run=run, entries=roster(ready, late, entry(3)))
    assert progress.attendance(view) == progress.Attendance(0b11, 0b01)
    assert not progress.is_transition_due(view)
    assert progress.is_transition_due(network(run=run, entries=roster(ready)))


def test_waiting_ends_with_enough_members_and_a_trainer():
    run = run_view(phase=Phase.WAITING_FOR_MEMBERS, phase_end_slot=NONE)

    def is_due(*entries):
        return progress.is_transition_due(network(run=run, entries=roster(*entries)))

    assert is_due(pending(1), pending(2, roles=Role.WITNESS))
    assert not is_due(pending(1))
    assert not is_due(*(pending(number, roles=Role.WITNESS) for number in (1, 2)))
    assert progress.num_pending(network(run=run, entries=roster(pending(1), entry(2)))) == 1


def test_a_run_that_waits_in_vain_is_not_due_but_may_be_given_up():
    waits = run_view(phase=Phase.WAITING_FOR_MEMBERS, phase_start_slot=9_000)
    run = replace(waits, waiting_since=1_000, pause_total_slots=70)
    after = progress.vain_from(run)
    assert after == 1_000 + 70 + PARAMS.unbond_slots + 1
    alone = roster(pending(1))
    assert not progress.is_transition_due(network(after, run, entries=alone))
    assert not progress.can_begin(network(after, run, entries=alone))


def test_after_its_last_warmup_a_run_begins_only_with_the_ready():
    """Strangers that join and never become ready must not hold the pool for ever."""
    waits = run_view(phase=Phase.WAITING_FOR_MEMBERS, round=5, root_round=3)
    run = replace(waits, waiting_since=1_000, flags=RunFlag.LAST_WARMUP)
    after = progress.vain_from(run)
    absent, ready = pending(1), replace(pending(2), ready_round=3)
    idle, eager = roster(absent, absent), roster(ready, ready)

    def may_be_given_up(entries, run=run, slot=after, by_authority=False):
        view = network(slot, run, entries=entries)
        is_vain = progress.is_in_vain(view, by_authority)
        assert progress.is_transition_due(view) is not progress.is_in_vain(view)
        return is_vain

    assert may_be_given_up(idle)
    assert not may_be_given_up(eager)
    assert not may_be_given_up(idle, slot=after - 1)
    assert not may_be_given_up(idle, replace(run, flags=RunFlag(0)))
    assert not may_be_given_up(idle, replace(run, round=0))
    assert may_be_given_up(idle, replace(run, round=0), by_authority=True)


def test_a_run_can_begin_only_while_a_round_is_left():
    both = roster(pending(1), pending(2))
    for round_, expected in ((PARAMS.max_rounds - 1, True), (PARAMS.max_rounds, False)):
        run = run_view(phase=Phase.WAITING_FOR_MEMBERS, round=round_)
        assert progress.can_begin(network(run=run, entries=both)) is expected


def test_a_run_that_nobody_can_join_any_more_is_due_to_finish():
    params = replace(PARAMS, join_until_round=10)
    over = run_view(phase=Phase.WAITING_FOR_MEMBERS, round=11, params=params)
    alone = roster(pending(1), entry(2, status=Status.BARRED))
    assert progress.is_transition_due(network(run=over, entries=alone))
    jailed = roster(pending(1, roles=Role.WITNESS), entry(2, status=Status.JAILED))
    assert not progress.is_transition_due(network(run=over, entries=jailed))


def test_a_run_without_a_round_left_is_due_to_finish_whoever_is_there():
    over = run_view(phase=Phase.WAITING_FOR_MEMBERS, round=PARAMS.max_rounds)
    assert progress.is_transition_due(network(run=over, entries=roster(pending(1), pending(2))))


def test_a_halted_run_rests():
    run = run_view(phase=Phase.HALTED, phase_end_slot=1_050)
    assert not progress.is_transition_due(network(1_050, run))
    assert progress.is_transition_due(network(1_051, run))


@pytest.mark.parametrize("phase", [Phase.PAUSED, Phase.FINISHED])
def test_nothing_is_due_in_a_run_that_stands_still(phase):
    assert not progress.is_transition_due(network(10**6, run_view(phase=phase)))


def test_deadlines_of_the_open_phase():
    run = run_view(phase=Phase.ATTEST)
    assert progress.phase_end_by_time(run) == 1_121
    assert progress.attest_deadline(run) == 1_117
    assert progress.void_allowed_from(run) == 1_120 + 40 + 1
    assert progress.void_allowed_from(run_view(phase_end_slot=NONE)) == NONE


def test_a_pause_has_a_budget():
    used = PARAMS.max_pause_slots - 600
    run = run_view(pause_used_slots=used)
    assert not progress.is_pause_spent(run, 10**9)
    paused = run_view(pause_used_slots=used, paused_at_slot=2_000)
    assert not progress.is_pause_spent(paused, 2_599)
    assert progress.is_pause_spent(paused, 2_600)


def test_after_the_end_participants_serve_for_a_while():
    over = run_view(phase=Phase.FINISHED, finished_slot=2_000)
    gone = 2_000 + progress.LINGER_SLOTS
    assert not progress.has_dispersed(network(gone - 1, over))
    assert progress.has_dispersed(network(gone, over))
    assert not progress.has_dispersed(network(gone, run_view(phase=Phase.COOLDOWN)))
