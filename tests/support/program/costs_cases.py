"""The worst case of every instruction of a case: 64 participants, all of them accused.

Next: costs.py, which collects them; cases.py for the driver.
"""

from collections.abc import Sequence

from support.program.audits import MISMATCH, OK, UNAVAILABLE, Said
from support.program.cases import PAYLOAD, ROOT, CaseDriver
from support.program.chain import ChainDriver
from support.program.costs_audits import FULL
from troth_coordinator.chain.event_types_audits import CaseSettled


def scenarios() -> list[ChainDriver]:
    """Every instruction of cases in its most expensive form."""
    leavers = [_leavers([None, None, *[OK] * 5]), _leavers([OK] * 7)]
    return [all_accused(), _vouchers(), *leavers, vouchers_and_leavers(), _reversed_bar()]


def full(rounds: int = 1) -> CaseDriver:
    """A run with 64 participants after so many rounds."""
    return CaseDriver.started(64, rounds, **FULL)


def all_accused() -> CaseDriver:
    """Everybody is accused of a false root vote at the same time, and a quarter convicted."""
    driver = full()
    stranger = driver.outsider("challenger")
    for target in range(64):
        driver.challenge(stranger, 0, target, ROOT)
    for target in range(64):
        driver.seat_jury(driver.case(0, target, ROOT))
    for target in range(64):
        case = driver.case(0, target, ROOT)
        driver.take_votes(case, [OK if target % 4 else MISMATCH] * len(case.jurors))
    for target in range(64):
        driver.settle_case(driver.case(0, target, ROOT))
    for target in range(64):
        driver.release(driver.case(0, target, ROOT))
    return driver


def _vouchers() -> CaseDriver:
    """A malformed payload for which 64 have vouched."""
    driver = full()
    driver.challenge(driver.outsider("challenger"), 0, 9, PAYLOAD)
    case = driver.case(0, 9, PAYLOAD)
    driver.decide(case, MISMATCH)
    driver.release(case)
    return driver


def _leavers(votes: Sequence[Said]) -> CaseDriver:
    """Target, framing seats and jurors, silent or not, all have their stake in tickets."""
    driver = full()
    driver.judge(0, 9, [MISMATCH, MISMATCH, UNAVAILABLE, UNAVAILABLE, OK, MISMATCH, MISMATCH])
    seated = driver.seat_jury(driver.case(0, 9))
    jurors = [juror.index for juror in seated.jurors]
    judges = [seat.index for seat in seated.seats]
    for index in [9, *judges, *jurors]:
        driver.leave(index)
    driver.take_votes(seated, votes)
    driver.settle_case(seated, people=[9, *judges, *jurors])
    return driver


def vouchers_and_leavers() -> CaseDriver:
    """A malformed payload for which 64 have vouched; the target and all jurors are leaving.

    Two jurors hide their votes, and their penalty is cut from their tickets.
    """
    driver = full()
    driver.challenge(driver.outsider("challenger"), 0, 9, PAYLOAD)
    seated = driver.seat_jury(driver.case(0, 9, PAYLOAD))
    jurors = [juror.index for juror in seated.jurors]
    people = sorted({9, *jurors})
    for index in people:
        driver.leave(index)
    driver.take_votes(seated, [MISMATCH] * 5 + [OK] * 2, hidden=0b1100000)
    settled = driver.settle_case(seated, people).event("CaseSettled")
    assert isinstance(settled, CaseSettled)
    assert settled.vouchers.bit_count() == 64
    return driver


def _reversed_bar() -> CaseDriver:
    """A second conviction for work, appealed and reversed."""
    patient = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
    driver = CaseDriver.started(64, **FULL, **patient)
    driver.offend(9)
    driver.bar(9)
    case = driver.case(driver.run.round - 1, 9)
    driver.appeal(case)
    driver.run_to(case.appeal_end)
    driver.reverse(case)
    driver.release(case, people=[9])
    return driver
