"""The worst case of every instruction of an audit: 64 participants, all of them sampled.

Next: costs.py, which collects them; audits.py for the driver.
"""

from program.audits import LAZY, MISMATCH, OK, UNAVAILABLE, Court, Said
from program.bench import Bench

from troth_coordinator.chain import instructions as life

FULL = {"capacity": 64, "audit_cap": 64, "max_rounds": 1_000}
EVERY_KIND: tuple[list[Said], ...] = (
    [OK, OK, OK],
    [OK, MISMATCH, OK, OK, OK],
    [MISMATCH, OK, MISMATCH, MISMATCH, OK],
    [OK, MISMATCH, UNAVAILABLE, OK, MISMATCH],
    [(OK, LAZY), OK, OK, OK, (OK, LAZY)],
    [UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, OK, OK],
    [None, None, None, None, None],
)
"""One after the other over the targets: each way in which an audit can end."""


def scenarios() -> list[Bench]:
    """Every instruction of audits in its most expensive form."""
    return [_all_sampled(), _requested(), _silent_leavers()]


def _all_sampled() -> Court:
    """All 64 are audited at the same time, and most audits go through every stage."""
    court = Court(64, **FULL)
    court.start()
    court.play(1)
    court.draw(0)
    for target in range(0, 64, 2):
        court.open_audit(0, target)
    for target in range(64):
        court.post(0, target)
    judge_all(court, 0)
    return court


def judge_all(court: Court, round_: int) -> None:
    """Every seat of every audit speaks in the same windows; then all of them end."""
    says = {target: EVERY_KIND[target % len(EVERY_KIND)] for target in range(64)}
    court.hear_all(round_, {target: said[:3] for target, said in says.items()})
    longer = {target: said[3:] for target, said in says.items() if len(said) > 3}
    for target in longer:
        court.extend(round_, target)
    court.hear_all(round_, longer)
    for target in range(64):
        court.settle(round_, target)


def _requested() -> Court:
    """Audits paid in advance, beyond a sample of nobody."""
    court = Court(64, **FULL, p_base_ppm=0, p_new_ppm=0)
    court.start()
    court.commit_all()
    for target in range(4):
        court.request(target)
    court.attest_all()
    court.close()
    court.draw(0)
    court.judge(0, 0, [OK, MISMATCH, OK, MISMATCH, OK])
    return court


def _silent_leavers() -> Court:
    """Five seats that stay silent, and whose whole stake is in tickets."""
    court = Court(64, **FULL)
    court.start()
    court.play(1)
    court.draw(0)
    court.post(0, 0)
    seats = [seat.index for seat in court.of(0, 0).seats]
    for index in seats:
        owner = court.owners[index]
        court.send(life.leave_run(court.at, owner.pubkey()), owner)
    court.hear(0, 0, [None] * 3)
    court.extend(0, 0)
    court.hear(0, 0, [None] * 2)
    court.settle(0, 0, people=seats)
    return court
