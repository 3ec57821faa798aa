"""A participant's numbers as Prometheus reads them, on a socket that only this machine reaches.

Owns: names and kinds of the metrics, and the server. Never: a number of its own; events bring them.
Next: `readings.py` for the numbers; `hub/metrics.py` for those of a hub.
"""

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Enum,
    Gauge,
    make_wsgi_app,
    start_http_server,
)

from troth_attestation.verdict import VerdictKind
from troth_client.runtime.files import Closable
from troth_client.telemetry.events import JsonValue
from troth_client.telemetry.history import whole_of
from troth_client.telemetry.loopback import names_loopback
from troth_client.telemetry.readings import Quantity, Readings
from troth_coordinator.rules.phase import Phase

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

NAMES = {
    Quantity.LOSS: "loss_nats",
    Quantity.MEAN_LOSS: "mean_loss_nats",
    Quantity.VALIDATION_LOSS: "validation_loss_nats",
    Quantity.PAYLOAD_BYTES: "payload_bytes",
    Quantity.INCLUDED: "included_payloads",
    Quantity.ROUND_SECONDS: "round_seconds",
    Quantity.STAKE: "stake_lamports",
    Quantity.READY: "claimable_lamports",
    Quantity.UNVESTED: "unvested_lamports",
    Quantity.SENT: "sent_bytes",
    Quantity.RECEIVED: "received_bytes",
    Quantity.FEES: "fees_lamports",
}
PREFIX = "troth"


class Metrics(Closable):
    """An event sink that keeps the newest numbers and serves them until it is closed.

    `port` is the one that the system picked where 0 was asked for. Raises OSError where nothing
    can listen.
    """

    def __init__(self, host: str, port: int) -> None:
        registry = CollectorRegistry()
        self._readings = Readings(time.monotonic)
        self._turn = threading.Lock()
        self._gauges = {
            quantity: Gauge(f"{PREFIX}_{name}", quantity.value, registry=registry)
            for quantity, name in NAMES.items()
        }
        self._counts = _Counts(registry)
        self._server, self._thread = start_http_server(port, host, registry)
        self._server.set_app(_of_this_machine(make_wsgi_app(registry)))
        self.port = self._server.server_port

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Take the numbers of one event."""
        whole = {"event": event, **fields}
        with self._turn:  # some events come from threads
            for reading in self._readings.of(whole):
                self._gauges[reading.quantity].set(reading.value)
            self._counts.take(event, whole)

    def close(self) -> None:
        """Stop serving; harmless when repeated."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _of_this_machine(app: "WSGIApplication") -> "WSGIApplication":
    """Return the app, for requests that name this machine: a page elsewhere reads nothing here."""

    def checked(request: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        if names_loopback(request.get("HTTP_HOST", "")):
            return app(request, start)
        start("421 Misdirected Request", [("Content-Type", "text/plain")])
        return [b"This server answers for loopback only.\n"]

    return checked


class _Counts:
    """The metrics that are no readings: counts, the phase, trouble with RPC nodes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"{PREFIX}_{name}", about, labels, registry=registry)

        def gauge(name: str, about: str) -> Gauge:
            return Gauge(f"{PREFIX}_{name}", about, registry=registry)

        self._round = gauge("round", "newest round that was seen to close")
        self._closed_at = gauge("closed_timestamp_seconds", "Unix time of the last close")
        self._closed = counter("rounds_closed", "rounds that were seen to close")
        self._void = counter("rounds_void", "rounds that closed void")
        self._own = counter("own_payloads_included", "own payloads that were included")
        self._verdicts = counter("verdicts", "audits judged, by verdict", "verdict")
        for kind in VerdictKind:
            self._verdicts.labels(kind.name.lower())
        self._troubles = counter("rpc_troubles", "times that an RPC node began to fail")
        self._in_trouble = gauge("rpc_nodes_in_trouble", "RPC nodes that fail now")
        names = [phase.name.lower() for phase in Phase]
        self._phase = Enum(f"{PREFIX}_phase", "phase of the run", states=names, registry=registry)
        self._failing: set[str] = set()

    def take(self, event: str, fields: dict[str, JsonValue]) -> None:
        """Count one event."""
        if event == "round_closed":
            self._take_close(fields)
        elif event == "phase" and str(fields.get("phase")) in Phase.__members__:
            self._phase.state(str(fields["phase"]).lower())
        elif event == "judged" and str(fields.get("verdict")) in VerdictKind.__members__:
            self._verdicts.labels(str(fields["verdict"]).lower()).inc()
        elif event in ("rpc_trouble", "rpc_recovered"):
            self._take_trouble(str(fields.get("node")), is_failing=event == "rpc_trouble")

    def _take_close(self, fields: dict[str, JsonValue]) -> None:
        self._round.set(whole_of(fields, "round") or 0)
        self._closed_at.set(time.time())
        self._closed.inc()
        self._void.inc(bool(fields.get("void")))
        self._own.inc(bool(fields.get("own")))

    def _take_trouble(self, name: str, *, is_failing: bool) -> None:
        if is_failing:
            self._troubles.inc(name not in self._failing)
            self._failing.add(name)
        else:
            self._failing.discard(name)
        self._in_trouble.set(len(self._failing))
