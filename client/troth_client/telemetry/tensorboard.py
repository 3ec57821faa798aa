"""Readings as scalars in a TensorBoard folder.

Owns: the names of the scalars, and files that end where a write failed: TensorBoard reads no file
beyond a torn record, so a new one goes on in the next round.
Never: ends a participant because a disk is full; needs a thread, or TensorFlow.
Next: `readings.py` for the numbers.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event as Record
from tensorboardX.summary import scalar

from troth_client.runtime.files import Closable
from troth_client.telemetry.events import JsonValue
from troth_client.telemetry.readings import Quantity, Reading, Readings

SOL: Final = 10**9
TAGS: Final = {
    Quantity.LOSS: ("loss/own", 1),
    Quantity.MEAN_LOSS: ("loss/mean", 1),
    Quantity.VALIDATION_LOSS: ("loss/validation", 1),
    Quantity.PAYLOAD_BYTES: ("round/payload_bytes", 1),
    Quantity.INCLUDED: ("round/included", 1),
    Quantity.ROUND_SECONDS: ("round/seconds", 1),
    Quantity.STAKE: ("money/stake_sol", SOL),
    Quantity.READY: ("money/claimable_sol", SOL),
    Quantity.UNVESTED: ("money/unvested_sol", SOL),
    Quantity.SENT: ("bytes/sent", 1),
    Quantity.RECEIVED: ("bytes/received", 1),
    Quantity.FEES: ("money/fees_sol", SOL),
}
"""The name of each scalar, and what divides its reading."""


class TensorBoard(Closable):
    """An event sink that writes scalars into `folder`, each under its round.

    `warn` receives one sentence when writing begins to fail. Raises OSError where the first file
    cannot be made. `name` is the participant's, for the names of files.
    """

    def __init__(self, folder: Path, name: str, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._name = name
        self._warn = warn
        self._readings = Readings(time.monotonic)
        self._has_warned = False
        self._turn = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._writer: EventsWriter | None = self._new_file()

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Write the readings of one event; flush when a round has closed."""
        with self._turn:  # some events come from threads
            found = list(self._readings.of({"event": event, **fields}))
            self._write(found, has_closed=event == "round_closed")

    def close(self) -> None:
        """Write the rest; harmless when repeated."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.close()

    def _write(self, found: list[Reading], *, has_closed: bool) -> None:
        try:
            if self._writer is None and has_closed:
                self._writer = self._new_file()
            if self._writer is None:
                return
            for reading in found:
                self._writer.write_event(_record(reading))
            if has_closed:
                self._writer.flush()
        except OSError as error:
            self._give_up(error)

    def _new_file(self) -> EventsWriter:
        # The library names files by the second, and would write over one of the same second.
        suffix = f".{time.time_ns()}.{self._name}"
        return EventsWriter(str(self._folder / "events"), suffix)

    def _give_up(self, error: OSError) -> None:
        self.close()
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"TensorBoard's files cannot be written: {error}. The run goes on.")


def _record(reading: Reading) -> Record:
    tag, divisor = TAGS[reading.quantity]
    summary = scalar(tag, reading.value / divisor)
    return Record(wall_time=time.time(), step=reading.round, summary=summary)
