"""A device that would let weights drift is found before it applies anything."""

import hashlib
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from support import reference

from troth_client.compression import exact, known_answer
from troth_client.compression.errors import KnownAnswerError


def value(bits):
    return Fraction(float(np.uint32(bits).view(np.float32)))


def nearest(x, zero=0):
    """Bits of the fp32 number nearest to a Fraction, ties to even, subnormal numbers included."""
    if x == 0:
        return zero
    magnitude, exponent = abs(x), -149
    while magnitude / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    q = magnitude / Fraction(2) ** exponent
    mantissa = round(q)  # Fraction rounds halves to even
    return int(np.float32(mantissa * 2.0**exponent).view(np.uint32)) | (0x80000000 if x < 0 else 0)


def test_shipped_q_is_that_of_python_integers():
    b = np.array(reference.basis(), object)
    q = np.array([b.T.dot(c).dot(b) for c in known_answer.extreme_counts().astype(object)])
    answer = hashlib.sha256(q.astype(np.int64).astype("<i8").tobytes()).hexdigest()
    assert answer == known_answer.Q_SHA256


def test_extremes_are_extreme():
    counts = known_answer.extreme_counts().astype(np.int64)
    b = np.array(reference.basis(), np.int64)
    q = b.T @ counts @ b
    largest = 64 * int(np.abs(b).sum(axis=0).max()) ** 2
    assert np.abs(counts).max() == 64
    assert np.abs(q[0]).max() == largest
    assert 2**39 < largest < 2**40
    assert np.abs(counts[2]).sum() == 64 * 64  # as much as 64 senders with k = 64 reach
    assert not np.diagonal(q[6]).any()
    assert q[6].any()


@pytest.mark.parametrize(
    ("decay", "rate", "cases"),
    [
        (known_answer.DECAY, known_answer.RATE, known_answer.STEP_CASES),
        (0x3F800000, known_answer.RATE, known_answer.NO_DECAY_CASES),
        (known_answer.DECAY, 0, known_answer.STILL_CASES),
    ],
)
def test_shipped_steps_are_those_of_exact_fractions(decay, rate, cases):
    for weight, d, answer in cases:
        scaled = nearest(value(weight) * value(decay), zero=weight & 0x80000000)
        # A difference is -0.0 only as -0.0 - +0.0, and b * d is +0.0 unless d is negative.
        zero = scaled & 0x80000000 if value(scaled) == 0 and d >= 0 else 0
        assert nearest(value(scaled) - d * value(rate), zero=zero) == answer


def test_three_cases_would_show_a_fused_step():
    fused = [
        (w, d)
        for w, d, answer in known_answer.STEP_CASES
        if d
        and value(w)
        and nearest(value(w) * value(known_answer.DECAY) - d * value(known_answer.RATE)) != answer
    ]
    assert len(fused) == 3


def test_cpu_passes_in_both_arithmetics():
    known_answer.check("cpu")
    known_answer.check("cpu", torch.int64)
    assert known_answer.choose_path("cpu").reason == ""
    assert known_answer.choose_path("cpu").block_tiles <= 1024


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_passes():
    known_answer.check("cuda")
    assert known_answer.choose_path("cuda").block_tiles <= 1024


def test_mps_and_devices_that_cannot_answer_leave_it_to_the_cpu():
    for device, reason in (("mps", "no fp64"), ("meta", "NotImplementedError")):
        path = known_answer.choose_path(device)
        assert path.device.type == "cpu"
        assert path.dtype == torch.float64
        assert reason in path.reason


def test_integers_are_computed_on_the_cpu_for_a_reason_that_is_shown():
    path = known_answer.integer_path("asked for")
    assert path.device.type == "cpu"
    assert path.dtype == torch.int64
    assert "int64" in repr(path)
    assert path.reason == "asked for"


def test_single_precision_is_found_out():
    with pytest.raises(KnownAnswerError, match="SHA-256"):
        known_answer.check("cpu", torch.float32)


def fused(weights, direction, decay, rate):
    exactly = weights.double() * decay - direction.double() * rate
    weights.copy_(exactly.float())


def blind_to_the_sign_of_zero(weights, direction, decay, rate):
    step(weights, direction.abs() if rate == 0 else direction, decay, rate)


def one_tile_differs(counts, basis):
    q = inverse(counts, basis)
    if len(q) > 20:
        q[20] += 1
    return q


inverse, step = exact.inverse, exact.step_


@pytest.mark.parametrize(
    ("name", "broken", "cause"),
    [
        ("step_", fused, "another weight for 0x3b28d84f"),
        ("step_", blind_to_the_sign_of_zero, "another weight for 0x80000000 with d = -1,"),
        ("inverse", one_tile_differs, "other Q in tile 20"),
        ("integer_basis", lambda: np.zeros((64, 64), np.int16), "integer basis"),
    ],
)
def test_a_broken_kernel_is_found_out_and_named(monkeypatch, name, broken, cause):
    monkeypatch.setattr(known_answer, name, broken)
    with pytest.raises(KnownAnswerError, match=cause):
        known_answer.check("cpu")


def test_a_device_that_fuses_falls_back_and_says_why(monkeypatch):
    def only_in_fp64(counts, basis):
        q = inverse(counts, basis)
        return q + 1 if q.dtype == torch.float64 else q

    monkeypatch.setattr(known_answer, "inverse", only_in_fp64)
    path = known_answer.choose_path("cpu")
    assert path.dtype == torch.int64
    assert "SHA-256" in path.reason


FLUSHING = """
import torch
from troth_client.compression import known_answer
from troth_client.compression.errors import KnownAnswerError
if not torch.set_flush_denormal(True):
    raise SystemExit("cannot flush")
try:
    known_answer.choose_path("cpu")
except KnownAnswerError as error:
    print(error)
"""


@pytest.mark.long(reason="a process of its own imports torch")
def test_a_cpu_that_flushes_to_zero_is_refused_with_advice():
    """In a process of its own: the mode would outlive this test in the threads of torch."""
    run = subprocess.run(
        [sys.executable, "-c", FLUSHING], capture_output=True, text=True, check=False
    )
    if "cannot flush" in run.stderr:
        pytest.skip("this CPU cannot flush")
    assert "another weight for 0x00000001" in run.stdout, run.stderr
    assert "set_flush_denormal(False)" in run.stdout
