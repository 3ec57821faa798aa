"""A trainer that shows no openings, and its probation.

Next: cases.py for the driver; test_outages_and_refusals.py and test_probation.py for the stories.
"""

from support.program.cases import CaseDriver
from support.program.chain import Landed
from support.program.losses import REWARD
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules import bitmap

TARGET = 3
PATIENT = {"commit_slots": 2_000, "attest_slots": 200, "vesting_slots": 9_000}
LONG = {**PATIENT, "unbond_slots": 9_000, "max_rounds": 100}


def members(num: int = 12, rounds: int = 1, **changes: int | str) -> CaseDriver:
    """The target has more at stake than it needs, so that fines do not end its membership."""
    driver = CaseDriver.started(num, rounds, **{**LONG, **changes})
    owner = driver.owners[TARGET]
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), 100 * REWARD), owner)
    return driver


def silent_refusal(driver: CaseDriver, round_: int, target: int) -> Landed:
    """The target of an open audit shows nothing until the window has ended."""
    driver.open_audit(round_, target)
    driver.run_to(driver.of(round_, target).stage_end)
    return driver.settle(round_, target)


def next_round(driver: CaseDriver) -> int:
    """Play one more round and freeze its seed."""
    round_ = driver.run.round
    driver.play(1)
    driver.draw(round_)
    return round_


def chosen_round(driver: CaseDriver) -> int:
    """Play until a round opened after the refusal has closed: its audit decides the probation."""
    early = next_round(driver)
    assert bitmap.has(driver.round(early).withheld, TARGET)
    assert not bitmap.has(driver.round(early).probation, TARGET), "it was open at the decision"
    chosen = next_round(driver)
    assert bitmap.has(driver.round(chosen).probation, TARGET)
    return chosen
