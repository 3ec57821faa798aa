"""Recomputed work: the trainer's bits in one mode, within tolerance in others; no cheat passes."""

import dataclasses

import numpy as np
import pytest
import torch
from support.trainers import (
    BATCH,
    CONFIG,
    IDS,
    MIXED,
    ORDER,
    SIGMA,
    TARGET,
    TOKENS,
    Trainer,
    coefficients,
    honest_history,
    weights,
)

from troth_attestation.errors import TensorError
from troth_attestation.measure import Own
from troth_attestation.sketch import differ, sketch
from troth_attestation.verdict import Reason, VerdictKind
from troth_client.audit.judgement import judge_payload, judge_work
from troth_client.audit.recompute import (
    named_sequences,
    num_threads,
    recompute,
    recompute_reference,
)
from troth_client.audit.witness import HonestWitnessWork
from troth_client.compression.codec import payload_root
from troth_client.model.device import CPU, choose_device
from troth_client.train.errors import BatchShapeError, NonFiniteGradientError


@pytest.fixture(scope="module")
def own():
    return recompute(CONFIG, weights(), BATCH)


def shown(d_g, ids=IDS, rounds=6):
    """Evidence of a trainer with honest momentum that claims `d_g` in the audited round."""
    return honest_history(Trainer(), rounds).round(rounds, d_g, ids)


def judged(d_g, own, **changes):
    evidence = dataclasses.replace(shown(d_g), **changes)
    return judge_work(evidence, Own(own), CONFIG)


def test_a_witness_of_the_same_kind_gets_the_trainers_bits(own):
    with num_threads(1):
        assert np.array_equal(recompute(CONFIG, weights(), BATCH), coefficients(BATCH).numpy())


def test_the_order_of_microbatches_is_the_trainers(own):
    with num_threads(1):
        other = coefficients(BATCH, microbatch=8).numpy()
        assert not np.array_equal(recompute(CONFIG, weights(), BATCH), other)


@pytest.mark.parametrize(("is_juror", "microbatch", "other"), [(False, 1, 4), (True, 4, 1)])
def test_a_witness_takes_the_microbatch_of_its_device_and_a_juror_the_configs(
    is_juror, microbatch, other
):
    work = HonestWitnessWork(CONFIG, choose_device("cpu", 1))
    with num_threads(1):
        compute = work.reference_gradient if is_juror else work.gradient
        first = compute(weights(), BATCH)
        second = work.second_gradient(weights(), BATCH, in_reference=is_juror)
        for found, device in ((first, CPU), (second, MIXED)):
            assert np.array_equal(found, coefficients(BATCH, device, microbatch).numpy())
            assert not np.array_equal(found, coefficients(BATCH, device, other).numpy())


def test_a_witness_in_single_sequences_calls_honest_work_ok(own):
    single = recompute(CONFIG, weights(), BATCH, choose_device("cpu", 1))
    found = judged(torch.from_numpy(own), single)
    assert found.kind == VerdictKind.OK, found.explain()


class Watching(dict):
    """Weights that note with how many threads they are read."""

    threads = 0

    def items(self):
        self.threads = torch.get_num_threads()
        return super().items()


def test_reference_mode_is_fp32_on_one_thread_and_gives_the_same_bits_each_time():
    given = Watching(weights())
    with num_threads(2):
        first = recompute_reference(CONFIG, given, BATCH)
        assert torch.get_num_threads() == 2
    assert given.threads == 1
    assert np.array_equal(first, recompute_reference(CONFIG, weights(), BATCH))


def test_the_number_of_threads_comes_back_after_an_error():
    with num_threads(2):
        with pytest.raises(BatchShapeError):
            recompute_reference(CONFIG, weights(), BATCH[:, :1])
        assert torch.get_num_threads() == 2


def test_the_weights_handed_in_are_not_changed():
    given = {name: torch.from_numpy(array) for name, array in weights().items()}
    before = {name: tensor.clone() for name, tensor in given.items()}
    recompute(CONFIG, given, BATCH)
    assert all(torch.equal(given[name], before[name]) for name in given)
    assert not any(tensor.requires_grad for tensor in given.values())


def test_a_gradient_that_is_not_finite_is_refused_by_name():
    broken = weights()
    broken["model.norm.weight"] = np.full_like(broken["model.norm.weight"], np.inf)
    with pytest.raises(NonFiniteGradientError):
        recompute(CONFIG, broken, BATCH)


def test_a_judge_without_a_finite_gradient_accuses_nobody(own):
    """Zeros in its place would make every tile of honest work one without gradient."""
    found = judged(torch.from_numpy(own), None)
    assert found.kind == VerdictKind.INCONCLUSIVE
    assert found.reason == Reason.OWN_NOT_FINITE


