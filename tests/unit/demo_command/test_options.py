"""Options that would make a demo wait for ever are refused before anything starts."""

import io

import pytest
from rich.console import Console
from solders.keypair import Keypair

from troth_cli.demo.errors import DemoOptionError, FolderUsedError
from troth_cli.demo.options import DemoOptions
from troth_cli.demo.runner import run_demo
from troth_cli.demo.setup import DemoParticipant, DemoRun, participant_processes
from troth_coordinator.rules.view import Role
from troth_simulation.cheats.catalogue import CHEATS, NOBODY


@pytest.mark.parametrize(
    "changes",
    [
        {"num_trainers": 1},
        {"num_rounds": 0},
        {"num_trainers": 2, "kill_round": 1},
        {"num_rounds": 8, "kill_round": 7},
        {"kill_round": -1},
        {"num_witnesses": -1},
        {"cheat": "no-such-cheat"},
    ],
)
def test_contradictions_are_refused(changes):
    with pytest.raises(DemoOptionError):
        DemoOptions(**changes)


def test_an_unknown_cheat_is_refused_with_the_list():
    with pytest.raises(DemoOptionError) as caught:
        DemoOptions(cheat="no-such-cheat")
    for name in (*CHEATS, NOBODY):
        assert name in caught.value.expected


def test_the_run_waits_for_everybody_honest():
    settings = DemoOptions(num_trainers=5, num_witnesses=2, num_rounds=20).settings()
    assert settings.chain.min_members == 7
    assert settings.config.schedule.rounds == settings.chain.max_rounds == 20
    assert settings.config.schedule.decay_from_round == 14


def test_nobody_waits_long_for_cases_that_nobody_opens_here():
    """At the end of a demo all stay for so long, with nothing to do."""
    options = DemoOptions()
    slots = options.settings().chain.case_slots
    assert slots * options.slot_milliseconds <= 1_000


def test_participants_of_a_demo_leave_flushing_to_the_system(tmp_path):
    options = DemoOptions(folder=tmp_path)
    keys = [Keypair() for _ in range(3)]
    one = DemoParticipant(options.plans[0], *keys[:2])
    config = options.settings().config
    addresses = keys[0].pubkey(), keys[1].pubkey()
    demo = DemoRun(*addresses, config, tmp_path, keys[2], (one,), 0)
    (process,) = participant_processes(options, demo, "http://127.0.0.1:1")
    assert not process.settings.is_durable


def test_the_run_goes_on_without_the_one_that_is_killed():
    assert DemoOptions(num_trainers=4, kill_round=3).settings().chain.min_members == 4


def test_one_of_them_trains_only_and_cheats():
    plans = {plan.name: plan for plan in DemoOptions().plans}
    assert list(plans) == [*(f"trainer-{i}" for i in range(4)), "witness-0", "free-rider"]
    roles = [player.role for player in plans.values()]
    assert roles == [Role.TRAINER | Role.WITNESS] * 4 + [Role.WITNESS, Role.TRAINER]
    assert [name for name, one in plans.items() if one.cheat] == ["free-rider"]
    assert not [one for one in DemoOptions(cheat=NOBODY).plans if one.cheat]
    juror = DemoOptions(cheat="mismatch-juror").plans[-1]
    assert juror.role == Role.TRAINER | Role.WITNESS


@pytest.mark.parametrize("num_rounds", range(1, 12))
def test_short_demos_have_a_schedule(num_rounds):
    schedule = DemoOptions(num_rounds=num_rounds).settings().config.schedule
    assert schedule.warmup_rounds <= schedule.decay_from_round <= schedule.rounds


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_folder_in_use_is_left_alone(tmp_path, kind):
    folder = tmp_path / "demo"
    if kind == "file":
        folder.write_text("mine")
    else:
        folder.mkdir()
        (folder / "mine").write_text("mine")
    with pytest.raises(FolderUsedError) as caught:
        run_demo(DemoOptions(folder=folder), Console(file=io.StringIO()))
    assert caught.value.subject == str(folder)
    left = folder if kind == "file" else folder / "mine"
    assert left.read_text() == "mine"
    assert len(list(tmp_path.rglob("*"))) == (1 if kind == "file" else 2)
