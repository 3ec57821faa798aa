"""Several ranks of one participant: real processes over gloo, one gradient, and none that hangs."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from support.ranks import Reports, helping, notes_of, place, team
from support.reader import free_port
from support.teams import assert_same, helping_thread, of
from support.trainers import BATCH, CONFIG, judged, weights
from torch import distributed

from troth_attestation.verdict import VerdictKind
from troth_client.audit.recompute import num_threads
from troth_client.model.device import CPU
from troth_client.model.weights import build, weight_views
from troth_client.train.errors import NonFiniteGradientError, RanksError
from troth_client.train.learner import DEFAULT, OneDevice
from troth_client.train.passes import eager_pass
from troth_client.train.ranks import Ranks
from troth_client.train.step import as_tokens, clipped, summed
from troth_client.train.team import GRADIENT, Leader, help_leader, meet, patience_of

PROCESSES = "each process imports torch"


@pytest.fixture
def model():
    with num_threads(1):
        yield build(CONFIG.model, weights())


@pytest.fixture
def port():
    return free_port(1)


@contextlib.contextmanager
def leading(model, ranks):
    with contextlib.closing(ranks):
        lost = Reports()
        leader = Leader(DEFAULT, team(ranks), lost, is_member=False)
        leader.prepare(model, CONFIG, CPU)
        yield leader, lost


def by_shares(model, bounds, single=()):
    """The gradient as ranks sum it, computed in one process; some take `single` sequences."""
    tokens = as_tokens(model, BATCH, CPU)
    total = None
    for rank, (first, last) in enumerate(itertools.pairwise(bounds)):
        size = 1 if rank in single else CONFIG.train.microbatch_sequences
        parts = torch.split(tokens[first:last], size)
        found = summed(model, parts, tokens[:, 1:].numel(), CPU, eager_pass)
        if total is None:
            total = found
        else:
            torch._foreach_add_(list(total.gradients), list(found.gradients))
            total.loss.add_(found.loss)
    return clipped(model, total, CONFIG.train.clip_micro)


def test_two_ranks_make_the_payload_of_one_and_have_its_weights_to_the_bit(model, port, tmp_path):
    """Equal bits of the sum after each change of the weights show that both have the same."""
    with helping(tmp_path, place(1, port)) as helper:
        with leading(model, meet(place(0, port))) as (leader, lost):
            first = of(leader, model)
            assert_same(first, by_shares(model, (0, 4, 8)))
            verdict = judged(first.tensors)
            assert verdict.kind == VerdictKind.OK, verdict.explain()
            for name, weight in weight_views(model).items():
                weight.sub_(0.01 * first.tensors[name].sign())
            second = of(leader, model)
            assert_same(second, by_shares(model, (0, 4, 8)))
            assert second.mean_loss_micro != first.mean_loss_micro
            assert lost == []
        assert helper.wait(30) == 0, notes_of(tmp_path, 1)
        printed, _ = helper.communicate()
    assert printed == ""
    assert "rank 1 of 2 computes for rank 0 on cpu" in notes_of(tmp_path, 1)


@pytest.mark.long(reason=PROCESSES)
def test_each_rank_takes_the_microbatch_of_its_own_command(model, port, tmp_path):
    with (
        helping(tmp_path, place(1, port), "--micro-batch", "1"),
        leading(model, meet(place(0, port))) as (leader, lost),
    ):
        found = of(leader, model)
        assert_same(found, by_shares(model, (0, 4, 8), single=[1]))
        assert lost == []
    alike = by_shares(model, (0, 4, 8)).tensors
    assert not all(torch.equal(found.tensors[name], alike[name]) for name in alike)


@pytest.mark.long(reason=PROCESSES)
def test_a_rank_may_have_no_sequence(model, port, tmp_path):
    with (
        helping(tmp_path, place(1, port, 3)),
        helping(tmp_path, place(2, port, 3)),
        leading(model, meet(place(0, port, 3))) as (leader, lost),
    ):
        found = of(leader, model, BATCH[:1])
        assert_same(found, of(DEFAULT, model, BATCH[:1]))
        assert lost == []


@pytest.mark.long(reason=PROCESSES)
def test_after_a_killed_rank_the_round_is_finished_alone(model, port, tmp_path):
    with (
        helping(tmp_path, place(1, port)) as helper,
        leading(model, meet(place(0, port))) as (leader, lost),
    ):
        of(leader, model)
        helper.kill()
        helper.wait(30)
        for _ in range(2):
            assert_same(of(leader, model), of(DEFAULT, model))
        assert len(lost) == 1
        assert "A rank was ended" in lost[0]


@pytest.mark.long(reason=PROCESSES)
def test_a_rank_that_stands_still_is_left_behind(model, port, tmp_path):
    with (
        helping(tmp_path, place(1, port)) as helper,
        leading(model, meet(place(0, port), 1.0)) as (leader, lost),
    ):
        helper.send_signal(signal.SIGSTOP)
        assert_same(of(leader, model), of(DEFAULT, model))
        assert len(lost) == 1
        helper.send_signal(signal.SIGCONT)
        assert helper.wait(30) == 1
    assert "ranks that answer" in notes_of(tmp_path, 1)


@pytest.mark.long(reason=PROCESSES)
def test_once_one_is_lost_the_other_helpers_end(model, port, tmp_path):
    with (
        helping(tmp_path, place(1, port, 3)) as first,
        helping(tmp_path, place(2, port, 3)) as second,
        leading(model, meet(place(0, port, 3))) as (leader, lost),
    ):
        first.kill()
        assert_same(of(leader, model), of(DEFAULT, model))
        assert len(lost) == 1
        assert second.wait(30) == 1
    assert "look at the output of the others" in notes_of(tmp_path, 2)


LEADER = """
import os, sys
from support.ranks import place, team
from support.trainers import CONFIG, weights
from troth_client.model.device import CPU
from troth_client.model.weights import build
from troth_client.train.learner import DEFAULT
from troth_client.train.team import Leader, meet

