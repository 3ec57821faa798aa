"""Numbers that change with the rounds, for tools that draw them: one reading at a time.

Owns: the numbers that are read off events, and sums that no event holds (fees, seconds of a
round). Never: writes or serves a reading.
Next: `tensorboard.py` and `metrics.py`, which hand readings to others' tools.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from troth_client.telemetry.events import Event
from troth_client.telemetry.history import MICRO, whole_of


class Quantity(Enum):
    """The numbers of a participant. Losses in nats a token, amounts in lamports."""

    LOSS = "own training loss, nats a token"
    MEAN_LOSS = "mean training loss of the round, nats a token"
    VALIDATION_LOSS = "loss on held-out data, nats a token"
    PAYLOAD_BYTES = "length of a payload"
    INCLUDED = "payloads included in the round"
    ROUND_SECONDS = "time from one close to the next"
    STAKE = "stake, lamports"
    READY = "rewards that can be claimed, lamports"
    UNVESTED = "rewards that have not vested yet, lamports"
    SENT = "bytes sent to others since the start"
    RECEIVED = "bytes received from others since the start"
    FEES = "fees paid since the start, lamports"


@dataclass(frozen=True, slots=True)
class Reading:
    """One value at a round."""

    quantity: Quantity
    value: float
    round: int


_FIELDS = {
    "trained": ((Quantity.LOSS, "loss_micro", MICRO),),
    "validated": ((Quantity.VALIDATION_LOSS, "loss_micro", MICRO),),
    "encoded": ((Quantity.PAYLOAD_BYTES, "payload_bytes", 1),),
    "round_closed": ((Quantity.MEAN_LOSS, "mean_loss_micro", MICRO),),
    "tallied": (
        (Quantity.STAKE, "stake", 1),
        (Quantity.READY, "claimable", 1),
        (Quantity.UNVESTED, "unvested", 1),
        (Quantity.SENT, "sent_bytes", 1),
        (Quantity.RECEIVED, "received_bytes", 1),
    ),
}
"""For each event the fields that are readings, and what divides them."""


class Readings:
    """Turns the events of one participant into readings. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._fees = 0
        self._closed_at: float | None = None

    def of(self, event: Event) -> Iterator[Reading]:
        """Yield the readings of one event."""
        name, number = str(event["event"]), whole_of(event, "round")
        self._fees += whole_of(event, "fee") or 0
        if number is None:
            return
        for quantity, key, divisor in _FIELDS.get(name, ()):
            value = whole_of(event, key)
            if value is not None:
                yield Reading(quantity, value / divisor, number)
        if name == "round_closed":
            yield from self._closed(event, number)

    def _closed(self, event: Event, number: int) -> Iterator[Reading]:
        included, now = event.get("included"), self._clock()
        if isinstance(included, list):
            yield Reading(Quantity.INCLUDED, len(included), number)
        if self._closed_at is not None:
            yield Reading(Quantity.ROUND_SECONDS, now - self._closed_at, number)
        self._closed_at = now
        yield Reading(Quantity.FEES, self._fees, number)
