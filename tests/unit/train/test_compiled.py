"""--compile: the same gradient within the judge's tolerance, and training goes on without it."""

import os
import weakref

import numpy as np
import pytest
import torch
from support.trainers import BATCH, CONFIG, judged, weights

from troth_attestation.verdict import VerdictKind
from troth_client.model.device import CPU, choose_device
from troth_client.model.llama import Llama
from troth_client.model.weights import build, trainable_parameters
from troth_client.participant.learning import learner_of
from troth_client.participant.settings import ParticipantSettings
from troth_client.telemetry.events import EventList
from troth_client.train import compiled
from troth_client.train.compiled import CompiledPass
from troth_client.train.errors import NonFiniteGradientError
from troth_client.train.learner import DEFAULT, OneDevice, microbatches
from troth_client.train.passes import eager_pass
from troth_coordinator.rules.view import Role


@pytest.fixture
def model():
    torch._dynamo.reset()  # of one function it compiles no more than eight variants
    return build(CONFIG.model, weights())


def gradient(learner, model, device=CPU):
    learner.prepare(model, CONFIG, device)
    return learner.gradient(model, BATCH, CONFIG.train, device).tensors


def assert_equal(found, wanted):
    assert list(found) == list(wanted)
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize(
    "backend",
    [
        "aot_eager",
        pytest.param(
            "inductor", marks=pytest.mark.long(reason="a C++ compiler builds both passes")
        ),
    ],
)
def test_a_judge_in_eager_mode_calls_compiled_work_ok(model, backend):
    reasons = []
    one_pass = CompiledPass(reasons.append, backend)
    found = gradient(OneDevice(one_pass), model)
    assert one_pass.works, reasons
    assert reasons == []
    verdict = judged(found)
    assert verdict.kind == VerdictKind.OK, verdict.explain()


def broken(graph, inputs):
    raise ValueError("this compiler is broken\nin many lines")


def wrong(graph, inputs):
    return lambda *args: tuple(value * 2 for value in graph(*args))


def test_a_compiler_that_fails_is_reported_once_and_training_goes_on(model):
    reasons = []
    learner = OneDevice(CompiledPass(reasons.append, broken))
    found = [gradient(learner, model) for _ in range(2)]
    assert len(reasons) == 1
    assert "this compiler is broken" in reasons[0]
    assert "\n" not in reasons[0]
    for tensors in found:
        assert_equal(tensors, gradient(DEFAULT, model))


def test_a_compiler_that_computes_something_else_is_found_before_the_first_round(model):
    reasons = []
    learner = OneDevice(CompiledPass(reasons.append, wrong))
    assert_equal(gradient(learner, model), gradient(DEFAULT, model))
    assert len(reasons) == 1
    assert "away from the eager one" in reasons[0]


