"""`troth withdraw` brings the SOL of a session key back to its owner, to the lamport."""

import json
from pathlib import Path

import pytest
from solders.pubkey import Pubkey
from support.network import SOL

from troth_cli.connection import connect, run_async
from troth_cli.keyfiles import write_key
from troth_client.runtime.files import FolderLock

pytestmark = pytest.mark.processes
FEE = 5_000
HELD = SOL // 10


class Member:
    """A participant without a client at work, and the folder that would be that client's."""

    def __init__(self, bench, name="a"):
        self.bench, self.name = bench, name
        self.run = bench.create()
        bench.take_a_seat(self.run, name)
        self.folder = bench.folder / f"state-{name}"
        self.session = bench.session(name).pubkey()

    def keep_key(self):
        write_key(self.folder / "session.json", self.bench.session(self.name))

    def identify(self, **changes):
        owner = bytes(self.bench.address(self.name)).hex()
        found = {"run": bytes(Pubkey.from_string(self.run)).hex(), "owner": owner, **changes}
        (self.folder / "identity.json").write_text(json.dumps(found))

    def words(self, *more):
        return (*self.bench.of_run("withdraw", run=self.run, key=self.name), *more)

    def withdraw(self, *more):
        return self.bench.cli.json(*self.words(*more))

    def leave(self):
        self.bench.cli.json(*self.bench.of_run("leave", run=self.run, key=self.name))
        self.bench.launcher.advance(20_000)

    def held(self):
        async def work():
            async with connect(self.bench.rpc, None) as client:
                return await client.balance(self.session)

        return run_async(work())


@pytest.fixture
def member(bench):
    return Member(bench)


def test_the_last_withdrawal_empties_the_session_key(bench, member):
    member.keep_key()
    member.identify()
    member.leave()
    before = bench.balance("a")
    done = member.withdraw("--state", member.folder)
    assert done["status"] == "closed"
    assert done["session"] == str(member.session)
    assert done["session_lamports"] == HELD - FEE
    assert member.held() == 0
    paid = done["received_lamports"] - done["fee_lamports"]
    assert bench.balance("a") - before == paid + HELD - FEE


def test_a_key_that_may_still_be_needed_keeps_its_money(bench, member):
    member.keep_key()
    bench.cli.json(*bench.of_run("leave", run=member.run, key="a"))
    bench.launcher.advance(1)
    error = bench.cli.refused(*member.words("--state", member.folder))
    assert error["kind"] == "NotDueError"
    assert member.held() == HELD


def test_a_part_of_the_stake_leaves_the_session_key_alone(bench, member):
    member.keep_key()
    bench.cli.json(*bench.of_run("stake", "top-up", run=member.run, key="a"), "0.2")
    assert member.withdraw("--state", member.folder, "--unbond", "0.1")["session_lamports"] == 0
    assert member.held() == HELD


def test_without_the_folder_it_says_where_the_money_is_and_a_repetition_takes_it(bench, member):
    """Also when the run is closed meanwhile."""
    member.leave()
    shown = bench.cli.ok(*member.words()).out
    assert f"0.1 SOL stay with the session key {member.session}" in " ".join(shown.split())
    assert "--state DIR" in shown
    assert member.held() == HELD
    again = bench.cli(*member.words())
    assert again.code == 1
    assert str(member.session) in again.err, "the account is closed, the money is not forgotten"
    bench.cli.json(*bench.of_run("run", "cancel", run=member.run, key="authority"))
    bench.launcher.advance(20_000)
    closed = bench.cli.json(*bench.of_run("run", "close", run=member.run, key="authority"))
    assert closed["is_closed"]
    member.keep_key()
    before = bench.balance("a")
    done = member.withdraw("--state", member.folder)
    assert done["session_lamports"] == HELD - FEE
    assert bench.balance("a") == before + HELD - FEE
    assert member.held() == 0
    error = bench.cli.refused(*member.words("--state", member.folder))
    assert error["kind"] == "AccountMissingError"


def test_the_usual_folder_needs_no_name(bench, member, monkeypatch):
    monkeypatch.chdir(bench.folder)
    usual = Path("troth-state") / f"{member.run[:8]}-{str(bench.address('a'))[:8]}"
    write_key(usual / "session.json", bench.session("a"))
    member.leave()
    assert member.withdraw()["session_lamports"] == HELD - FEE
    assert member.held() == 0


def test_a_participant_at_work_keeps_its_session_key(bench, member):
    member.keep_key()
    member.leave()
    lock = FolderLock(member.folder)
    done = bench.cli.ok(*member.words("--state", member.folder))
    assert "troth join works in" in done.out
    assert member.held() == HELD
    lock.close()
    assert member.withdraw("--state", member.folder)["session_lamports"] == HELD - FEE


@pytest.mark.parametrize("wrong", ["no key", "another run", "another owner"])
def test_a_folder_of_somebody_else_is_refused_before_anything_is_sent(bench, member, wrong):
    member.leave()
    if wrong == "no key":
        member.folder.mkdir()
    else:
        member.keep_key()
        member.identify(**{wrong.removeprefix("another "): "00" * 32})
    before = bench.balance("a")
    error = bench.cli.refused(*member.words("--state", member.folder))
    assert error["kind"] == "InputError"
    assert error["subject"] == str(member.folder)
    assert bench.balance("a") == before
    assert member.held() == HELD
