"""Seats and jurors that compute nothing, or say nothing, and want to be paid. Threat T20, T71."""

from support.fields import assert_fields
from support.program.audits import INCONCLUSIVE, LAZY, OK, TRUE
from support.program.cases import FEE, MISMATCH, ROOT, STAKE, WORK, CaseDriver
from support.program.losses import fined_lamports, penalties

from troth_attestation.cases import NO_SKETCH
from troth_attestation.quorum import AuditOutcome, CaseOutcome

INVENTED = tuple((k * 7_919) % 2_003 - 1_001 for k in range(64))
TARGET = 3


def test_idle_seats_that_claim_nothing_are_fined_and_the_target_is_paid() -> None:
    """Three of five seats compute nothing, say `inconclusive` and invent their sketches.

    It used to be free, and cost an honest target its reward. Now the two that worked agree, and
    each idle sketch agrees with nobody: two fees each, no step towards jail. Two more seats judge,
    and the target is cleared.
    """
    driver = CaseDriver.started()
    idle = [(INCONCLUSIVE, LAZY), (INCONCLUSIVE, INVENTED), (INCONCLUSIVE, NO_SKETCH)]
    landed = driver.judge(0, TARGET, [*idle, OK, OK, OK, OK])
    settled, seats = landed.event("AuditSettled"), driver.of(0, TARGET).seats
    assert_fields(settled, outcome=AuditOutcome.CLEARED, reward_undone=0)
    assert settled.paid == sum(1 << seat.index for seat in seats[3:])
    fines = {event.index: fined_lamports(event) for event in penalties(landed)}
    assert fines == {seat.index: 2 * FEE for seat in seats[:3]}
    assert all(driver.entries[seat.index].seat_faults == 0 for seat in seats)


def test_a_sketch_of_zeros_is_no_proof_of_ok_or_mismatch() -> None:
    """Zeros agreed with zeros: three idle seats were paid and outvoted the honest ones."""
    driver = CaseDriver.started()
    driver.post(0, TARGET)
    audit = driver.of(0, TARGET)
    for seat in audit.judging:
        commit, _ = driver.commit_instructions(audit, seat.index, (OK, NO_SKETCH))
        driver.send(commit, driver.sessions[seat.index])
    index = audit.judging[0].index
    _, reveal = driver.commit_instructions(audit, index, (OK, NO_SKETCH))
    assert driver.refused(reveal, driver.sessions[index]) == "ZeroSketch"


def test_jurors_are_paid_for_work_and_not_for_doubt() -> None:
    """A juror repeats the seats' verdict with an invented sketch; idle ones say `inconclusive`.

    The majority convicts, and pays only those whose sketches agree. In an exact case a jury that
    says nothing but `inconclusive` is not paid at all.
    """
    driver = CaseDriver.started()
    seated = driver.seat_jury(driver.accuse(0, TARGET))
    votes = [(MISMATCH, INVENTED), *[(MISMATCH, TRUE)] * (len(seated.jurors) - 1)]
    driver.take_votes(seated, votes)
    settled = driver.settle_case(seated).event("CaseSettled")
    honest = sum(1 << juror.index for juror in seated.jurors[1:])
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, paid=honest)
    assert driver.case(0, TARGET, WORK).jurors[0].verdict == MISMATCH
    driver.challenge(driver.outsider("challenger"), 0, 5, ROOT)
    idle = driver.decide(driver.case(0, 5, ROOT), INCONCLUSIVE).event("CaseSettled")
    assert_fields(idle, outcome=CaseOutcome.NOT_PROVEN, paid=0, bond_spent=0)


def test_a_juror_that_says_mismatch_on_every_jury_is_paid_only_where_that_is_true() -> None:
    """Two of a jury convict whoever comes before them, and hope to be paid for the majority.

    They know the true sketch. Where two thirds find the work as it should be, the accused is
    acquitted, and the two have judged for nothing.
    """
    driver = CaseDriver.started()
    seated = driver.seat_jury(driver.accuse(0, TARGET))
    driver.take_votes(seated, [MISMATCH] * 2 + [OK] * (len(seated.jurors) - 2))
    settled = driver.settle_case(seated).event("CaseSettled")
    honest = sum(1 << juror.index for juror in seated.jurors[2:])
    assert_fields(settled, outcome=CaseOutcome.ACQUITTED, paid=honest, stake=0)
    assert driver.entries[TARGET].stake == STAKE
