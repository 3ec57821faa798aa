"""Draw the event logs while they grow: live on a terminal, a line per round elsewhere.

Owns: the followed logs, and the moments of drawing. Never: counts (`telemetry/board.py` does), or
reads anything but events.
Next: `troth_client.telemetry.display`.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.live import Live

from troth_cli.demo.options import DemoOptions
from troth_client.model.shapes import trainable_shapes
from troth_client.telemetry.board import Board
from troth_client.telemetry.display import audit_text, draw, headline
from troth_client.telemetry.event_log import EventTail
from troth_client.telemetry.printable import one_line
from troth_coordinator.rules.config import ModelSection

REFRESHES_PER_SECOND = 4


class Stream:
    """Folds event logs into `board` and draws it on the console."""

    def __init__(self, options: DemoOptions, console: Console) -> None:
        self.board = Board()
        self._console = console
        self._tails = [EventTail(options.events)]
        is_live = options.is_live and console.is_terminal
        self._live = (
            Live(console=console, refresh_per_second=REFRESHES_PER_SECOND) if is_live else None
        )
        self._num_parameters = num_parameters(options.settings().config.model)
        self._printed: set[str] = set()

    def follow(self, logs: Iterable[Path]) -> None:
        """Read these logs too."""
        self._tails += [EventTail(path) for path in logs]

    def refresh(self) -> None:
        """Fold in new events and draw."""
        for tail in self._tails:
            for event in tail.read():
                self.board.take(event)
        if self._live is not None:
            self._live.update(draw(self.board, self._num_parameters))
            return
        self._print("", headline(self.board, self._num_parameters))
        for audit in self.board.notable_audits():
            step = f"{audit.round} {audit.target} {audit.step}"
            self._print(step, audit_text(self.board, audit))

    def _print(self, step: str, line: str) -> None:
        """Print a line of a log once, and one line for each step that is not empty."""
        keys = {step, line} - {""}
        if self._printed.isdisjoint(keys):
            self._console.print(one_line(line), highlight=False, markup=False, soft_wrap=True)
        self._printed |= keys

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()


def num_parameters(model: ModelSection) -> int:
    """Return the number of trainable parameters of a model."""
    return sum(math.prod(shape) for shape in trainable_shapes(model).values())
