"""Five people and three guides, typed to the letter: one launches a run, others join or witness.

Each works in a folder of its own, with only the wheel installed. The fourth guide, look-up.md, is
typed after a conviction: test_demo_trial.py. README's section "By hand" is in test_readme_run.py.
"""

import json
import shutil

import pytest
from support.installed import ROOT, build_wheel, environment, install
from support.pages import all_commands, commands_of
from support.reader import Reader, free_port
from support.waiting import wait_for

from troth_coordinator.chain.codec import program_codec

RUN, JOIN, WITNESS = (
    (ROOT / f"docs/guide/{name}.md").read_text() for name in ("run", "join", "witness")
)
SLOT = 100
SECONDS = 240
LONGER = "--set schedule.rounds=400 --set chain.case_slots=2000 --set chain.commit_slots=190"
"""Slots are short here. The run lasts until all is typed. A case about a round may be opened for
200 s, because the commands before it take long on a busy machine. A newcomer needs a payload in
19 s, where such a machine took 13 s. The guide raises the window to 200 slots."""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.timeout(900),
    pytest.mark.long(reason="five people in a run of forty rounds"),
]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Readers by name, who share a machine and know the same chain."""
    folder = tmp_path_factory.mktemp("people")
    commands = install(build_wheel(folder), folder / "env")
    port = free_port()
    found = {}
    try:
        for name in ("launcher", "contributor", "stranger", "witness", "neighbour"):
            one = Reader(folder / name, environment(commands, folder / f"home-{name}"))
            one.words = {
                "localnet up": f"localnet up --port {port} --slot-ms {SLOT}",
                "TROTH_RPC=localhost": f"TROTH_RPC=http://127.0.0.1:{port}",
                "--rpc devnet": f"--rpc http://127.0.0.1:{port}",
                "--program-id PROGRAM": f"--program-id {program_codec().program_id}",
                "run create --config": f"run create {LONGER} --config",
                "0.0.0.0:7000": f"127.0.0.1:{free_port(1)}",
                "--endpoint http://HOST:7000": "",
            }
            one.variables["TROTH_RPC"] = f"http://127.0.0.1:{port}"
            found[name] = one
        yield found
    finally:
        for one in reversed(found.values()):
            one.stop()


def line_of(page, start):
    """The first line of a page that begins so."""
    return next(line for line in all_commands(page) if line.startswith(f"troth {start}"))


def test_a_run_is_launched_joined_witnessed_looked_after_and_left(people):
    launches(people["launcher"])
    run = json.loads(people["launcher"].types("troth run show run.toml --json"))["run"]
    for name in ("contributor", "stranger", "witness", "neighbour"):
        people[name].words["RUN"] = run
        is_given_sol(people, name)
    contributes(people["contributor"], people["launcher"])
    joins_with_the_address(people["stranger"], people["launcher"])
    for name in ("witness", "neighbour"):
        witnesses(people[name], people["launcher"])
    round_, target = accuses(people["witness"])
    for one in people.values():
        one.words["--round 12 --target 3"] = f"--round {round_} --target {target}"
    looks_after_it(people["launcher"])
    leaves(people["contributor"])
    ends(people["launcher"])


def launches(launcher):
    """Guide run.md, section "On this machine"."""
    for line in commands_of(RUN, "On this machine"):
        if line.startswith("troth data serve"):
            continue  # members serve as well
        launcher.types(line)
        if "localnet up" in line:
            wait_for(lambda: "127.0.0.1" in launcher.shells[0].text, 60, launcher.story)
        if "troth join" in line:  # the next ones fetch their files from this member
            wait_for(lambda: "joined" in launcher.shells[-1].text, SECONDS, launcher.story)


def is_given_sol(people, name):
    """Makes a key as the guide of a contributor says; the launcher sends SOL to its address."""
    one = people[name]
    address = json.loads(one.types(f"{line_of(JOIN, 'keys new')} --json"))["address"]
    people["launcher"].types(f"troth localnet airdrop {address} 10")


def contributes(one, launcher):
    """Guide join.md: with the run's file, which somebody handed over."""
    shutil.copy(launcher.folder / "run.toml", one.folder)
    one.types(line_of(JOIN, "join run.toml"))
    wait_for(lambda: "joined" in one.shells[0].text, SECONDS, one.story)


def joins_with_the_address(one, launcher):
    """Guide join.md: config and data come from members."""
    one.types(line_of(JOIN, "join RUN"))
    wait_for(
        lambda: "joined" in one.shells[0].text, SECONDS, lambda: one.story() + launcher.story()
    )
    assert not (one.folder / "run.toml").exists()


def witnesses(one, launcher):
    """Guide witness.md, with the key that it names."""
    shutil.copy(launcher.folder / "run.toml", one.folder)
    shutil.copy(one.folder / "owner.json", one.folder / "witness.json")
    one.types(line_of(WITNESS, "witness"))
    wait_for(lambda: "joined" in one.shells[0].text, SECONDS, one.story)


def looks_after_it(launcher):
    """Guide run.md, section "While it runs"."""
    for line in commands_of(RUN, "While it runs"):
        if "--watch" in line:
            shown = launcher.types(f"timeout --signal=INT 20 {line} || true")
            assert "round" in shown
        elif "case reverse" in line:
            assert "council.json" in launcher.is_refused(line)
        else:
            launcher.types(line)


def accuses(one):
    """Guide witness.md, its last section: the price, and then a case about the newest audit.

    Returns its round and target. The work was honest, so the bond is lost later.
    """
    look, show, price, case = commands_of(WITNESS, "If you see a fault")

    def judged():
        found = json.loads(one.types(f"{look} --json"))["openable"]
        work = [(each["round"], each["target"]) for each in found if each["kind"] == "work"]
        return max(work, default=None)

    audit = wait_for(judged, SECONDS, one.story)
    one.words["--round 12 --target 3"] = "--round {} --target {}".format(*audit)
    assert "cleared" in one.types(show)
    assert "bond" in one.types(price)
    assert "signature" in one.types(case)
    return audit


def leaves(one):
    """Guide join.md, section "Leave"; nothing has vested yet, and each answer says when.

    A target that was acquitted has a part of the bond, which may be claimed at once.
    """
    assert "error" in one.is_refused(line_of(JOIN, "case appeal"))
    leave, claim, withdraw = commands_of(JOIN, "Leave")
    one.types(leave)
    assert "slot" in one.is_refused(withdraw)
    assert "vest at slot" in one.answer(claim)


def ends(launcher):
    """Guide run.md, section "At its end", which this run has not reached: the refusals say so."""
    close, cancel = commands_of(RUN, "At its end")
    assert "waits for members" in launcher.is_refused(cancel)
    assert "has finished" in launcher.is_refused(close)
