"""The commands of docs/guide/devnet.md, to the letter, on solana-test-validator without a program.

The binary is the one on PATH or the one that TROTH_VALIDATOR names; without it the test is skipped.
"""

import contextlib
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import Cli
from support.network import SOL
from support.pages import commands_of
from support.reader import free_port
from support.validator import validator_binary
from support.waiting import wait_for

from troth_localnet.validator import ValidatorLauncher, ValidatorOptions

REPOSITORY = Path(__file__).parents[2]
GUIDE = (REPOSITORY / "docs/guide/devnet.md").read_text()
SECONDS = 300
ASKED = {"program deploy": ["--yes"], "program close": ["--yes"]}
"""Nobody sits at a terminal here."""

pytestmark = [
    pytest.mark.validator,
    pytest.mark.processes,
    pytest.mark.timeout(900),
    pytest.mark.long(reason="a deploy and a whole run"),
]


@pytest.fixture
def chain():
    options = ValidatorOptions(binary=validator_binary(), slot_milliseconds=100)
    with ValidatorLauncher(options) as launcher:
        launcher.start({})
        yield launcher


def lines_of(title):
    return commands_of(GUIDE, title)


class Reader:
    """Somebody who types what the guide says, with what commands have printed put in."""

    def __init__(self, cli, monkeypatch):
        self.cli, self.monkeypatch = cli, monkeypatch
        self.known = {}

    def words(self, line):
        for name, value in self.known.items():
            line = re.sub(rf"\b{name}\b", value, line)
        return shlex.split(line)[1:]

    def does(self, title):
        """Run a section, exports too; return what the commands printed, by their first words."""
        said = {}
        for line in lines_of(title):
            if line.startswith("export "):
                name, value = self.words(line)[0].split("=")
                if name != "TROTH_RPC":
                    self.monkeypatch.setenv(name, value)
            elif "localnet up" not in line:
                words = self.words(line)
                start = " ".join(words[:2])
                said[start] = self.cli.json(*words, *ASKED.get(start, []))
                if start == "program deploy" and "--dry-run" not in words:
                    self.known["PROGRAM"] = said[start]["program_id"]
        return said


def test_the_guide_leads_from_no_key_to_a_run_and_back(capsys, chain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_RPC", chain.rpc_url)
    (tmp_path / "configs").symlink_to(REPOSITORY / "configs")
    cli = Cli(capsys)
    reader = Reader(cli, monkeypatch)
    reader.does("Keys and SOL")
    said = reader.does("The program")
    assert_costs_as_the_guide_says(said["program deploy"])
    assert said["program verify"]["is_equal"]

    create, show, prepare = (
        next(line for line in lines_of("The run") if line.startswith(f"troth {start}"))
        for start in ("run create", "run show", "data prepare")
    )
    cli.ok(*reader.words(prepare))
    cli.ok(*reader.words(create))
    assert cli.json(*reader.words(show))["program"] == reader.known["PROGRAM"]
    trains_to_the_end(reader)

    leave, *_others, close_run, close_program = lines_of("The end")
    cli.ok(*reader.words(leave))
    early = cli.refused(*reader.words(close_run))
    assert "after slot" in early["next_step"]
    # Windows of half an hour are not waited for: a run that nobody joined closes at once.
    cli.ok("localnet", "airdrop", "authority.json", 2)
    unused = cli.json(*reader.words(create), "--name", "unused", "--out", "unused.toml")["run"]
    cli.ok("run", "close", unused, "--key", "authority.json")
    returned = cli.json(*reader.words(close_program), "--yes")["returned_lamports"]
    assert exactly(returned) in GUIDE


def exactly(lamports):
    """SOL with all digits that are not zero."""
    return f"{lamports / SOL:.9f}".rstrip("0")


def assert_costs_as_the_guide_says(deployed):
    assert f"{deployed['image_bytes']:,} bytes" in GUIDE
    assert exactly(deployed["data_rent_lamports"]) in GUIDE
    assert exactly(deployed["program_rent_lamports"]) in GUIDE
    assert f"{deployed['fees_lamports'] // 5_000} signatures with v3" in GUIDE


def trains_to_the_end(reader):
    """Two members, each with a key of its own, join as the guide says until the run is over."""
    join, status = lines_of("The run")[-2:]
    reader.cli.ok("keys", "new", "second.json")
    reader.cli.ok("localnet", "airdrop", "second.json", 1)
    # A machine full of tests is a slow one, which the checks of a join would not have.
    ways = [
        reader.words(join.replace("0.0.0.0:7000", here).replace("HOST:7000", here))
        for here in (f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port(1)}")
    ]
    ways[1] = ["second.json" if word == "owner.json" else word for word in ways[1]]
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(joined(words, Path("log"))) for words in ways]

        def is_over():
            assert [member.poll() for member in members] == [None, None], Path("log").read_text()
            told = reader.cli(*reader.words(status), "--json")  # a busy node may be silent
            return told.code == 0 and told.json["phase"] == "finished"

        wait_for(is_over, SECONDS)


@contextlib.contextmanager
def joined(words, log):
    """A process that takes part; it is interrupted in the end, as somebody would with Ctrl-C."""
    command = [sys.executable, "-m", "troth_cli", *words, "--anyway", "--device", "cpu"]
    with log.open("a") as stream, subprocess.Popen(command, stdout=stream, stderr=stream) as member:
        try:
            yield member
        finally:
            member.send_signal(signal.SIGINT)
