"""Draw the event logs while they grow: live on a terminal, a line per round elsewhere.

Owns: the followed logs, and the moments of drawing. Never: counts (`telemetry/board.py` does), or
reads anything but events.
Next: `troth_client.telemetry.display`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Self

from rich.console import Console

from troth_cli.demo.options import DemoOptions
from troth_cli.view.screen import Screen
from troth_client.model.shapes import num_parameters
from troth_client.telemetry.board import Board
from troth_client.telemetry.display import audit_text, draw, headline
from troth_client.telemetry.event_log import EventTail


class Stream:
    """Folds event logs into `board` and draws it on the console."""

    def __init__(self, options: DemoOptions, console: Console) -> None:
        self.board = Board()
        self._tails = [EventTail(options.events)]
        self._screen = Screen(console, is_wanted=options.is_live)
        self._num_parameters = num_parameters(options.settings().config.model)

    def follow(self, logs: Iterable[Path]) -> None:
        """Read these logs too."""
        self._tails += [EventTail(path) for path in logs]

    def refresh(self) -> None:
        """Fold in new events and draw."""
        for tail in self._tails:
            for event in tail.read():
                self.board.take(event)
        if self._screen.is_live:
            self._screen.draw(draw(self.board, self._num_parameters))
            return
        self._screen.line_once(headline(self.board, self._num_parameters))
        for audit in self.board.notable_audits():
            step = f"{audit.round} {audit.target} {audit.step}"
            self._screen.line_once(audit_text(self.board, audit), step)

    def __enter__(self) -> Self:
        self._screen.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.__exit__(None, None, None)
