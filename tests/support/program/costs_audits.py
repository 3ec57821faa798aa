"""The worst case of every instruction of an audit: 64 participants, all of them sampled.

Next: costs.py, which collects them; audits.py for the driver.
"""

from collections.abc import Sequence

from support.program.audits import LAZY, MISMATCH, OK, UNAVAILABLE, AuditDriver, Said
from support.program.chain import ChainDriver

FULL = {"capacity": 64, "audit_cap": 64, "max_rounds": 1_000}
EVERY_KIND: tuple[list[Said], ...] = (
    [OK, OK, OK],
    [OK, MISMATCH, OK, OK, OK],
    [MISMATCH, OK, MISMATCH, MISMATCH, OK],
    [OK, MISMATCH, UNAVAILABLE, OK, MISMATCH, OK, MISMATCH],
    [(OK, LAZY), OK, OK, OK, (OK, LAZY)],
    [UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, OK, OK],
    [None] * 7,
    # The most comparisons: seven sketches, three of which a majority contradicts.
    [(MISMATCH, LAZY), OK, (MISMATCH, LAZY), MISMATCH, MISMATCH, OK, (MISMATCH, LAZY)],
    [MISMATCH, MISMATCH, (MISMATCH, LAZY), OK, OK, OK, (OK, LAZY)],
)
"""One after the other over the targets: each way in which an audit can end."""


def scenarios() -> list[ChainDriver]:
    """Every instruction of audits in its most expensive form."""
    leavers = [_leavers([None] * 7), *(_leavers(said) for said in EVERY_KIND[-2:])]
    return [_all_sampled(), _requested(), *leavers]


def _all_sampled() -> AuditDriver:
    """All 64 are audited at the same time, and most audits go through every stage."""
    driver = AuditDriver(64, **FULL)
    driver.start()
    driver.play(1)
    driver.draw(0)
    for target in range(0, 64, 2):
        driver.open_audit(0, target)
    for target in range(64):
        driver.post(0, target)
    judge_all(driver, 0)
    return driver


def judge_all(driver: AuditDriver, round_: int) -> None:
    """Every seat of every audit speaks in the same windows; then all of them end."""
    says = {target: EVERY_KIND[target % len(EVERY_KIND)] for target in range(64)}
    driver.take_all_verdicts(round_, {target: said[:3] for target, said in says.items()})
    for first, last in ((3, 5), (5, 7)):
        longer = {target: said[first:last] for target, said in says.items() if len(said) > first}
        for target in longer:
            driver.extend(round_, target)
        driver.take_all_verdicts(round_, longer)
    for target in range(64):
        driver.settle(round_, target)


def _requested() -> AuditDriver:
    """Audits paid in advance, beyond a sample of nobody."""
    driver = AuditDriver(64, **FULL, p_base_ppm=0, p_new_ppm=0)
    driver.start()
    driver.commit_all()
    for target in range(4):
        driver.request(target)
    driver.attest_all()
    driver.close()
    driver.draw(0)
    driver.judge(0, 0, [OK, MISMATCH, OK, MISMATCH, UNAVAILABLE, OK, MISMATCH])
    return driver


def _leavers(said: Sequence[Said]) -> AuditDriver:
    """Seven seats whose whole stake is in tickets say these; those at fault pay from them."""
    driver = AuditDriver(64, **FULL)
    driver.start()
    driver.play(1)
    driver.draw(0)
    driver.post(0, 0)
    seats = [seat.index for seat in driver.of(0, 0).seats]
    for index in seats:
        driver.leave(index)
    driver.take_verdicts(0, 0, said[:3])
    for more in (said[3:5], said[5:]):
        driver.extend(0, 0)
        driver.take_verdicts(0, 0, more)
    driver.settle(0, 0, people=seats)
    return driver
