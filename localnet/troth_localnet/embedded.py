"""The embedded chain as a child process: starts in well under two seconds, needs nothing installed.

Owns: the child's command line and its readiness message.
Never: runs the chain in this process (direct.py does that for tests).
Next: `__main__.py`, which the child runs.
"""

from __future__ import annotations

import json
import secrets
import select
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from troth_localnet.child import Child
from troth_localnet.errors import LocalnetError, PortInUseError, StartFailedError
from troth_localnet.launcher import Addresses, ChildLauncher, Programs, image_path, request

START_SECONDS: Final = 20.0
"""A generous deadline for a loaded machine; an idle one takes about half a second."""


@dataclass(frozen=True, slots=True)
class EmbeddedOptions:
    """The options of an embedded chain.

    - port: of JSON-RPC; the websocket takes the next one; 0 lets the system pick.
    - slot_milliseconds: 20 to 400; None stops the clock, see EmbeddedLauncher.advance.
    - skip_every: of each N slots the last one has no block; None skips none.
    - seed: makes chains differ; equal seeds and steps give equal hashes.
    - ledger: a folder that keeps the chain across restarts; its own seed counts then.
    """

    host: str = "127.0.0.1"
    port: int = 0
    slot_milliseconds: int | None = 400
    skip_every: int | None = None
    seed: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    ledger: Path | None = None


class EmbeddedLauncher(ChildLauncher):
    """Implements `Launcher` with a Python process of our own."""

    talks = True

    def __init__(self, options: EmbeddedOptions | None = None) -> None:
        super().__init__()
        self.options = options or EmbeddedOptions()

    def advance(self, num_slots: int = 1) -> int:
        """Move time on by so many slots at once; return the open slot."""
        return _as_slot(request(self.rpc_url, "trothAdvanceSlots", [num_slots]))

    def skip(self, num_slots: int = 1) -> int:
        """Leave so many slots without a block; return the open slot after them."""
        return _as_slot(request(self.rpc_url, "trothSkipSlots", [num_slots]))

    def _command(self, programs: Programs, folder: Path) -> list[str]:
        options = self.options
        command = [sys.executable, "-m", "troth_localnet", "--host", options.host]
        command += ["--port", str(options.port), "--seed", options.seed.hex()]
        command += ["--until-stdin-ends", str(folder)]
        if options.slot_milliseconds is None:
            command.append("--stepped")
        else:
            command += ["--slot-milliseconds", str(options.slot_milliseconds)]
        if options.ledger is not None:
            command += ["--ledger", str(options.ledger.absolute())]
        if options.skip_every is not None:
            command += ["--skip-every", str(options.skip_every)]
        for program_id, image in programs.items():
            command += ["--program", f"{program_id}={image_path(program_id, image, folder)}"]
        return command

    def _await_ready(self, child: Child) -> Addresses:
        """Read the child's first line: it listens, or it failed."""
        deadline = time.monotonic() + START_SECONDS
        line = b""
        while not line.endswith(b"\n"):
            stdout = child.stdout
            left = deadline - time.monotonic()
            if stdout is None or left <= 0 or not select.select([stdout], [], [], left)[0]:
                raise child.failure(f"the embedded chain to listen within {START_SECONDS} s")
            part = stdout.readline()
            if not part:
                raise child.failure("the embedded chain to say that it listens")
            line += part
        message = json.loads(line)
        if "error" in message:
            raise _child_error(message)
        return Addresses(str(message["rpc_url"]), str(message["ws_url"]))


def _child_error(message: dict[str, object]) -> LocalnetError:
    """Raise the child's own error again, as the class that callers catch."""
    parts = [str(message[name]) for name in ("expected", "found", "next_step")]
    kinds = {kind.__name__: kind for kind in _subclasses(LocalnetError)}
    kind = kinds.get(str(message["error"]), StartFailedError)
    error = kind.__new__(kind)
    LocalnetError.__init__(error, *parts)
    if isinstance(error, PortInUseError):
        error.port = int(str(message.get("port", 0)))
    return error


def _subclasses(kind: type[LocalnetError]) -> list[type[LocalnetError]]:
    return [kind] + [below for child in kind.__subclasses__() for below in _subclasses(child)]


def _as_slot(value: object) -> int:
    return int(str(value))
