"""Ranks that the system cannot start: a member goes on without them, a newcomer is told."""

import errno
import signal
import subprocess
import tempfile
from types import SimpleNamespace

import pytest
from solders.keypair import Keypair
from support.run_requests import request

from troth_cli.slot_time import STATED
from troth_cli.view.output import Output
from troth_cli.workflows.take_part import team_of
from troth_client.train import team as protocol
from troth_client.train.errors import RanksError
from troth_client.train.place import Place
from troth_client.train.team import start_seconds

PLACE = Place(0, 3, 0)
REQUEST = request(Keypair(), Keypair().pubkey(), num_threads=1, place=PLACE)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def one_process(monkeypatch):
    """The processes that were started: the system has room for one."""
    started = []

    class Limited(subprocess.Popen):
        def __init__(self, *arguments, **options):
            if started:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Limited)
    return started


def looked(*, is_member):
    params = SimpleNamespace(commit_slots=100)
    return SimpleNamespace(
        is_member=is_member,
        tempo=SimpleNamespace(slot=STATED),
        view=SimpleNamespace(run=SimpleNamespace(params=params)),
    )


@pytest.mark.long(reason="it starts a process")
def test_a_member_without_room_for_its_ranks_has_a_team_that_does_not_meet(temporary, one_process):
    """The error ended its command, with verdicts to reveal."""
    with team_of(REQUEST, looked(is_member=True), Output()) as team:
        (first,) = one_process
        assert first.returncode == -signal.SIGKILL
        assert list(temporary.iterdir()) == []
        with pytest.raises(RanksError, match="Resource temporarily unavailable"):
            team.meet()


def test_a_newcomer_without_room_for_a_folder_is_told(temporary, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "absent"))
    with (
        pytest.raises(RanksError, match="2 ranks that start"),
        team_of(REQUEST, looked(is_member=False), Output()),
    ):
        pytest.fail("it has no team")


def test_a_member_waits_for_ranks_to_start_less_than_a_newcomer():
    assert start_seconds(is_member=True) == 60.0
    assert start_seconds(is_member=False) == 300.0


@pytest.mark.long(reason="it starts two processes")
def test_a_member_gives_up_ranks_that_have_not_arrived_in_its_time(temporary, monkeypatch):
    monkeypatch.setattr(protocol, "MEMBER_START_SECONDS", 0.0)
    with (
        team_of(REQUEST, looked(is_member=True), Output()) as team,
        pytest.raises(RanksError, match="no rank 1, no rank 2"),
    ):
        team.meet()
    assert list(temporary.iterdir()) == []
