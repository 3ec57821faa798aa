"""`troth status --watch`: show a run from the chain until it ends or a signal asks to stop.

Owns: when something is shown, in three forms: a picture, lines, JSON objects.
Never: reads the chain; the observer does. Next: `../observe/observer.py`, `../view/run_display.py`.
"""

import asyncio
from collections.abc import Coroutine
from typing import Final, Protocol

from solders.pubkey import Pubkey

from troth_cli.observe.observer import Observer, ObserverSettings
from troth_cli.observe.record import Observation
from troth_cli.view.output import Output
from troth_cli.view.run_display import draw
from troth_cli.view.run_lines import first_lines, new_lines, round_line
from troth_cli.view.screen import Screen
from troth_client.runtime.signals import at_stop_signals
from troth_coordinator.chain.client import CoordinatorClient

DRAW_SECONDS: Final = 1.0
"""A picture is drawn at least so often: slots and ages go on."""
LAST_SECONDS: Final = 12.0
"""When a run has ended, the headers of its last rounds are awaited for so long."""
LATE_ROUNDS: Final = 3
"""Lines of rounds wait for the headers of an earlier one for so many rounds."""


class Form(Protocol):
    """One way to show a run."""

    def show(self, seen: Observation, *, is_last: bool = False) -> None:
        """Show the newest observation; nothing follows the last one."""
        ...


async def watch(
    client: CoordinatorClient, run: Pubkey, settings: ObserverSettings, output: Output
) -> None:
    """Show a run until it has finished and nothing is judged any more, or until a signal.

    Raises RpcError, and AccountError without such a run. A node that is away later ends nothing.
    """
    stopped = asyncio.Event()
    screen = Screen(output.screen(), is_wanted=not output.is_json)
    form = _form(screen, output)
    with at_stop_signals(stopped.set):
        async with Observer(client, run, settings) as observer:
            with screen:
                await _show(observer, form, stopped)


async def _show(observer: Observer, form: Form, stopped: asyncio.Event) -> None:
    """Show a run until it is over or a stop is asked for."""
    while not stopped.is_set() and not _is_over(observer.latest()):
        form.show(observer.latest())
        await _either(observer.changed(DRAW_SECONDS), stopped)
    if not stopped.is_set():
        await _either(observer.settle(LAST_SECONDS), stopped)
        form.show(observer.latest(), is_last=True)


def _form(screen: Screen, output: Output) -> Form:
    if output.is_json:
        return _Objects(output)
    return _Picture(screen) if screen.is_live else _Lines(screen)


def _is_over(seen: Observation) -> bool:
    return seen.is_gone or (seen.run.is_finished and not seen.run.num_audits)


async def _either(work: Coroutine[None, None, object], stopped: asyncio.Event) -> None:
    """Wait for the work or the stop, whatever comes first."""
    waiting: list[asyncio.Task[object]] = [
        asyncio.create_task(work),
        asyncio.create_task(stopped.wait()),
    ]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting[0].done():
            waiting[0].result()
    finally:
        for one in waiting:
            one.cancel()


class _Picture:
    """Draws on a terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def show(self, seen: Observation, *, is_last: bool = False) -> None:
        del is_last
        self._screen.draw(draw(seen, self._screen.num_rows))


class _Lines:
    """Prints a line for each closed round, and for each change that is worth one."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._before: Observation | None = None
        self._last_round = -1

    def show(self, seen: Observation, *, is_last: bool = False) -> None:
        before, self._before = self._before, seen
        if before is None:
            for line in first_lines(seen):
                self._screen.line(line)
            self._last_round = -1 if seen.newest is None else seen.newest.chain.round
            return
        for line in new_lines(seen, before):
            self._screen.line(line)
        self._rounds(seen, is_last=is_last)

    def _rounds(self, seen: Observation, *, is_last: bool) -> None:
        """Print closed rounds in their order, once their headers were asked for.

        A round whose headers are not read keeps others waiting for `LATE_ROUNDS` at most.
        """
        read = max((one.chain.round for one in seen.rounds if one.loss is not None), default=-1)
        for one in seen.rounds:
            round_ = one.chain.round
            if round_ <= self._last_round:
                continue
            if one.loss is None and not is_last and round_ > read - LATE_ROUNDS:
                return
            self._screen.line(round_line(one))
            self._last_round = round_


class _Objects:
    """Prints an object at each change; after the first, it has only the rounds that changed."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._before: Observation | None = None

    def show(self, seen: Observation, *, is_last: bool = False) -> None:
        del is_last
        if self._before is None or seen.revision != self._before.revision:
            self._output.result(seen.to_json(since=self._before))
            self._before = seen