@pytest.mark.parametrize("device", ["fp32", "bf16"])
def test_honest_work_is_ok_across_precisions(own, device):
    d_g = coefficients(BATCH, MIXED) if device == "bf16" else coefficients(BATCH)
    found = judged(d_g, own)
    assert found.kind == VerdictKind.OK, found.explain()


def test_a_witness_in_bf16_clears_a_trainer_in_fp32(own):
    mixed = recompute(CONFIG, weights(), BATCH, MIXED)
    assert judged(torch.from_numpy(own), mixed).kind == VerdictKind.OK


def test_a_free_rider_is_caught(own):
    """It sends its decayed residual, which reproduces most of an honest top-k."""
    found = judged(torch.zeros_like(torch.from_numpy(own)), own)
    assert found.kind == VerdictKind.MISMATCH
    assert found.reason == Reason.WORK_DIFFERS
    assert found.median_error == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("kept", [4, 6, 7])
def test_a_part_of_the_batch_never_passes(own, kept):
    found = judged(coefficients(BATCH[:kept], microbatch=1), own)
    assert found.kind in (VerdictKind.MISMATCH, VerdictKind.INCONCLUSIVE)
    assert found.median_error > 0.1, found.explain()


def test_other_sequences_than_the_assigned_are_caught(own):
    others = coefficients(TOKENS.sequences(ORDER.sequences(40, 8)))
    assert judged(others, own).kind == VerdictKind.MISMATCH


def test_sketches_of_two_precisions_agree_and_a_lazy_one_differs(own):
    mixed = recompute(CONFIG, weights(), BATCH, MIXED)
    lazy = recompute(CONFIG, weights(), BATCH[:4])
    sketches = [sketch(gradient, SIGMA, TARGET) for gradient in (own, mixed, lazy)]
    assert not differ(sketches[0], sketches[1])
    assert differ(sketches[0], sketches[2])


@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"openings": None}, VerdictKind.UNAVAILABLE, Reason.NOT_SERVED),
        ({"openings": b"x" * 900}, VerdictKind.UNAVAILABLE, Reason.OPENINGS_ROOT),
        ({"payload": b"short"}, VerdictKind.MISMATCH, Reason.PAYLOAD_MALFORMED),
    ],
)
def test_what_is_missing_or_broken_is_named(own, changes, kind, reason):
    found = judged(torch.from_numpy(own), own, **changes)
    assert found.kind == kind
    assert found.reason == reason


def test_a_payload_that_is_not_the_top_k_of_the_shown_residual_is_caught(own):
    other = shown(coefficients(TOKENS.sequences(ORDER.sequences(40, 8))))
    found = judged(torch.from_numpy(own), own, payload=other.payload)
    assert found.reason == Reason.PAYLOAD_NOT_TOP_K


def test_an_unusable_gradient_of_ones_own_is_no_verdict(own):
    broken = own.copy()
    broken[0, 0, 0] = np.nan
    assert judged(torch.from_numpy(own), broken).reason == Reason.OWN_NOT_FINITE
    with pytest.raises(TensorError):
        judged(torch.from_numpy(own), own[:3])


def test_a_payload_case_is_judged_by_the_strict_decoder(own):
    evidence = shown(torch.from_numpy(own), rounds=0)
    header, good = evidence.header, evidence.payload
    tiles = len(own)
    assert judge_payload(header, good, tiles, CONFIG).kind == VerdictKind.OK
    bad = bytes([good[0] ^ 255]) + good[1:]
    signed = dataclasses.replace(header, payload_root=payload_root(bad))
    found = judge_payload(signed, bad, tiles, CONFIG)
    assert found.kind == VerdictKind.MISMATCH
    assert found.reason == Reason.PAYLOAD_MALFORMED
    assert judge_payload(header, bad, tiles, CONFIG).kind == VerdictKind.UNAVAILABLE
    assert judge_payload(header, None, tiles, CONFIG).kind == VerdictKind.UNAVAILABLE


def test_the_header_names_the_sequences_when_the_chain_has_forgotten_the_trainers(own):
    header = shown(torch.from_numpy(own), rounds=0).header
    assert named_sequences(header, ORDER, 0, 8) == IDS
    assert named_sequences(header, ORDER, 8, 8) == IDS
    assert named_sequences(header, ORDER, 17, 8) is None


def test_the_second_gradient_is_that_of_the_other_precision(own):
    work = HonestWitnessWork(CONFIG, CPU)
    mixed = recompute(CONFIG, weights(), BATCH, MIXED)
    for in_reference in (True, False):
        second = work.second_gradient(weights(), BATCH, in_reference=in_reference)
        assert np.allclose(second, mixed, atol=1e-6)
    back = HonestWitnessWork(CONFIG, MIXED)
    assert np.allclose(back.second_gradient(weights(), BATCH, in_reference=False), own, atol=1e-6)
    reference = back.second_gradient(weights(), BATCH, in_reference=True)
    assert np.allclose(reference, mixed, atol=1e-6)
