"""The second computation of a seat: made on demand, never too late, never from a NaN."""

from pathlib import Path

import pytest
from support import opened
from support.audit_driver import AUDIT, INDEX, AuditDriver
from support.seated import EARLY, LATE, WITNESS, begin, ready, shown

from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_client.data.errors import ShardTokenError
from troth_client.train.errors import BatchShapeError, NonFiniteGradientError


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path, index=WITNESS)
    yield one
    await one.close()


async def judge_at(driver, slot):
    """Show an audit with our seat, all evidence at hand, in this slot."""
    ready(driver, AUDIT.data)
    await begin(driver, shown(), slot)


def asking_twice(driver, answers):
    """A judge that wants a second computation, and notes what it is given."""

    def judge(_evidence, own):
        answers.append(own.again())
        return Verdict(VerdictKind.INCONCLUSIVE, Reason.TILES_FORGED)

    driver.judge.judge = judge


async def test_a_second_computation_is_made_when_the_judge_asks_for_it(driver):
    answers = []
    asking_twice(driver, answers)
    await judge_at(driver, EARLY)
    assert driver.judge.num_references == 1
    (second,) = answers
    assert second.shape == (opened.NUM_TILES, 64, 64)


async def test_a_second_computation_that_would_end_too_late_is_not_begun(driver):
    """The seat would miss its window and be fined for silence; it is inconclusive in time."""
    answers = []
    asking_twice(driver, answers)
    await judge_at(driver, LATE)
    assert answers == [None]
    assert driver.judge.num_references == 0
    (judged,) = driver.named("judged")
    assert judged["verdict"] == "INCONCLUSIVE"


@pytest.mark.parametrize("which", ["first", "second"])
async def test_a_gradient_that_is_not_finite_is_none(driver, which):
    found = []

    def broken(*_, **__):
        raise NonFiniteGradientError("a finite gradient", "inf", "")

    def judge(_evidence, own):
        found.append(own.tiles if which == "first" else own.again())
        return Verdict(VerdictKind.INCONCLUSIVE, Reason.OWN_NOT_FINITE)

    driver.judge.judge = judge
    setattr(driver.judge, {"first": "gradient", "second": "second_gradient"}[which], broken)
    await judge_at(driver, EARLY)
    assert found == [None]
    (judged,) = driver.named("judged")
    assert judged["verdict"] == "INCONCLUSIVE"


REFUSALS = {
    "token": ShardTokenError(Path("train-00000.bin"), "tokens below 256", "token 300"),
    "shape": BatchShapeError("tokens in 0..255", "0..300", ""),
}


@pytest.mark.parametrize("kind", list(REFUSALS))
async def test_a_seat_that_cannot_take_the_data_is_inconclusive_and_says_why(driver, kind):
    """The creator of the run made it so: neither the seat nor the target is at fault."""
    found = []

    def refuse(*_):
        raise REFUSALS[kind]

    def judge(_evidence, own):
        found.append(own.tiles)
        return Verdict(VerdictKind.INCONCLUSIVE, Reason.OWN_NOT_FINITE)

    driver.judge.judge = judge
    if kind == "token":
        driver.state.data.sequences = refuse
    else:
        driver.judge.gradient = refuse
    await judge_at(driver, EARLY)
    assert found == [None]
    (judged,) = driver.named("judged")
    assert judged["verdict"] == "INCONCLUSIVE"
    (refused,) = driver.named("gradient_refused")
    assert refused["target"] == INDEX
    assert refused["reason"] == str(REFUSALS[kind])


@pytest.mark.parametrize("which", ["judge", "sketch"])
async def test_a_judge_that_finds_no_memory_beside_its_gradient_accuses_nobody(driver, which):
    """A gradient that stays on a full GPU may leave no room to measure it there."""
    given = []

    def judge(_evidence, own):
        given.append(own.tiles)
        if which == "judge" and own.tiles is not None:
            raise RuntimeError("CUDA out of memory")
        if own.tiles is None:
            return Verdict(VerdictKind.INCONCLUSIVE, Reason.OWN_NOT_FINITE)
        return Verdict(VerdictKind.MISMATCH, Reason.WORK_DIFFERS)

    def sketch(*_):
        raise MemoryError

    driver.judge.judge, driver.judge.sketch = judge, sketch
    await judge_at(driver, EARLY)
    assert given[0] is not None
    assert given[1:] == [None]
    assert len(driver.named("judge_out_of_memory")) == 1
    (judged,) = driver.named("judged")
    assert judged["verdict"] == "INCONCLUSIVE"