ranks = meet(place(0, int(sys.argv[1])))
leader = Leader(DEFAULT, team(ranks), print, is_member=False)
leader.prepare(build(CONFIG.model, weights()), CONFIG, CPU)
os.kill(os.getpid(), 9)
"""


@pytest.mark.long(reason=PROCESSES)
def test_when_rank_zero_is_killed_the_others_end(port, tmp_path):
    with helping(tmp_path, place(1, port)) as helper:
        tests = os.fspath(Path(__file__).parents[2])
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *filter(None, sys.path)])}
        command = [sys.executable, "-c", LEADER, str(port)]
        ended = subprocess.run(command, env=variables, timeout=60, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert helper.wait(30) == 1
    assert "look at the output of the others" in notes_of(tmp_path, 1)


@pytest.mark.long(reason=PROCESSES)
@pytest.mark.parametrize("stops", [signal.SIGINT, signal.SIGTERM])
def test_what_stops_all_processes_does_not_end_a_helper_before_its_rank_zero(
    model, port, tmp_path, stops
):
    with helping(tmp_path, place(1, port)) as helper:
        with leading(model, meet(place(0, port))) as (leader, lost):
            helper.send_signal(stops)
            assert_same(of(leader, model), by_shares(model, (0, 4, 8)))
            assert lost == []
        assert helper.wait(30) == 0, notes_of(tmp_path, 1)


@pytest.mark.long(reason=PROCESSES)
def test_a_helper_without_memory_for_the_model_is_told_before_the_first_round(
    model, port, tmp_path
):
    """Nothing is deposited yet; later a rank that ends would end torchrun's other ranks as well."""
    huge = CONFIG.model.model_copy(update={"vocab_size": 2**30, "hidden_size": 2**20})
    config = CONFIG.model_copy(update={"model": huge})
    with helping(tmp_path, place(1, port)) as helper:
        with contextlib.closing(meet(place(0, port))) as ranks:
            leader = Leader(DEFAULT, team(ranks), Reports(), is_member=False)
            with pytest.raises(RanksError, match="rank 1: memory does not suffice"):
                leader.prepare(model, config, CPU)
        assert helper.wait(30) == 1
    notes = notes_of(tmp_path, 1)
    assert "memory for the model on every rank" in notes
    assert "--micro-batch" in notes


def test_a_lack_of_memory_while_a_helper_receives_ends_it_with_advice(model, port):
    def helps():
        with contextlib.closing(meet(place(1, port))) as ranks:
            help_leader(ranks, OneDevice(), CPU)

    with ThreadPoolExecutor(1) as others:
        helped = others.submit(helps)
        with contextlib.closing(meet(place(0, port))) as ranks:
            leader = Leader(DEFAULT, team(ranks), Reports(), is_member=False)
            leader.prepare(model, CONFIG, CPU)
            ranks.order((GRADIENT, 1 << 40, 1 << 10))
            with pytest.raises(RanksError, match="memory for the model on every rank"):
                helped.result(30)


@contextlib.contextmanager
def helped_by_a_thread(model, port, passes=(eager_pass, eager_pass)):
    """A leader whose other rank runs in a thread, so that a pass of either can be made to fail."""

    told = Reports()
    helper = helping_thread(place(1, port), passes[1])
    with helper, contextlib.closing(meet(place(0, port))) as ranks:
        leader = Leader(OneDevice(passes[0]), team(ranks), told, is_member=False)
        leader.prepare(model, CONFIG, CPU)
        yield leader, told


