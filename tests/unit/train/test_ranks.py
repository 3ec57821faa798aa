"""The folder in which ranks meet: whoever made it, nothing is left of it."""

import contextlib
import tempfile
from concurrent.futures import ThreadPoolExecutor

from support.ranks import place
from support.reader import free_port
from support.waiting import wait_for

from troth_client.train.place import Place
from troth_client.train.ranks import END
from troth_client.train.team import meet


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