class OutOfResourcesError(Exception):
    """As Triton's own errors: no RuntimeError."""


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Triton Error [CUDA]: invalid device function"),
        OutOfResourcesError("out of resource: shared memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_kernels_that_fail_at_run_time_are_given_up_and_training_goes_on(model, error):
    def failing(graph, inputs):
        def run(*args):
            raise error

        return run

    reasons = []
    learner = OneDevice(CompiledPass(reasons.append, failing))
    assert_equal(gradient(learner, model), gradient(DEFAULT, model))
    assert reasons == [str(error)]


def test_a_broken_device_fails_in_the_eager_pass_as_well(model, monkeypatch):
    def broken_device(*about):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(compiled, "eager_pass", broken_device)
    reasons = []
    learner = OneDevice(CompiledPass(reasons.append, "aot_eager"))
    with pytest.raises(RuntimeError, match="illegal memory access"):
        learner.gradient(model, BATCH, CONFIG.train, CPU)
    assert len(reasons) == 1


def test_the_comparison_holds_no_third_gradient(model, monkeypatch):
    alive, counts, real = weakref.WeakSet(), [], torch.Tensor.__sub__

    def minus(one, other):
        found = real(one, other)
        alive.add(found)
        counts.append(len(alive))
        return found

    monkeypatch.setattr(torch.Tensor, "__sub__", minus)
    one_pass = CompiledPass(pytest.fail, "aot_eager")
    one_pass.prepare(model, torch.from_numpy(BATCH), CPU)
    assert one_pass.works
    assert len(counts) >= len(trainable_parameters(model))
    assert max(counts) < len(counts) // 2


def needy(graph, inputs):
    """Kernels that take more memory than the machine has."""

    def run(*args):
        torch.empty(1 << 46, dtype=torch.uint8)
        return graph(*args)

    return run


def test_kernels_that_need_too_much_memory_are_given_up_and_training_goes_on(model):
    reasons = []
    learner = OneDevice(CompiledPass(reasons.append, needy))
    assert_equal(gradient(learner, model), gradient(DEFAULT, model))
    assert len(reasons) == 1
    assert "it needs more memory than there is" in reasons[0]


def test_an_eager_pass_without_the_memory_beside_the_compiled_one_is_done_alone(model, monkeypatch):
    """The comparison holds two gradients; each alone fits."""
    reasons, failures = [], iter([torch.OutOfMemoryError("CUDA out of memory.")])

    def eager(*about):
        for failure in failures:
            raise failure
        return eager_pass(*about)

    monkeypatch.setattr(compiled, "eager_pass", eager)
    learner = OneDevice(CompiledPass(reasons.append, "aot_eager"))
    assert_equal(gradient(learner, model), gradient(DEFAULT, model))
    assert len(reasons) == 1


def test_memory_that_suffices_for_no_pass_is_left_to_the_round_that_needs_it(model, monkeypatch):
    def eager(*about):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(compiled, "eager_pass", eager)
    learner = OneDevice(CompiledPass(lambda reason: None, needy))
    learner.prepare(model, CONFIG, CPU)
    with pytest.raises(torch.OutOfMemoryError):
        learner.gradient(model, BATCH, CONFIG.train, CPU)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_end_a_round_and_not_the_compiled_pass(model, value):
    reasons = []
    one_pass = CompiledPass(reasons.append, "aot_eager")
    learner = OneDevice(one_pass)
    damaged = weights()
    next(iter(damaged.values())).flat[0] = value
    with pytest.raises(NonFiniteGradientError):
        learner.gradient(build(CONFIG.model, damaged), BATCH, CONFIG.train, CPU)
    assert one_pass.works
    gradient(learner, model)
    with pytest.raises(NonFiniteGradientError):
        learner.gradient(build(CONFIG.model, damaged), BATCH, CONFIG.train, CPU)
    assert one_pass.works
    assert reasons == []


def test_weights_that_come_later_are_waited_for_with_the_comparison(model):
    """A rank that helps, and a joiner that fetches the start, get ready with zeros."""
    reasons = []
    learner = OneDevice(CompiledPass(reasons.append, wrong))
    learner.prepare(Llama(CONFIG.model), CONFIG, CPU)
    assert reasons == []
    found = learner.gradient(model, BATCH, CONFIG.train, CPU).tensors
    assert_equal(found, gradient(DEFAULT, model))
    assert len(reasons) == 1


@pytest.mark.long(reason="starts the compiler")
def test_without_a_c_compiler_the_event_says_so(model, monkeypatch, tmp_path):
    monkeypatch.setattr(torch._inductor.config.cpp, "cxx", (None, os.fspath(tmp_path / "none")))
    # A graph that an earlier test compiled and cached would need no compiler.
    monkeypatch.setattr(torch._inductor.config, "force_disable_caches", True)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", os.fspath(tmp_path / "cache"))
    torch._dynamo.reset()
    events = EventList()
    settings = settings_of(tmp_path, compiles=True)
    assert_equal(gradient(learner_of(settings, events), model), gradient(DEFAULT, model))
    (failed,) = [event for event in events.events if event["event"] == "compile_failed"]
    assert "C++ compiler" in failed["reason"]
    assert failed["goes_on"] == "without --compile"


def test_one_that_only_judges_compiles_nothing(tmp_path):
    settings = settings_of(tmp_path, role=Role.WITNESS, compiles=True)
    assert learner_of(settings, EventList()) is DEFAULT


def test_a_smaller_microbatch_gives_the_gradient_that_a_judge_accepts(model):
    found = gradient(DEFAULT, model, choose_device("cpu", 1))
    wanted = gradient(DEFAULT, model)
    assert not all(torch.equal(found[name], wanted[name]) for name in wanted)
    verdict = judged(found)
    assert verdict.kind == VerdictKind.OK, verdict.explain()


@pytest.mark.parametrize(("rows", "size", "found"), [(8, 4, [4]), (7, 4, [4, 3]), (3, 8, [3])])
def test_every_number_of_rows_that_occurs_is_compiled_for(rows, size, found):
    assert list(microbatches(rows, size)) == found
    split = np.array_split(np.arange(rows), range(size, rows, size))
    assert {len(part) for part in split} == set(found)


def settings_of(folder, **changes):
    values = {"rpc_urls": (), "run": "", "config": CONFIG, "data": folder, "state": folder}
    values |= {"owner": bytes(64), "session": bytes(64)}
    return ParticipantSettings(**values | changes)