def greedy(*arguments):
    torch.empty(1 << 46)
    return eager_pass(*arguments)


def broken(*arguments):
    found = eager_pass(*arguments)
    found.gradients[0].fill_(float("nan"))
    return found


def at_first(one_pass):
    """A pass that fails once, as `one_pass` does."""
    passes = itertools.chain([one_pass], itertools.repeat(eager_pass))

    def in_turn(*arguments):
        return next(passes)(*arguments)

    return in_turn


@pytest.mark.parametrize(
    ("one_pass", "reason"),
    [(greedy, "memory does not suffice"), (broken, "its sums are not finite")],
)
def test_what_fails_on_another_rank_costs_no_gradient(model, port, one_pass, reason):
    passes = (eager_pass, at_first(one_pass))
    with helped_by_a_thread(model, port, passes) as (leader, told):
        assert_same(of(leader, model), of(DEFAULT, model))
        assert told == [f"rank_failed: rank 1: {reason}"]
        assert_same(of(leader, model), by_shares(model, (0, 4, 8)))
        assert len(told) == 1


def test_rank_zero_without_memory_costs_this_gradient_only(model, port):
    with helped_by_a_thread(model, port, (at_first(greedy), eager_pass)) as (leader, told):
        with pytest.raises(MemoryError):
            of(leader, model)
        assert_same(of(leader, model), by_shares(model, (0, 4, 8)))
    assert told == []


def test_sums_of_rank_zero_that_are_not_finite_are_computed_again(model, port):
    with helped_by_a_thread(model, port, (at_first(broken), eager_pass)) as (leader, told):
        assert_same(of(leader, model), of(DEFAULT, model))
    assert told == ["rank_failed: rank 0: its sums are not finite"]


def test_a_gradient_that_is_not_finite_costs_no_rank(model, port):
    with helped_by_a_thread(model, port) as (leader, told):
        norm = weight_views(model)["model.norm.weight"]
        good = norm.clone()
        for value in (float("nan"), 1e30):
            norm.fill_(value)
            with pytest.raises(NonFiniteGradientError):
                of(leader, model)
        norm.copy_(good)
        told.clear()
        assert_same(of(leader, model), by_shares(model, (0, 4, 8)))
    assert told == []


@pytest.mark.parametrize(("commit_seconds", "patience"), [(60.0, 15.0), (2.4, 1.0)])
def test_rank_zero_waits_for_a_quarter_of_the_commit_phase(commit_seconds, patience):
    """Its own share and the whole batch have room beside it: a half and a half of that."""
    assert patience_of(commit_seconds) == patience


def test_a_rank_that_never_comes_is_said_within_the_bound(port):
    with pytest.raises(RanksError, match="2 ranks at 127"):
        Ranks.connect(place(0, port), 0.5, 0.5)


def gloo(store, seconds):
    """A stranger that reaches the store says that it is rank 1."""
    options = distributed.ProcessGroupGloo._Options()
    options._devices = [distributed.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
    options._timeout = timedelta(seconds=seconds)
    named = distributed.PrefixStore("troth-0", store)
    return distributed.ProcessGroupGloo(named, 1, 2, options)


@pytest.fixture
def store(port):
    """The store of a launcher: torchrun's listens on every interface, and anybody may write."""
    return distributed.TCPStore("127.0.0.1", port, 2, True, wait_for_workers=False)


def test_a_stranger_in_the_launchers_store_is_no_rank(store, port):
    """Its sums would be in our payload, and a jury would take our stake."""

    def intrude():
        with contextlib.suppress(RuntimeError):
            gloo(store, 2)

    stranger = threading.Thread(target=intrude)
    stranger.start()
    hosted = replace(place(0, port), launcher_hosts=True)
    with pytest.raises(RanksError, match="2 ranks at 127"):
        Ranks.connect(hosted, 2, 2)
    stranger.join(30)


@pytest.mark.parametrize("name", ["", "..", "/tmp", "troth-ranks-absent00", "troth-ranks-open0000"])
def test_a_rank_meets_nobody_in_a_folder_that_others_can_open(
    store, port, name, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "troth-ranks-open0000").mkdir(mode=0o755)
    distributed.PrefixStore("troth-0", store).set("folder", name)
    with pytest.raises(RanksError, match="a folder that only this user can open"):
        Ranks.connect(place(1, port), 2, 2)
    assert not list(tmp_path.glob("*/*"))
