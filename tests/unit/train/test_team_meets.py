"""Ranks that meet and get ready: what fails there, and what is compiled before the first round."""

import contextlib
import threading
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
from troth_client.train import ranks as connections
from troth_client.train import team as protocol
from troth_client.train.compiled import CompiledPass
from troth_client.train.errors import RanksError, RanksLostError
from troth_client.train.learner import DEFAULT, OneDevice
from troth_client.train.passes import eager_pass
from troth_client.train.place import Place
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


class Prepares(CompiledPass):
    """A pass that does something else before the first round."""

    def __init__(self, instead):
        super().__init__(pytest.fail)
        self._instead = instead

    def prepare(self, *_):
        self._instead()


def test_a_member_waits_for_a_rank_that_hangs_while_it_gets_ready_as_in_an_exchange(model, port):
    """It waited for half an hour, and missed its openings."""
    lost, released = Reports(), threading.Event()
    with helping_thread(place(1, port), Prepares(partial(released.wait, SECONDS))):
        with contextlib.closing(meet(place(0, port), 1.0)) as ranks:
            Leader(DEFAULT, team(ranks), lost, is_member=True).prepare(model, CONFIG, CPU)
        released.set()
    (reason,) = lost
    assert "waiting 1000ms" in reason


class Noting(Ranks):
    """Connections that note how long each word of the others may take."""

    waits = ()

    def told(self, word, seconds=None):
        self.waits = (*self.waits, seconds)
        return super().told(word, seconds)


@pytest.mark.parametrize(
    ("compiles", "is_member", "waits"),
    [
        (False, True, (60.0, None)),
        (False, False, (300.0, None)),
        (True, True, (60.0, 300.0)),
        (True, False, (300.0, 1800.0)),
    ],
)
def test_a_member_waits_less_for_others_that_get_ready_than_a_newcomer(
    model, port, compiles, is_member, waits
):
    alone = OneDevice(recording([])) if compiles else DEFAULT
    with helping_thread(place(1, port)):
        ranks = Noting.connect(place(0, port), START_SECONDS, SECONDS)
        with contextlib.closing(ranks):
            leader = Leader(alone, team(ranks), Reports(), is_member=is_member)
            leader.prepare(model, CONFIG, CPU)
    assert ranks.waits == waits


def test_ranks_that_have_arrived_meet_within_a_bound_of_their_own(monkeypatch, tmp_path):
    """One died between its arrival and the meeting, and Ctrl-C waited for 300 seconds."""
    monkeypatch.setattr(protocol, "MEET_SECONDS", 1.0)
    monkeypatch.setattr(protocol, "START_SECONDS", 3.0)
    with pytest.raises(RanksError, match="within 1 s") as told:
        meet(Place(0, 2, 0, folder=tmp_path))
    assert "torchrun" not in str(told.value), "nobody has used it"


@contextlib.contextmanager
def ended_by_us(port, prepares):
    """A member whose team ends while the other rank gets ready, or computes; and its passes."""
    passes, lost = [], Reports()

    def ends(*_):
        ours.end()
        raise RanksError("a rank that lives", "its end", "")

    def counted(*arguments):
        passes.append(arguments)
        return eager_pass(*arguments)

    with (
        helping_thread(place(1, port), Prepares(ends) if prepares else ends),
        contextlib.closing(meet(place(0, port))) as ranks,
    ):
        ours = team(ranks)
        yield Leader(OneDevice(counted), ours, lost, is_member=True), passes
    assert lost == []


def test_once_we_have_ended_the_team_no_gradient_is_computed_alone(model, port):
    """The second Ctrl-C ends the ranks first: their loss was reported, and the batch computed."""
    with ended_by_us(port, prepares=False) as (leader, passes):
        leader.prepare(model, CONFIG, CPU)
        with pytest.raises(RanksLostError):
            of(leader, model)
        assert len(passes) == 1  # of its own share


def test_once_we_have_ended_the_team_nobody_gets_ready_alone(model, port):
    with ended_by_us(port, prepares=True) as (leader, passes):
        with pytest.raises(RanksLostError):
            leader.prepare(model, CONFIG, CPU)
        assert passes == []


def test_an_interface_that_gloo_cannot_use_is_an_error_of_the_ranks(port, monkeypatch):
    monkeypatch.setattr(connections, "LOOPBACK", "no interface")
    with pytest.raises(RanksError, match="2 ranks at 127"):
        meet(place(0, port))


def test_no_room_for_the_folder_is_an_error_of_the_ranks(port, monkeypatch, tmp_path):
    monkeypatch.setattr(connections.tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(RanksError, match="No such file"):
        meet(place(0, port))
