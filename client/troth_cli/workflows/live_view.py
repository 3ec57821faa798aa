"""The events of a participant on the terminal: a live view, or lines.

Owns: which of the two, and the sink that feeds the view. Never: keeps a log, or counts.
Next: `troth_client/telemetry/own_board.py` for the numbers; `../view/screen.py`.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from troth_cli.view.events import BESIDE_A_VIEW, OF_A_PARTICIPANT, EventLines
from troth_cli.view.output import Output
from troth_cli.view.screen import Screen
from troth_cli.workflows.join_request import JoinRequest
from troth_client.model.shapes import num_parameters
from troth_client.telemetry.events import EventSink, EventSinks, JsonValue
from troth_client.telemetry.own_board import OwnBoard
from troth_client.telemetry.own_display import draw_own


class _View:
    """An event sink that draws."""

    def __init__(self, screen: Screen, own: OwnBoard, num_parameters: int) -> None:
        self._screen = screen
        self._own = own
        self._num_parameters = num_parameters
        self._turn = threading.Lock()

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Fold one event in and draw."""
        with self._turn:  # some events come from threads
            self._own.take({"event": event, "time": time.time(), **fields})
            self._screen.draw(draw_own(self._own, self._num_parameters))


@contextlib.contextmanager
def shown_events(request: JoinRequest, output: Output) -> Iterator[EventSink]:
    """Yield the sink for the terminal: a view where there is room for it, else lines.

    Warnings and other lines that are printed meanwhile stand above the view.
    """
    is_wanted = not (request.is_plain or output.is_json)
    with Screen(output.console(), is_wanted=is_wanted) as screen:
        if not screen.is_live:
            yield EventLines(output, OF_A_PARTICIPANT)
            return
        own = OwnBoard(str(request.run), request.config.schedule.rounds, time.monotonic)
        view = _View(screen, own, num_parameters(request.config.model))
        yield EventSinks(EventLines(output, BESIDE_A_VIEW), view)
