"""The report: recovery by kind, losses with their faults, and each promise that can break."""

import json
from dataclasses import replace

import pytest
from solders.pubkey import Pubkey
from support.fields import assert_fields

from troth_client.telemetry.event_log import EventLog
from troth_coordinator.chain.event_types_audits import AuditSettled, Penalised
from troth_coordinator.chain.event_types_rounds import RoundSettled
from troth_coordinator.rules.audit_view import NOT_AUDITED
from troth_simulation.faults import evidence
from troth_simulation.faults.record import ClosedRound, PlayedFault, ProcessEnd, Record, Usage
from troth_simulation.faults.report import KindReport, MemberReport, Report
from troth_simulation.faults.schedule import Fault
from troth_simulation.faults.trouble import Kind

RUN = Pubkey.default()
BOTH, FIRST, SECOND = 0b11, 0b01, 0b10
USED = Usage(1, 1)


def record(*included, played=()):
    """Rounds from 10 on with two members, whose indices are swapped: member 0 has index 1."""
    rounds = {10 + at: ClosedRound(10 + at, False, BOTH, bits) for at, bits in enumerate(included)}
    return Record((1, 0), 100, 200, 10, rounds, list(played))


def kill(first, last, member=0, slot=0):
    return PlayedFault(Fault(slot, 3, member, Kind.KILL), first, last)


def test_recovery_counts_rounds_from_the_end_of_a_fault_to_the_next_included_one():
    found = record(BOTH, FIRST, FIRST, BOTH, BOTH, played=[kill(11, 12)])
    assert evidence.kinds(found) == [KindReport(Kind.KILL, 1, (1,), 0, 0, 2)]


def test_a_fault_during_which_nothing_was_missed_has_recovered_at_once():
    found = record(BOTH, BOTH, BOTH, played=[kill(11, 11)])
    assert evidence.kinds(found) == [KindReport(Kind.KILL, 1, (0,), 0, 0, 0)]


def test_a_member_that_never_comes_back_is_counted_as_that():
    found = record(BOTH, FIRST, FIRST, played=[kill(11, 11)])
    assert evidence.kinds(found) == [KindReport(Kind.KILL, 1, (), 0, 1, 2)]


def test_a_second_fault_before_the_recovery_interrupts_the_first():
    played = [kill(11, 11, slot=1), kill(12, 12, slot=2)]
    found = record(BOTH, FIRST, FIRST, BOTH, played=played)
    assert evidence.kinds(found) == [KindReport(Kind.KILL, 2, (1,), 1, 0, 2)]


def test_rounds_are_missed_by_index_and_void_ones_by_nobody():
    found = record(BOTH, SECOND, FIRST)
    found.rounds[13] = ClosedRound(13, True, BOTH, 0)
    assert [evidence.missed_rounds(found, member) for member in (0, 1)] == [1, 1]


def penalised(index, slot=150, **taken):
    none = dict.fromkeys(("claimable", "stake", "unbonding", "unvested"), 0)
    rest = {"shortfall": 0, "acquitted": 0, "burned": 0, "status": 2}
    about = {"run": RUN, "slot": slot, "body": b"", "round": 11, "target": 0}
    return Penalised(**about, index=index, fault=6, **(none | taken), **rest)


def absence(inactivated, fees):
    none = dict.fromkeys(
        ("vested", "missed_commit", "missed_attest", "struck", "jailed", "withheld", "probation"), 0
    )
    about = {"run": RUN, "slot": 160, "body": b"", "round": 12}
    money = {"reward_paid": 0, "reward_window": 0, "fees": fees}
    return RoundSettled(**about, **money, inactivated=inactivated, **none)


def test_losses_name_member_rule_and_the_faults_that_it_had():
    found = record(BOTH, FIRST, FIRST, played=[kill(11, 11)])
    events = [penalised(1, claimable=3, stake=4), penalised(0, slot=99, stake=9), absence(0b10, 8)]
    events.append(penalised(1, slot=201, stake=9))
    one, two = evidence.losses(events, found, ["ann", "bob"])
    assert_fields(one, member="ann", fault="P6", lamports=7, during=(Kind.KILL,))
    assert_fields(two, member="ann", fault="absence", lamports=8)


def test_only_whole_epochs_are_asked_for_audits():
    fields = dict.fromkeys(
        ("stage_end", "case_seed_slot", "fee", "paid", "vested", "reward_undone", "jailed"), 0
    )
    about = {"run": RUN, "slot": 1, "body": b"", "target": 0, "is_strike": False, "status": 2}
    settled = [
        AuditSettled(**about, round=round_, outcome=outcome, **fields)
        for round_, outcome in ((12, 1), (13, 5), (21, NOT_AUDITED), (31, 1))
    ]
    assert evidence.audits_by_epoch(settled, 8, 38, 10) == {1: 2, 2: 0}


def test_rounds_with_different_roots_are_found_by_what_each_said_last(tmp_path):
    for name, roots in (("a", "xyz"), ("b", "xqz"), ("c", "xyzz")):
        with EventLog.open(tmp_path / name) as log:
            for round_, root in enumerate(roots):
                log.emit("round_closed", round=min(round_, 2), root=root)
    assert evidence.diverged(tmp_path / name for name in "abc") == [1]


def fine():
    member = MemberReport("ann", 0, 1_000, 0, 100, 100, True, USED, USED)
    kind = KindReport(Kind.KILL, 1, (0,), 0, 0, 0)
    return Report(1, 9, 0, 90, 60, (kind,), (member,), (), (), {1: 1}, (), (), (USED, USED))


def test_a_soak_without_a_loss_breaks_no_promise():
    assert fine().broken() == ()
    assert json.loads(fine().to_json())["broken"] == []
    assert "BROKEN" not in fine().to_text()


def test_a_stop_for_want_of_room_breaks_no_promise():
    stopped = ProcessEnd(0, 5, 6, 1, "no room", (Kind.DISK_FULL,))
    assert replace(fine(), ends=(stopped,)).broken() == ()


@pytest.mark.parametrize(
    ("changes", "member", "words"),
    [
        ({"num_rounds": 0}, {}, "no round"),
        ({"diverged": (7,)}, {}, "round 7"),
        ({"audits": {1: 1, 2: 0}}, {}, "epoch 2"),
        ({"ends": (ProcessEnd(0, 5, 6, 1, "why", (Kind.RPC_503,)),)}, {}, "round 6 (rpc-503): why"),
        ({"ends": (ProcessEnd(0, 5, 6, -25, "", (Kind.DISK_FULL,)),)}, {}, "round 6 (disk-full)"),
        ({"kinds": (KindReport(Kind.KILL, 2, (0,), 0, 1, 5),)}, {}, "1 of 2 kill faults"),
        ({}, {"is_active": False}, "not active"),
        ({}, {"lowest_stake": 59}, "1 lamports below"),
        ({}, {"fined": 11}, "more than 1 %"),
    ],
)
def test_each_promise_is_broken_by_itself_and_said_in_a_sentence(changes, member, words):
    (ann,) = fine().members
    report = replace(fine(), members=(replace(ann, **member),), **changes)
    (sentence,) = report.broken()
    assert words in sentence
    assert f"BROKEN: {sentence}" in report.to_text()
