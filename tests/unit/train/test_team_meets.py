"""Ranks that meet and get ready: what fails there, and what is compiled before the first round."""

import contextlib
from functools import partial

import pytest
import torch
from support.ranks import Reports, place, team
from support.reader import free_port
from support.teams import assert_same, helping_thread, of
from support.trainers import CONFIG, weights

from troth_client.audit.recompute import num_threads
from troth_client.model.device import CPU
from troth_client.model.weights import build
from troth_client.train.compiled import CompiledPass
from troth_client.train.errors import RanksError
from troth_client.train.learner import DEFAULT, OneDevice
from troth_client.train.ranks import Ranks
from troth_client.train.team import START_SECONDS, Leader, Team, meet

SECONDS = 10.0
HUGE = CONFIG.model.model_copy(update={"vocab_size": 2**30, "hidden_size": 2**20})
NO_MEMORY = "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: not enough memory"


@pytest.fixture
def model():
    torch._dynamo.reset()  # of one function it compiles no more than eight variants
    with num_threads(1):
        yield build(CONFIG.model, weights())


@pytest.fixture
def port():
    return free_port(1)


def nobody_comes(port):
    return Team(2, partial(Ranks.connect, place(0, port), 0.5, 0.5))


def test_a_member_whose_ranks_do_not_meet_goes_on_alone(model, port):
    """It has a stake, and verdicts to reveal; a helper may lack a device, or hang."""
    lost = Reports()
    leader = Leader(DEFAULT, nobody_comes(port), lost, is_member=True)
    leader.prepare(model, CONFIG, CPU)
    assert_same(of(leader, model), of(DEFAULT, model))
    assert len(lost) == 1
    assert lost[0].startswith("ranks_lost: expected 2 ranks at 127")


def test_a_newcomer_whose_ranks_do_not_meet_is_told_before_it_deposits(model, port):
    lost = Reports()
    leader = Leader(DEFAULT, nobody_comes(port), lost, is_member=False)
    with pytest.raises(RanksError, match="2 ranks at 127"):
        leader.prepare(model, CONFIG, CPU)
    assert lost == []


def test_a_member_goes_on_alone_where_a_rank_has_no_memory_for_the_model(model, port):
    """The rank ends, and so does every other one: the block waits for it."""
    lost = Reports()
    with helping_thread(place(1, port)), contextlib.closing(meet(place(0, port))) as ranks:
        leader = Leader(DEFAULT, team(ranks), lost, is_member=True)
        leader.prepare(model, CONFIG.model_copy(update={"model": HUGE}), CPU)
        assert_same(of(leader, model), of(DEFAULT, model))
    assert len(lost) == 1
    assert "rank 1: memory does not suffice" in lost[0]


class Failing(Ranks):
    """Connections of which one kind of exchange fails once with an error of ours."""

    failing = ""
    reason = NO_MEMORY

    def share(self, tensor):
        self._fail("share", tensor)
        super().share(tensor)

    def add_up(self, tensor):
        self._fail("add_up", tensor)
        super().add_up(tensor)

    def _fail(self, exchange, tensor):
        if exchange == self.failing and tensor.is_floating_point():
            self.failing = ""
            raise RuntimeError(self.reason)


@contextlib.contextmanager
def failing_later(model, port):
    """A leader in step with another rank, and its connections; they stay open until that ends."""
    lost = Reports()
    with helping_thread(place(1, port)) as helper:
        ranks = Failing.connect(place(0, port), START_SECONDS, SECONDS)
        with contextlib.closing(ranks):
            leader = Leader(DEFAULT, team(ranks), lost, is_member=True)
            leader.prepare(model, CONFIG, CPU)
            yield leader, ranks, lost
            helper.join(SECONDS)
            assert not helper.is_alive()


@pytest.mark.parametrize("exchange", ["share", "add_up"])
def test_ranks_out_of_step_for_lack_of_memory_are_lost_and_no_gradient_is(model, port, exchange):
    """A helper in the middle of a protocol took the next order for weights, and gloo ended it."""
    with failing_later(model, port) as (leader, ranks, lost):
        ranks.failing = exchange
        for _ in range(2):
            assert_same(of(leader, model), of(DEFAULT, model))
    assert lost == [f"ranks_lost: {NO_MEMORY}"]


def test_an_error_of_the_device_is_raised_and_loses_the_ranks(model, port):
    with failing_later(model, port) as (leader, ranks, lost):
        ranks.failing, ranks.reason = "share", "CUDA error: device-side assert triggered"
        with pytest.raises(RuntimeError, match="device-side assert"):
            of(leader, model)
        assert_same(of(leader, model), of(DEFAULT, model))
    assert lost == ["ranks_lost: CUDA error: device-side assert triggered"]


def recording(rows):
    """A compiler that compiles nothing, and notes of how many sequences a graph is."""

    def backend(graph, inputs):
        tokens = next(one for one in inputs if one.dtype == torch.int64)
        rows.append(tokens.shape[0])
        return graph.forward

    return CompiledPass(pytest.fail, backend)


def test_shapes_of_all_shares_and_of_the_whole_batch_are_compiled_before_the_first_round(
    model, port
):
    """8 sequences on 3 ranks are 2, 3 and 3; rank 0 may go on alone, with microbatches of 4."""
    own, others, lost = [], [], Reports()
    alone = OneDevice(recording(own))
    with (
        helping_thread(place(1, port, 3), recording(others)),
        helping_thread(place(2, port, 3)),
        contextlib.closing(meet(place(0, port, 3))) as ranks,
    ):
        leader = Leader(alone, team(ranks), lost, is_member=False)
        leader.prepare(model, CONFIG, CPU)
        assert sorted(own) == [2, 4]
        assert others == [3]
        of(leader, model)
        of(alone, model)
    assert sorted(own) == [2, 4]
    assert others == [3]
    assert lost == []


def wrong(graph, inputs):
    return lambda *args: tuple(value * 2 for value in graph(*args))


def test_a_rank_that_helps_compares_its_compiled_pass_before_the_first_round(model, port):
    """Zeros show nothing, so it has the weights of rank 0 by then."""
    reasons = []
    compiled = CompiledPass(reasons.append, wrong)
    with (
        helping_thread(place(1, port), compiled),
        contextlib.closing(meet(place(0, port))) as ranks,
    ):
        Leader(DEFAULT, team(ranks), Reports(), is_member=False).prepare(model, CONFIG, CPU)
        assert len(reasons) == 1
        assert "away from the eager one" in reasons[0]
