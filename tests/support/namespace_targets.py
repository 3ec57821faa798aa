"""Targets of processes that live in network namespaces: they serve bytes, or fetch them.

Owns: what such a process does. Never: makes a namespace. Next: troth_simulation/faults/namespaces.
"""

import socket
import time
from dataclasses import dataclass
from pathlib import Path

CONNECT_SECONDS = 2.0


@dataclass(frozen=True)
class Serving:
    """Send so many bytes to each caller of a port; `ready` is made once it listens."""

    address: str
    port: int
    num_bytes: int
    ready: Path


@dataclass(frozen=True)
class Fetching:
    """Read all that a server sends; the file tells bytes and seconds, or the error."""

    address: str
    port: int
    result: Path


def act(config: Serving | Fetching) -> None:
    """Serve or fetch, as the config says."""
    if isinstance(config, Serving):
        _serve(config)
    else:
        config.result.write_text(_fetch(config))


def _serve(config: Serving) -> None:
    with socket.create_server((config.address, config.port)) as listener:
        config.ready.touch()
        while True:
            caller, _ = listener.accept()
            with caller:
                caller.sendall(bytes(config.num_bytes))


def _fetch(config: Fetching) -> str:
    begun, num_bytes = time.monotonic(), 0
    where = (config.address, config.port)
    try:
        with socket.create_connection(where, timeout=CONNECT_SECONDS) as connection:
            while data := connection.recv(65_536):
                num_bytes += len(data)
    except OSError as error:
        return type(error).__name__
    return f"{num_bytes} {time.monotonic() - begun}"
