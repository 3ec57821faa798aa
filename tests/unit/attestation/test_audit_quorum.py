"""Seats and committees: what many say together, and who of them is at fault."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_attestation.errors import ReportError
from troth_attestation.panel import Panel, Report
from troth_attestation.quorum import AuditOutcome, CaseOutcome, SeatFault, case_outcome
from troth_attestation.sketch import proves
from troth_attestation.verdict import Reason, Statement, Verdict, VerdictKind
from troth_coordinator.rules.audit_view import MOST
from troth_coordinator.rules.errors import RangeError

OK, MISMATCH, UNAVAILABLE, INCONCLUSIVE = VerdictKind
TRUE = (1000,) * 64
CLOSE = (1001,) * 64
LAZY = (-700,) * 64
LAZY_TOO = (1, *(-900,) * 63)
ZEROS = (0,) * 64
SILENT = Report()
HIDDEN = Report(has_committed=True)


def outcome(reports, num_available):
    return Panel(reports).outcome(num_available)


def outvoted(reports):
    return Panel(reports).outvoted


def paid_seats(reports):
    return Panel(reports).paid_seats()


def seat_faults(reports, case=None):
    return Panel(reports).faults(case)


def said(kind, sketch=TRUE):
    return Report(True, kind, None if kind == UNAVAILABLE else sketch)


def all_say(*kinds):
    return [said(kind) for kind in kinds]


def test_three_ok_clear_at_once():
    assert outcome(all_say(OK, OK, OK), 5) == AuditOutcome.CLEARED
    assert outcome(all_say(OK, OK, OK), 3) == AuditOutcome.CLEARED


@pytest.mark.parametrize(
    "odd",
    [
        said(MISMATCH),
        said(UNAVAILABLE),
        said(INCONCLUSIVE),
        SILENT,
        HIDDEN,
        said(OK, LAZY),
        Report(True, OK, None),
    ],
)
def test_anything_but_three_agreeing_ok_extends(odd):
    for place in range(3):
        reports = all_say(OK, OK)
        reports.insert(place, odd)
        assert outcome(reports, 5) == AuditOutcome.EXTEND
        assert outcome(reports, 4) == AuditOutcome.EXTEND


def test_without_further_seats_the_first_three_decide():
    assert outcome(all_say(MISMATCH, MISMATCH, MISMATCH), 3) == AuditOutcome.ACCUSED
    assert outcome(all_say(MISMATCH, MISMATCH, OK), 3) == AuditOutcome.UNPROVEN


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (OK, AuditOutcome.CLEARED),
        (MISMATCH, AuditOutcome.ACCUSED),
        (UNAVAILABLE, AuditOutcome.UNAVAILABLE),
        (INCONCLUSIVE, AuditOutcome.UNPROVEN),
    ],
)
def test_three_of_five_decide(kind, expected):
    other = said(INCONCLUSIVE)
    assert outcome([said(kind), other, said(kind), SILENT, said(kind)], 5) == expected
    if kind != INCONCLUSIVE:
        two = [said(kind), other, said(kind), SILENT, other]
        assert outcome(two, 5) == AuditOutcome.UNPROVEN


def test_every_five_verdicts_have_at_most_one_majority():
    for kinds in product([*VerdictKind, None], repeat=5):
        reports = [HIDDEN if kind is None else Report(True, kind) for kind in kinds]
        majority = [kind for kind in VerdictKind if kinds.count(kind) >= 3]
        expected = {OK: 1, MISMATCH: 3, UNAVAILABLE: 7, INCONCLUSIVE: 5}
        is_starved = kinds.count(MISMATCH) + kinds.count(UNAVAILABLE) >= 3
        undecided = AuditOutcome.UNAVAILABLE if is_starved else AuditOutcome.UNPROVEN
        assert outcome(reports, 5) == (expected[majority[0]] if majority else undecided)


@pytest.mark.parametrize(
    ("kinds", "decided"),
    [
        ([MISMATCH, UNAVAILABLE] * 2 + [OK, MISMATCH, UNAVAILABLE], AuditOutcome.UNAVAILABLE),
        ([MISMATCH] * 2 + [UNAVAILABLE] + [OK] * 2 + [INCONCLUSIVE] * 2, AuditOutcome.UNAVAILABLE),
        ([MISMATCH] * 2 + [UNAVAILABLE] + [OK] * 3 + [INCONCLUSIVE], AuditOutcome.CLEARED),
        ([MISMATCH, UNAVAILABLE] + [OK] * 2 + [INCONCLUSIVE] * 3, AuditOutcome.UNPROVEN),
        ([MISMATCH, UNAVAILABLE, INCONCLUSIVE, OK, None, None, None], AuditOutcome.UNPROVEN),
    ],
)
def test_who_serves_a_part_of_the_seats_has_a_jury_judge_its_work(kinds, decided):
    reports = [HIDDEN if kind is None else Report(True, kind) for kind in kinds]
    assert outcome(reports, 7) == decided
    if decided == AuditOutcome.UNAVAILABLE:
        assert outcome(reports[:5], 7) == AuditOutcome.EXTEND, "two more seats judge before"


@pytest.mark.parametrize(("given_", "seats"), [(2, 5), (4, 5), (6, 7), (8, 8), (3, 2), (5, 4)])
def test_other_numbers_of_reports_are_refused(given_, seats):
    with pytest.raises(ReportError, match="reports of an audit"):
        outcome(all_say(*[OK] * given_), seats)


def test_a_lazy_seat_is_outvoted_by_three_that_agree():
    reports = [said(OK, LAZY), said(OK), said(OK, CLOSE), said(OK), said(OK, LAZY_TOO)]
    assert outvoted(reports) == {0, 4}
    assert outcome(reports, 5) == AuditOutcome.CLEARED
    assert paid_seats(reports) == {1, 2, 3}
    assert seat_faults(reports) == {0: SeatFault.OUTVOTED_SKETCH, 4: SeatFault.OUTVOTED_SKETCH}


def test_a_sketch_that_agrees_with_nobody_is_a_fault_whatever_it_stands_beside():
    reports = [said(OK), said(INCONCLUSIVE, LAZY), said(OK, CLOSE), said(OK)]
    assert outvoted(reports) == {1}
    assert paid_seats(reports) == {0, 2, 3}
    assert seat_faults(reports) == {1: SeatFault.OUTVOTED_SKETCH}


def test_idle_seats_that_know_nothing_of_each_other_are_all_found_out():
    """Three random sketches beside `inconclusive` were free, and cost the target its reward."""
    idle = [said(INCONCLUSIVE, sketch) for sketch in (LAZY, (301,) * 64, ZEROS)]
    five = [idle[0], said(OK), idle[1], said(OK, CLOSE), idle[2]]
    assert outvoted(five) == {0, 2, 4}
    assert outcome(five, 5) == AuditOutcome.UNPROVEN
    assert outcome(five, 7) == AuditOutcome.EXTEND
    seven = [*five, said(OK), said(OK)]
    assert outcome(seven, 7) == AuditOutcome.CLEARED
    assert paid_seats(seven) == {1, 3, 5, 6}


def test_zeros_agree_with_nothing_not_even_with_each_other():
    zeros = [said(INCONCLUSIVE, ZEROS)] * 3
    assert paid_seats(zeros) == frozenset()
    assert outvoted(zeros) == frozenset(), "no two others agree"
    assert outvoted([*zeros, said(OK), said(OK)]) == {0, 1, 2}


def test_doubt_outvotes_nobody_and_is_paid_only_where_it_is_the_majority():
    unsure = said(INCONCLUSIVE)
    cartel = [unsure, said(OK, LAZY), unsure, unsure, said(OK, LAZY_TOO)]
    assert outvoted(cartel) == frozenset()
    assert paid_seats(cartel) == {0, 2, 3}
    two = [unsure, said(OK), unsure, said(OK), said(OK)]
    assert paid_seats(two) == {1, 3, 4}
    apart = [unsure, said(INCONCLUSIVE, LAZY), said(INCONCLUSIVE, LAZY_TOO), SILENT, SILENT]
    assert paid_seats(apart) == frozenset()


def test_a_pair_outvotes_one_of_three_and_two_differing_pairs_nobody():
    assert outvoted([said(OK, LAZY), said(OK), said(OK)]) == {0}
    pairs = [said(OK, LAZY), said(OK, LAZY), said(OK), said(OK), SILENT]
    assert not outvoted(pairs)
    half = [said(OK, LAZY)] * 3 + [said(OK)] * 4
    assert outvoted(half) == {0, 1, 2}, "more than half of all"
    assert not outvoted([said(OK, LAZY)] * 3 + [said(OK)] * 3)


def test_among_seven_the_leading_verdict_decides_and_a_tie_does_not():
    assert outcome(all_say(OK, OK, OK, MISMATCH, MISMATCH, INCONCLUSIVE, UNAVAILABLE), 7) == 1
    assert outcome(all_say(*[OK] * 3, *[MISMATCH] * 3, INCONCLUSIVE), 7) == 5
    assert outcome(all_say(*[MISMATCH] * 3, *[INCONCLUSIVE] * 3, OK), 7) == 5
    assert outcome(all_say(*[UNAVAILABLE] * 3, OK, OK, MISMATCH, MISMATCH), 7) == 7
    assert outcome(all_say(*[INCONCLUSIVE] * 3, *[OK] * 3), 6) == 5


def test_the_verdict_of_an_outvoted_seat_does_not_count():
    reports = [said(OK), said(OK, LAZY), said(OK), said(MISMATCH), SILENT]
    assert outcome(reports, 5) == AuditOutcome.UNPROVEN


def test_who_is_paid():
    two = [said(UNAVAILABLE), said(UNAVAILABLE), said(OK), said(UNAVAILABLE), HIDDEN]
    assert paid_seats(two) == {2}
    split = [said(OK), said(OK, LAZY)]
    assert paid_seats(split) == frozenset()
    assert paid_seats([SILENT] * 3) == frozenset()


def test_silence_is_a_fault_and_doubt_is_none():
    reports = [SILENT, HIDDEN, said(UNAVAILABLE), said(INCONCLUSIVE), said(OK)]
    assert seat_faults(reports) == {0: SeatFault.NO_COMMIT, 1: SeatFault.NO_REVEAL}


def test_wrong_verdicts_are_faults_once_a_jury_has_decided():
    reports = [said(OK), said(MISMATCH), said(MISMATCH), said(MISMATCH), said(INCONCLUSIVE)]
    assert seat_faults(reports, CaseOutcome.CONVICTED) == {0: SeatFault.WRONG_OK}
    assert seat_faults(reports, CaseOutcome.ACQUITTED) == dict.fromkeys(
        (1, 2, 3), SeatFault.FALSE_MISMATCH
    )
    assert seat_faults(reports, CaseOutcome.NOT_PROVEN) == {}
    assert seat_faults(reports, CaseOutcome.EXCLUDED) == {}
    assert seat_faults(reports, CaseOutcome.NO_OPENINGS) == {}


@pytest.mark.parametrize(("members", "needed"), [(3, 2), (4, 3), (5, 4), (6, 4), (7, 5)])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (MISMATCH, CaseOutcome.CONVICTED),
        (OK, CaseOutcome.ACQUITTED),
        (UNAVAILABLE, CaseOutcome.NO_OPENINGS),
        (INCONCLUSIVE, CaseOutcome.NOT_PROVEN),
    ],
)
def test_two_thirds_of_all_members_decide(members, needed, kind, expected):
    silent = [None] * members
    full, short = [kind] * needed + silent[needed:], [kind] * (needed - 1) + silent[needed - 1 :]
    assert case_outcome(full, is_work=True) == expected
    assert case_outcome(short, is_work=True) == CaseOutcome.NOT_PROVEN


@pytest.mark.parametrize("said_of_it", [[], [OK], [MISMATCH], [None], [INCONCLUSIVE]])
def test_only_the_openings_of_work_are_owed(said_of_it):
    votes = [UNAVAILABLE] * 3 + said_of_it
    assert case_outcome(votes, is_work=True) == CaseOutcome.NO_OPENINGS
    assert case_outcome(votes, is_work=False) == CaseOutcome.NOT_PROVEN


def test_too_small_and_too_large_juries():
    assert case_outcome([MISMATCH, MISMATCH], is_work=True) == CaseOutcome.EXCLUDED
    assert case_outcome([], is_work=False) == CaseOutcome.EXCLUDED
    with pytest.raises(ReportError, match="at most 7"):
        case_outcome([OK] * 8, is_work=True)


@given(st.lists(st.sampled_from([TRUE, CLOSE, LAZY, LAZY_TOO]), min_size=5, max_size=5))
def test_at_least_three_seats_are_never_outvoted(sketches):
    reports = [said(OK, sketch) for sketch in sketches]
    out = outvoted(reports)
    assert len(out) <= 2
    if out:
        assert not out & paid_seats(reports)


def statement(**changes):
    fields = {"run": b"r" * 32, "round": 7, "target": 3, "witness": 4, "kind": OK}
    fields |= {"evidence": b"e" * 32, "sketch_hash": b"s" * 32}
    return Statement(**(fields | changes))


def test_a_commitment_binds_every_field():
    salt = b"x" * 32
    changes = [{"run": b"q" * 32}, {"round": 8}, {"target": 4}, {"witness": 3}, {"kind": MISMATCH}]
    changes += [{"evidence": bytes(32)}, {"sketch_hash": bytes(32)}]
    made = {statement(**change).commit(salt) for change in [{}, *changes]}
    assert len(made | {statement().commit(bytes(32))}) == len(changes) + 2


@pytest.mark.parametrize("field", ["run", "evidence", "sketch_hash"])
def test_fields_that_do_not_fit_are_refused(field):
    with pytest.raises(RangeError, match="32 bytes"):
        statement(**{field: b"short"}).commit(bytes(32))
    with pytest.raises(RangeError, match="salt"):
        statement().commit(b"short")


def test_a_verdict_explains_itself_with_its_numbers():
    plain = Verdict(UNAVAILABLE, Reason.NOT_SERVED)
    assert plain.explain() == "unavailable: nobody served the opened tiles in time"
    full = Verdict(MISMATCH, Reason.WORK_DIFFERS, 1.0, 32, 2.5)
    assert full.explain() == (
        "mismatch: the shown work is not the gradient of the assigned sequences "
        "(median error 1.0000, 32 tiles far off, residual 2.50 x gradient)"
    )
    assert "(tile 0)" in Verdict(MISMATCH, Reason.PAYLOAD_NOT_TOP_K, tile=0).explain()


@pytest.mark.parametrize(
    ("decided", "is_work", "paid"),
    [
        (CaseOutcome.CONVICTED, True, {0}),
        (CaseOutcome.CONVICTED, False, {0, 1}),
        (CaseOutcome.ACQUITTED, True, {2, 3}),
        (CaseOutcome.NO_OPENINGS, True, {0, 4}),
        (CaseOutcome.NOT_PROVEN, True, {0, 2, 3}),
        (CaseOutcome.NOT_PROVEN, False, {0, 1, 2, 3}),
        (CaseOutcome.EXCLUDED, True, set()),
    ],
)
def test_jurors_are_paid_for_the_outcome_and_in_a_case_of_work_for_their_sketch(
    decided, is_work, paid
):
    votes = [said(MISMATCH), said(MISMATCH, LAZY), said(OK), said(OK, CLOSE), said(UNAVAILABLE)]
    jury = Panel([*votes, said(INCONCLUSIVE, LAZY_TOO), SILENT])
    assert jury.paid_jurors(decided, is_work=is_work) == paid


def test_zeros_prove_nothing_beside_a_claim():
    for kind in (OK, MISMATCH):
        assert proves(kind, TRUE) and not proves(kind, ZEROS)
    for kind in (UNAVAILABLE, INCONCLUSIVE):
        assert proves(kind, ZEROS)


def test_the_largest_numbers_on_chain_are_those_of_the_enums():
    assert MOST["outcome"] == max(AuditOutcome)
    assert MOST["case_outcome"] == max(CaseOutcome)
    assert MOST["verdict"] == max(VerdictKind)
