"""A gradient that the judge may not read: it asks the port, and finds what it finds in an array."""

from dataclasses import replace

import numpy as np
import pytest
from support.judged_work import NUM_TILES, RULE, SIGMA, TARGET, trained

from troth_attestation import sketch
from troth_attestation.agreement import least_agreement
from troth_attestation.errors import TensorError
from troth_attestation.measure import scale_of
from troth_attestation.verdict import Reason
from troth_coordinator.rules.config import JudgeSection

ALL_VOTES = replace(
    RULE,
    judge=JudgeSection(agreement_bound_micro=500_000, agreement_audits=2_995),
    tensor_tiles=(NUM_TILES,),
)


class Elsewhere:
    """A gradient behind the port; `asked` has what the judge wanted to know."""

    def __init__(self, tiles):
        self._tiles = tiles
        self.shape = tiles.shape
        self.asked = []

    @property
    def scale(self):
        return scale_of(self._tiles)

    def drawn(self, tiles):
        self.asked.append(("drawn", len(tiles)))
        return self._tiles[tiles].reshape(len(tiles), -1)

    def agreement(self, cut, signs, counted):
        self.asked.append(("agreement", len(cut)))
        return least_agreement(cut, signs, self._tiles, counted)

    def sums(self, places):
        found = np.zeros(128)
        values = self._tiles.reshape(-1)
        every = np.concatenate([*places, np.zeros(0, np.uint8)])
        self.asked.append(("sums", len(every)))
        np.add.at(found, every, values.astype(np.float64))
        return found


def free_rider(_parts, before, _rng):
    return before.mean(axis=0)


@pytest.mark.parametrize("cheat", [None, free_rider])
@pytest.mark.parametrize("rule", [RULE, ALL_VOTES], ids=["drawn tiles", "all votes"])
def test_the_verdict_is_that_on_an_array(cheat, rule):
    work = trained(2, cheat)
    own = Elsewhere(work.own)
    assert work.judged(gradient=own, rule=rule) == work.judged(rule=rule)
    groups = [] if rule is RULE else [("agreement", 1)]
    assert own.asked == [("drawn", len(work.sampled.tiles)), *groups]


def test_a_second_computation_may_lie_elsewhere_too():
    work = trained(2, lambda parts, _before, _rng: parts[:6].mean(axis=0))
    second = Elsewhere(work.own * np.float32(1.01))
    found = work.judged(gradient=Elsewhere(work.own), again=lambda: second)
    assert found == work.judged(again=lambda: work.own * np.float32(1.01))
    assert second.asked


def test_a_gradient_that_is_not_finite_or_of_another_model_is_known_by_its_port():
    work = trained(2)
    broken = work.own.copy()
    broken[3, 1, 2] = np.nan
    assert work.judged(gradient=Elsewhere(broken)).reason == Reason.OWN_NOT_FINITE
    with pytest.raises(TensorError):
        work.judged(gradient=Elsewhere(work.own[1:]))


def test_a_sketch_is_that_of_an_array():
    own = trained(2).own / np.float32(1000)
    assert sketch.sketch(Elsewhere(own), SIGMA, TARGET) == sketch.sketch(own, SIGMA, TARGET)
    many = np.tile(own.reshape(-1), 7)
    there = Elsewhere(many)
    assert sketch.sketch(there, SIGMA, TARGET) == sketch.sketch(many, SIGMA, TARGET)
    assert there.asked == [("sums", 7 * own.size)]
    assert many.size > sketch.CHUNK


@pytest.mark.parametrize("values", [[], [np.nan], [np.inf, 1], [np.inf, -np.inf]])
def test_a_port_without_finite_coefficients_is_refused(values):
    with pytest.raises(TensorError, match="finite coefficients"):
        sketch.sketch(Elsewhere(np.array(values, np.float32)), SIGMA, TARGET)
