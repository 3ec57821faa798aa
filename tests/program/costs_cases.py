"""The worst case of every instruction of a case: 64 participants, all of them accused.

Next: costs.py, which collects them; cases.py for the driver.
"""

from program.audits import MISMATCH, OK
from program.bench import Bench
from program.cases import PAYLOAD, ROOT, WORK, Trial
from program.costs_audits import FULL

from troth_coordinator.chain import instructions as life


def scenarios() -> list[Bench]:
    """Every instruction of cases in its most expensive form."""
    return [all_accused(), _vouchers(), _leavers(), _reversed_bar()]


def full(rounds: int = 1) -> Trial:
    """A run with 64 participants after so many rounds."""
    return Trial.in_session(64, rounds, **FULL)


def all_accused() -> Trial:
    """Everybody is accused of a false root vote at the same time; half of them is convicted."""
    trial = full()
    stranger = trial.outsider("challenger")
    for target in range(64):
        trial.challenge(stranger, 0, target, ROOT)
    for target in range(64):
        trial.seat_jury(trial.case(0, target, ROOT))
    for target in range(64):
        case = trial.case(0, target, ROOT)
        trial.poll(case, [MISMATCH if target % 2 else OK] * len(case.jurors))
    for target in range(64):
        trial.settle_case(trial.case(0, target, ROOT))
    for target in range(64):
        trial.release(trial.case(0, target, ROOT))
    return trial


def _vouchers() -> Trial:
    """A malformed payload for which 64 have vouched."""
    trial = full()
    trial.challenge(trial.outsider("challenger"), 0, 9, PAYLOAD)
    case = trial.case(0, 9, PAYLOAD)
    trial.decide(case, MISMATCH)
    trial.release(case)
    return trial


def _leavers() -> Trial:
    """Target, framing seats and silent jurors all have their stake in tickets."""
    trial = full()
    trial.judge(0, 9, [MISMATCH, MISMATCH, MISMATCH, OK, OK])
    seated = trial.seat_jury(trial.case(0, 9))
    jurors = [juror.index for juror in seated.jurors]
    judges = [seat.index for seat in seated.seats]
    for index in [9, *judges, *jurors]:
        owner = trial.owners[index]
        trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    trial.poll(seated, [None, None, *[OK] * (len(jurors) - 2)])
    trial.settle_case(seated, people=[9, *judges, *jurors[:2]])
    return trial


def _reversed_bar() -> Trial:
    """A second conviction for work, appealed and reversed."""
    trial = full(2)
    trial.draw(0)
    for round_ in (1, 0):
        trial.judge(round_, 9, [MISMATCH] * 5)
        trial.decide(trial.case(round_, 9, WORK), MISMATCH, people=[9])
    case = trial.case(0, 9)
    trial.appeal(case)
    trial.run_to(case.appeal_end)
    trial.reverse(case)
    trial.release(case, people=[9])
    return trial
