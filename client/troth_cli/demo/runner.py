"""Run a demo: start everything, draw the events until all have ended, sum up.

Owns: the life of the chain and of the fleet, however the demo ends.
Never: takes part in the protocol.
Next: `progress.py` for giving up, `summary.py` for the claims.
"""

import asyncio
import contextlib
import shutil
import signal
import time
from collections.abc import Callable, Iterator

from rich.console import Console

from troth_cli.demo.archive import ArchiveProcess, complete, run_archive
from troth_cli.demo.live import Stream
from troth_cli.demo.options import DemoOptions
from troth_cli.demo.participant import ParticipantProcess, preload_participants, run_participant
from troth_cli.demo.progress import Watch, ending_seconds, patience_seconds
from troth_cli.demo.setup import DemoRun, create_run, participant_processes, start_chain
from troth_cli.demo.summary import Summary, read_ledger, summarise
from troth_cli.view.screen import REFRESHES_PER_SECOND
from troth_cli.workflows.settle import pay_out
from troth_client.telemetry.event_log import EventLog
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.event_types_audits import AuditClosed
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.fleet import Fleet
from troth_localnet.launcher import Launcher

SECONDS_PER_LOOK = 1 / REFRESHES_PER_SECOND


Report = Callable[[Summary, str], None]
"""Receives the summary while the chain, at that RPC address, is still up."""


def _no_report(_summary: Summary, _rpc_url: str) -> None:
    """Do nothing with the summary."""


def run_demo(
    options: DemoOptions,
    console: Console,
    launcher: Launcher | None = None,
    report: Report = _no_report,
) -> Summary:
    """Run the whole demo and return what it proved; the display goes to `console`.

    The chain is the embedded one, unless a launcher is given that is not started yet. The chain and
    all participants are stopped in any case. Raises DemoError when the demo cannot be completed,
    and errors of its parts before the run begins.
    """
    options.check_folder()
    options.folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    chain = launcher or _embedded(options)
    with (
        _naming_folder(options, console),
        EventLog.open(options.events) as events,
        contextlib.closing(_Stopping(chain)),
        contextlib.ExitStack() as stack,
    ):
        preload_participants()
        stream = Stream(options, console)
        with stream:
            start_chain(chain, events)
            demo = asyncio.run(_create(options, chain, events, stream))
            processes = participant_processes(options, demo, chain.rpc_url)
            archive = ArchiveProcess.of(options, demo, chain.rpc_url)
            stack.enter_context(Fleet(run_archive, [archive]))
            _train(options, processes, events, stream)
        events.emit("trainers_ended", seconds=round(time.monotonic() - started, 1))
        asyncio.run(_pay_out(options, chain, demo, events))
        stack.close()  # the archive has the last entries, too
        complete(options)
        stream.refresh()
        summary = asyncio.run(_sum_up(options, chain, demo, stream))
        events.emit("summarised", **summary.to_json())
        if summary.is_success:
            _drop_state(options)
        report(summary, chain.rpc_url)
    return summary


def _drop_state(options: DemoOptions) -> None:
    """Remove files that trainers need only during a run: half a gigabyte for 40 rounds."""
    for plan in options.plans:
        state = options.weights_folder(plan.name).parent
        for record in state.glob("*.record"):
            record.unlink()
        for folder in ("blobs", "openings", "verdicts"):
            shutil.rmtree(state / folder, ignore_errors=True)


def _embedded(options: DemoOptions) -> Launcher:
    return EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=options.slot_milliseconds))


class _Stopping:
    """Stops a launcher, started or not, when it is closed."""

    def __init__(self, launcher: Launcher) -> None:
        self.close = launcher.stop


@contextlib.contextmanager
def _naming_folder(options: DemoOptions, console: Console) -> Iterator[None]:
    """Name the logs if the demo ends early, by Ctrl-C too."""
    try:
        yield
    except BaseException:
        where = f"the demo's logs and keys are in {options.folder}"
        console.print(where, highlight=False, markup=False, soft_wrap=True)
        raise


async def _create(
    options: DemoOptions, launcher: Launcher, events: EventLog, stream: Stream
) -> DemoRun:
    async with HttpRpc(launcher.rpc_url) as rpc:
        creating = asyncio.create_task(create_run(options, _client(options, rpc), events))
        while not creating.done():
            stream.refresh()
            await asyncio.wait([creating], timeout=SECONDS_PER_LOOK)
        return creating.result()


def _train(
    options: DemoOptions, processes: list[ParticipantProcess], events: EventLog, stream: Stream
) -> None:
    """Run the trainers until all have ended; raise what Watch raises."""
    stream.follow(process.events for process in processes)
    terms = options.settings().chain.to_view(), options.slot_milliseconds
    watch = Watch(options.folder, patience_seconds(*terms), ending_seconds(*terms))
    names = [process.name for process in processes]
    living = dict.fromkeys(options.names)
    with Fleet(run_participant, processes) as fleet, _ended_at_once(fleet):
        is_over = False
        while not is_over:
            is_over = fleet.wait(SECONDS_PER_LOOK)
            # Check before the logs are read: an ended process has then written its last event.
            codes = dict(zip(names, fleet.exit_codes(), strict=True))
            stream.refresh()
            victim = names[options.num_trainers - 1]
            due = options.kill_round is not None and stream.board.round > options.kill_round
            if due and victim in living:
                fleet.kill(options.num_trainers - 1)
                del living[victim]
                events.emit("killed", participant=victim, round=stream.board.round)
            # A cheat may end in any way: the run bars it.
            watch.check(stream.board, {name: codes[name] for name in living})
    stream.refresh()


@contextlib.contextmanager
def _ended_at_once(fleet: "Fleet[ParticipantProcess]") -> Iterator[None]:
    """On any error, stop trainers in mid-round: Fleet's SIGTERM is then the second signal."""
    try:
        yield
    except BaseException:
        for index in range(len(fleet)):
            fleet.signal(index, signal.SIGINT)
        raise


async def _pay_out(
    options: DemoOptions, launcher: Launcher, demo: DemoRun, events: EventLog
) -> None:
    """Wait for the appeal windows that the end of the run left open, then pay out; anyone may."""

    async def pause() -> None:
        await asyncio.sleep(options.slot_milliseconds / 1_000)

    async with HttpRpc(launcher.rpc_url) as rpc:
        client = _client(options, rpc)
        at = RunAddresses.of(await client.read_run(demo.run), client.program_id)
        async for sent in pay_out(client, at, demo.authority, pause):
            for closed in (one for one in sent.events if isinstance(one, AuditClosed)):
                about = {"round": closed.round, "target": closed.target}
                events.emit("audit_closed", fee=sent.fee_lamports, **about)


async def _sum_up(
    options: DemoOptions, launcher: Launcher, demo: DemoRun, stream: Stream
) -> Summary:
    async with HttpRpc(launcher.rpc_url) as rpc:
        ledger = await read_ledger(_client(options, rpc), options, demo)
    return summarise(options, demo, stream.board, ledger)


def _client(options: DemoOptions, rpc: HttpRpc) -> CoordinatorClient:
    policy = SendPolicy(poll_seconds=options.slot_milliseconds / 2_000)
    return CoordinatorClient(rpc, policy=policy)
