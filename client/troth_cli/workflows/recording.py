"""Where else a participant's events go: TensorBoard's files, metrics for Prometheus.

Owns: reading --log-to and --metrics, and the life of the sinks that they ask for.
Never: imports torch, or keeps an event.
Next: `troth_client/telemetry/tensorboard.py` and `metrics.py`; `take_part.py`, which opens them.
"""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth_cli.errors import InputError
from troth_cli.view.output import Output
from troth_client.telemetry.events import EventSink
from troth_client.telemetry.loopback import is_loopback

TENSORBOARD: Final = "tensorboard"


@dataclass(frozen=True, slots=True)
class Recording:
    """Folders for TensorBoard, and the address for metrics, if any."""

    tensorboard: tuple[Path, ...] = ()
    metrics: tuple[str, int] | None = None

    @contextlib.contextmanager
    def sinks(self, name: str, output: Output) -> Iterator[list[EventSink]]:
        """Open what was asked for until the end of the block; `name` is the participant's.

        Raises InputError for an address in use, OSError for a folder that cannot be written.
        """
        with contextlib.ExitStack() as stack:
            found: list[EventSink] = []
            for folder in self.tensorboard:
                from troth_client.telemetry.tensorboard import TensorBoard

                found.append(stack.enter_context(TensorBoard(folder, name, output.warn)))
            if self.metrics is not None:
                from troth_client.telemetry.metrics import Metrics

                host, port = self.metrics
                try:
                    metrics = stack.enter_context(Metrics(host, port))
                except OSError as error:
                    raise _in_use(host, port, error) from error
                shown = f"[{host}]" if ":" in host else host
                output.note(f"metrics at http://{shown}:{metrics.port}/metrics")
                found.append(metrics)
            yield found


def recording(log_to: Sequence[str], metrics: str) -> Recording:
    """Return what the options ask for. Raises InputError; ModuleNotFoundError without the extra."""
    folders = tuple(_folder(text) for text in log_to)
    if folders:
        import tensorboardX  # noqa: F401  missing: said before anything is paid
    return Recording(folders, _address(metrics) if metrics else None)


def _folder(text: str) -> Path:
    scheme, separator, folder = text.partition(":")
    if scheme != TENSORBOARD or not separator or not folder:
        raise InputError(
            f"{TENSORBOARD}:DIR", repr(text), "TensorBoard is all that it writes for.", "--log-to"
        )
    return Path(folder)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isdecimal() and port.isascii() and int(port) <= 65_535
    if not is_port or not is_loopback(host):
        raise InputError(
            "HOST:PORT on this machine, like 127.0.0.1:9100",
            repr(text),
            "Let Prometheus run here, or read through a tunnel: nobody else should see this.",
            "--metrics",
        )
    return host, int(port)


def _in_use(host: str, port: int, error: OSError) -> InputError:
    found = error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        found = f"no address for {host}"
    return InputError(
        f"an address on which metrics can be served: {host}:{port}",
        found.lower(),
        "Name another port; 0 lets the system pick one.",
        "--metrics",
    )
