"""The losses that people read before a deposit are those that the program takes."""

import pytest
from support.program.audits import MISMATCH, OK
from support.program.cases import PAYLOAD, ROOT, CaseDriver
from support.program.losses import fined_lamports, penalties

from troth_cli.view.terms import first_refusal, losses
from troth_coordinator.rules.audit_view import AuditKind

NUM = 6


def told(driver: CaseDriver, index: int) -> dict[str, tuple[int, ...]]:
    stake = driver.entries[index].stake
    return {one.name: one.lamports for one in losses(driver.params, stake)}


@pytest.mark.parametrize(("chance", "cap"), [(1_000_000, 6), (500_000, 3), (100_000, 1)])
def test_a_full_run_stores_the_price_of_openings_that_was_told(chance, cap):
    patient = {"min_stake_lamports": 10**8, "keep_stake_lamports": 10**8}
    rates = {"p_base_ppm": chance, "p_new_ppm": chance, "audit_cap": cap, "seat_load": 15}
    driver = CaseDriver(NUM, capacity=NUM, **rates, **patient)
    driver.start()
    driver.play(1)
    driver.draw(0)
    assert driver.round(0).price_base == first_refusal(driver.params)


def test_openings_that_were_not_shown_cost_what_was_told():
    driver = CaseDriver(NUM, capacity=NUM, audit_cap=NUM, seat_load=15)
    driver.start()
    driver.play(1)
    driver.draw(0)
    first, *_ = told(driver, 2)["no_openings"]
    driver.open_audit(0, 2)
    driver.run_to(driver.of(0, 2).stage_end)
    (fine,) = penalties(driver.settle(0, 2))
    assert fined_lamports(fine) == first


@pytest.mark.parametrize(
    ("kind", "name"), [(AuditKind.WORK, "work"), (PAYLOAD, "malformed"), (ROOT, "false_root")]
)
def test_convictions_cost_what_was_told(kind, name):
    driver = CaseDriver.started()
    before, (price, *_) = driver.entries[3].stake, told(driver, 3)[name]
    if kind == AuditKind.WORK:
        driver.convict(0, 3)
    else:
        driver.challenge(driver.outsider("challenger"), 0, 3, kind)
        driver.decide(driver.case(0, 3, kind), MISMATCH, people=[3])
    assert before - driver.entries[3].stake == price


def test_a_wrong_ok_costs_what_was_told():
    driver = CaseDriver.started()
    driver.judge(0, 3, [MISMATCH, MISMATCH, MISMATCH, OK, OK])
    case = driver.vote_all(driver.case(0, 3), MISMATCH)
    wrong = [seat.index for seat in case.judging if seat.verdict == OK]
    landed = driver.settle_case(case, people=[3, *wrong])
    (price,) = told(driver, wrong[0])["wrong_ok"]
    assert {fined_lamports(one) for one in penalties(landed) if one.index in wrong} == {price}
