"""Ranks that meet and leave no folder behind, and exchanges that fail: always as a lost rank."""

import contextlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
from support.ranks import Reports, place, team
from support.reader import free_port
from support.teams import assert_same, helping_thread, of
from support.trainers import CONFIG, weights
from support.waiting import wait_for

from troth_client.audit.recompute import num_threads
from troth_client.model.device import CPU
from troth_client.model.weights import build
from troth_client.train.errors import RanksLostError
from troth_client.train.learner import DEFAULT
from troth_client.train.place import Place
from troth_client.train.ranks import END, Ranks
from troth_client.train.team import Leader, meet

EXCHANGES = {
    "order": lambda ranks: ranks.order(),
    "share": lambda ranks: ranks.share(torch.zeros(2)),
    "add_up": lambda ranks: ranks.add_up(torch.zeros(2)),
    "told": lambda ranks: ranks.told(0),
}


class Silent:
    """Connections that break without a word of why."""

    def broadcast(self, *_arguments):
        raise RuntimeError

    reduce = allreduce = broadcast

    def abort(self):
        pass


def silent_ranks():
    return Ranks(Silent(), place(0, 0), timedelta(seconds=1))


@pytest.fixture
def model():
    with num_threads(1):
        yield build(CONFIG.model, weights())


def test_nothing_is_left_of_the_place_where_ranks_met(tmp_path, monkeypatch):
    port = free_port(1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ThreadPoolExecutor(1) as others:
        waiting = others.submit(meet, place(0, port))
        wait_for(lambda: list(tmp_path.iterdir()))
        assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o700]
        with contextlib.closing(meet(place(1, port))) as other:
            with contextlib.closing(waiting.result(30)):
                assert not list(tmp_path.iterdir())
                ordered = others.submit(other.order)
            order, *numbers = ordered.result(30)
            assert order == END
            assert numbers == [0, 0]


def test_nothing_is_left_of_a_folder_that_rank_zero_told_the_others(tmp_path):
    """It may be killed at any moment afterwards."""
    folder = tmp_path / "meeting"
    folder.mkdir(mode=0o700)
    with ThreadPoolExecutor(1) as others:
        waiting = others.submit(meet, Place(0, 2, 0, folder=folder))
        with contextlib.closing(meet(Place(1, 2, 1, folder=folder))) as other:
            with contextlib.closing(waiting.result(30)):
                assert not folder.exists()
                ordered = others.submit(other.order)
            order, *_ = ordered.result(30)
            assert order == END


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_what_breaks_without_a_word_is_a_lost_rank(exchange):
    with pytest.raises(RanksLostError) as caught:
        EXCHANGES[exchange](silent_ranks())
    assert caught.value.found == "RuntimeError"
    assert "look at the output of the others" in caught.value.next_step


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_an_exchange_over_connections_that_were_cut_is_a_lost_rank(exchange):
    ranks = meet(place(0, free_port(1), 1))
    ranks.cut()
    with pytest.raises(RanksLostError) as caught:
        EXCHANGES[exchange](ranks)
    assert caught.value.found == "connections that were cut before"
    ranks.close()


def test_a_member_goes_on_alone_where_its_connections_break_without_a_word(model):
    told = Reports()
    leader = Leader(DEFAULT, team(silent_ranks()), told, is_member=True)
    leader.prepare(model, CONFIG, CPU)
    assert_same(of(leader, model), of(DEFAULT, model))
    (one,) = told
    assert one.startswith("ranks_lost: ")
    assert "RuntimeError" in one


def test_rank_zero_computes_alone_over_connections_that_were_cut(model):
    port, told = free_port(1), Reports()
    with helping_thread(place(1, port)), contextlib.closing(meet(place(0, port))) as ranks:
        leader = Leader(DEFAULT, team(ranks), told, is_member=False)
        leader.prepare(model, CONFIG, CPU)
        ranks.cut()
        for _ in range(2):
            assert_same(of(leader, model), of(DEFAULT, model))
    (one,) = told
    assert "connections that were cut before" in one
