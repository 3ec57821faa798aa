"""A chain, keys and data for tests of the command line.

Owns: what the commands of one test share, and processes that take part. Never: parses output for
a claim of a test. Next: cli.py, which runs the commands.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Any, NoReturn, Protocol

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from support.cli import Cli
from support.waiting import wait_for
from troth_cli.connection import connect, run_async
from troth_cli.demo.participant import PRELOAD, STDERR, STDOUT
from troth_cli.keyfiles import read_key, write_key
from troth_cli.main import main
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer
from troth_coordinator import artifacts
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.operations import Crank, JoinOffer, Owner, Session
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import void_allowed_from
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.fleet import Fleet, preload
from troth_localnet.launcher import Programs

SOL = 10**9
SECONDS = 120
CONFIG = Path(__file__).parents[2] / "configs" / "smoke.toml"
PROGRAM = program_layout().program_id


def start(programs: Programs | None = None, slot_milliseconds: int = 20) -> EmbeddedLauncher:
    """A running chain with the shipped program, or with these programs."""
    launcher = EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=slot_milliseconds))
    launcher.start({PROGRAM: artifacts.program_image()} if programs is None else programs)
    return launcher


@dataclass(frozen=True)
class Bench:
    """The shared setting of one test's commands; `cli` runs them."""

    cli: Cli
    launcher: EmbeddedLauncher
    folder: Path
    data: Path

    @property
    def rpc(self) -> str:
        return self.launcher.rpc_url

    def key(self, name: str, amount: float = 10) -> Path:
        """A key file, with so much SOL in it unless 0."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            write_key(path, Keypair())
            if amount:
                self.launcher.airdrop(self.address(name), int(amount * SOL))
        return path

    def address(self, name: str) -> Pubkey:
        def refuse(text: str) -> NoReturn:
            raise AssertionError(text)

        return read_key(self.folder / f"{name}.json", refuse).pubkey()

    def keypair(self, name: str) -> Keypair:
        return Keypair.from_json(self.key(name).read_text())

    def balance(self, name: str) -> int:
        """Lamports of a key."""

        async def work() -> int:
            async with connect(self.rpc, None) as client:
                return await client.balance(self.address(name))

        return run_async(work())

    def create_arguments(
        self, *settings: str, name: str = "run", fund: str = "0.1"
    ) -> tuple[object, ...]:
        chosen = [part for setting in settings for part in ("--set", setting)]
        return (
            *("run", "create", "--config", CONFIG, "--data", self.data, "--name", name),
            *("--key", self.key("authority"), "--fund", fund, "--rpc", self.rpc, *chosen),
            *("--out", self.folder / f"{name}.toml"),
        )

    def create(self, *settings: str, **options: str) -> str:
        """Create a run and return its address as text."""
        run: str = self.cli.json(*self.create_arguments(*settings, **options))["run"]
        return run

    def of_run(self, *words: str, run: str, key: str | None = None) -> tuple[object, ...]:
        signed = () if key is None else ("--key", self.key(key))
        return (*words, run, *signed, "--rpc", self.rpc)

    def join_arguments(
        self, run: str, key: str, name: str = "run", anyway: tuple[str, ...] = ("--anyway",)
    ) -> tuple[object, ...]:
        """A join; `anyway` is there because a machine full of tests is a slow one."""
        return (
            *("join", run, "--key", self.key(key), "--config", self.folder / f"{name}.toml"),
            *("--data", self.data, "--state", self.folder / f"state-{key}"),
            *("--device", "cpu", "--rpc", self.rpc, *anyway),
        )

    def witness_arguments(self, run: str, key: str) -> tuple[object, ...]:
        return ("witness", *self.join_arguments(run, key)[1:])

    def take_a_seat(self, run: str, *names: str) -> None:
        """Join on chain without any client at work."""

        async def work() -> None:
            async with connect(self.rpc, None) as client:
                at = RunAddresses.of(await client.read_run(Pubkey.from_string(run)), PROGRAM)
                for name in names:
                    self.key(name)
                    owner = Owner(client, at, self.keypair(name))
                    await owner.join_run(
                        JoinOffer(self.session(name).pubkey(), 3, "http://x:1", SOL // 10)
                    )

        run_async(work())

    def session(self, name: str) -> Keypair:
        return Keypair.from_seed(bytes(self.keypair(name))[:31] + b"s")

    def pass_a_round(self, run: str, *names: str) -> None:
        """Let a run with these members open and close a round in which nobody works."""

        async def work() -> None:
            async with connect(self.rpc, None) as client:
                address = Pubkey.from_string(run)
                at = RunAddresses.of(await client.read_run(address), PROGRAM)
                crank = Crank(client, at, self.keypair("authority"))
                await crank.advance_phase(0)
                for index, name in enumerate(names):
                    owner = bytes(self.address(name))
                    view = await client.read_run(address)
                    vote = root_vote(bytes(address), view.root_round, owner, view.root)
                    session = Session(client, at, self.session(name), index)
                    await session.post_ready(view.root_round, vote)
                await crank.advance_phase(0)
                await until(client, address, lambda v: v.slot > v.run.phase_end_slot)
                await crank.advance_phase(0)
                await until(client, address, lambda v: v.slot >= void_allowed_from(v.run))
                await crank.close_void(0)
                assert (await client.read_run(address)).phase == Phase.COMMIT

        run_async(work())


@dataclass(frozen=True)
class CommandLine:
    """A command of the fork server's child, and the files for its output."""

    arguments: tuple[str, ...]
    out: Path
    err: Path


