"""The events of a participant on the terminal: a live view, or lines.

Owns: which of the two, and the sink that feeds the view. Never: keeps a log, or counts.
Next: `troth_client/telemetry/own_board.py` for the numbers; `../view/screen.py`.
"""

import contextlib
import threading
import time
from collections.abc import Iterator

from rich.console import RenderableType

from troth_cli.view.events import BESIDE_A_VIEW, OF_A_PARTICIPANT, EventLines
from troth_cli.view.output import Output
from troth_cli.view.screen import Screen
from troth_cli.workflows.join_request import JoinRequest
from troth_client.model.shapes import num_parameters
from troth_client.telemetry.events import EventSink, EventSinks, JsonValue
from troth_client.telemetry.own_board import OwnBoard
from troth_client.telemetry.own_display import draw_own


class _View:
    """An event sink of which a picture can be drawn at any time.

    Events only count: a run has many of them, and a picture takes longer than an event.
    """

    def __init__(self, own: OwnBoard, num_parameters: int) -> None:
        self._own = own
        self._num_parameters = num_parameters
        self._turn = threading.Lock()

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Fold one event in."""
        with self._turn:  # some events come from threads, and another thread draws
            self._own.take({"event": event, "time": time.time(), **fields})

    def picture(self) -> RenderableType:
        """Draw all events so far."""
        with self._turn:
            return draw_own(self._own, self._num_parameters)


@contextlib.contextmanager
def shown_events(request: JoinRequest, output: Output) -> Iterator[EventSink]:
    """Yield the sink for the terminal: a view where there is room for it, else lines.

    Warnings and other lines that are printed meanwhile stand above the view.
    """
    is_wanted = not (request.is_plain or output.is_json)
    settings = request.settings
    own = OwnBoard(settings.run, settings.config.schedule.rounds, time.monotonic)
    view = _View(own, num_parameters(settings.config.model))
    with Screen(output.console(), is_wanted=is_wanted, picture=view.picture) as screen:
        if not screen.is_live:
            yield EventLines(output, OF_A_PARTICIPANT)
            return
        yield EventSinks(EventLines(output, BESIDE_A_VIEW), view)