def run_command(line: CommandLine) -> None:
    """Do as `python -m troth_cli`, without the seconds that its imports take."""
    for number, path in ((STDOUT, line.out), (STDERR, line.err)):
        with path.open("wb") as stream:
            os.dup2(stream.fileno(), number)
    sys.argv = ["troth", *line.arguments]
    sys.exit(main())


class Joined:
    """A process that takes part; its output lies in files, so that no pipe can fill up."""

    def __init__(
        self, bench: Bench, arguments: Iterable[object], name: str, *, is_json: bool = True
    ) -> None:
        self._out, self._err = (bench.folder / f"{name}.{end}" for end in ("out", "err"))
        form = ("--json",) if is_json else ()
        line = CommandLine((*map(str, arguments), *form), self._out, self._err)
        preload(PRELOAD)
        self._fleet = Fleet(run_command, [line])
        self._fleet.start()

    def printed(self) -> str:
        return self._out.read_text() if self._out.exists() else ""

    def notes(self) -> str:
        return self._err.read_text() if self._err.exists() else ""

    def is_running(self) -> bool:
        return self._fleet.exit_codes() == [None]

    def signal(self, number: Signals) -> None:
        self._fleet.signal(0, number)

    def kill(self) -> None:
        self._fleet.kill(0)

    def wait_for(self, words: str) -> None:
        def is_there() -> bool:
            is_alive = self.is_running()
            return words in self.notes() or not is_alive

        wait_for(is_there, SECONDS, self.notes)
        assert words in self.notes(), self.notes()

    def code(self) -> int | None:
        """The exit code, once it has ended."""
        assert self._fleet.wait(SECONDS), self.notes()
        (code,) = self._fleet.exit_codes()
        return code

    def end(self) -> tuple[int | None, Any]:
        """Exit code and the JSON object on stdout, None if there is none."""
        code, text = self.code(), self._out.read_text()
        return code, last_json(text) if text else None


class Begin(Protocol):
    """`begin(arguments, name)` starts a process that takes part, or looks on."""

    def __call__(
        self, arguments: Iterable[object], name: str, *, is_json: bool = True
    ) -> Joined: ...


PANGRAM = "the quick brown fox jumps over the lazy dog\n"


@contextlib.contextmanager
def processes(bench: Bench) -> Iterator[Begin]:
    """Starts processes that take part: `begin(arguments, name)`; ends what is left of them."""
    started: list[Joined] = []

    def begin(arguments: Iterable[object], name: str, *, is_json: bool = True) -> Joined:
        started.append(Joined(bench, arguments, name, is_json=is_json))
        return started[-1]

    try:
        yield begin
    finally:
        for one in started:
            if one.is_running():
                one.kill()


def prepare_text(folder: Path, text: str = PANGRAM * 9_000) -> Path:
    """A small data set of text; return its folder."""
    (folder / "text.txt").write_text(text)
    options = PrepareOptions(sequence_tokens=64)
    prepare(folder / "set", text_source([folder / "text.txt"]), ByteTokenizer(), options)
    return folder / "set"


async def until(
    client: CoordinatorClient, run: Pubkey, test: Callable[[NetworkView], bool]
) -> NetworkView:
    """Poll until the chain shows something."""
    view = await client.snapshot(run)
    while not test(view):
        view = await client.snapshot(run)
    return view


def refused_check(error: dict[str, Any], name: str) -> dict[str, Any]:
    """The one check of a refused join that speaks against it, by name."""
    assert error["kind"] == "JoinRefusedError", error
    refused = {one["check"]: one for one in error["checks"] if one["level"] == "refused"}
    assert list(refused) == [name], refused
    found: dict[str, Any] = refused[name]
    return found


def last_json(text: str) -> Any:
    """The JSON object on the last line."""
    return json.loads(text.strip().splitlines()[-1])
