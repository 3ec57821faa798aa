"""A real `solana-test-validator` behind the launcher interface.

Owns: finding the binary, its command line, ports and ledger folder, readiness.
Never: installs anything, touches another validator's ledger or process.
Next: `guard.py`, which ends it when we are killed; `embedded.py`, which needs no binary.

Unlike the embedded chain, the validator (4.1.1 as tried) opens its RPC, websocket and faucet ports
on all interfaces, for any --bind-address: use it behind a firewall.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth_localnet.child import Child
from troth_localnet.errors import OptionError, RequestFailedError, ValidatorMissingError
from troth_localnet.launcher import Addresses, ChildLauncher, Programs, image_path, request
from troth_localnet.ports import bind_pair

BINARY_NAME: Final = "solana-test-validator"
START_SECONDS: Final = 60.0
_HOST: Final = "127.0.0.1"
_POLL_SECONDS: Final = 0.05
_REQUEST_SECONDS: Final = 2.0
_TICKS_PER_400_MILLISECONDS: Final = 64


@dataclass(frozen=True, slots=True)
class ValidatorOptions:
    """The options of a validator.

    - binary: its path; None looks on PATH.
    - port: of JSON-RPC; the websocket takes the next one; 0 picks a free pair.
    - slot_milliseconds: 400 is Solana's; fewer ticks per slot make it faster.
    """

    binary: Path | None = None
    port: int = 0
    slot_milliseconds: int = 400

    def __post_init__(self) -> None:
        """Check the slot time."""
        if not 25 <= self.slot_milliseconds <= 400:
            raise OptionError(
                "a validator slot of 25 to 400 milliseconds",
                f"{self.slot_milliseconds}",
                "400 is what public networks have",
            )


class ValidatorLauncher(ChildLauncher):
    """Implements `Launcher` with solana-test-validator."""

    def __init__(self, options: ValidatorOptions | None = None) -> None:
        super().__init__()
        self.options = options or ValidatorOptions()
        self._port = 0

    def _command(self, programs: Programs, folder: Path) -> list[str]:
        binary = find_validator(self.options.binary)
        self._port = _free_port_pair(self.options.port)
        ticks = self.options.slot_milliseconds * _TICKS_PER_400_MILLISECONDS // 400
        command = [sys.executable, "-m", "troth_localnet.guard"]
        command += ["--scratch", str(folder), str(binary)]
        command += ["--reset", "--quiet", "--ledger", str(folder / "ledger")]
        command += ["--bind-address", _HOST, "--rpc-port", str(self._port)]
        command += ["--faucet-port", str(_free_port()), "--gossip-port", str(_free_port())]
        command += ["--ticks-per-slot", str(ticks)]
        # The user's own Solana configuration must not change ours.
        command += ["--config", str(folder / "no-config.yml")]
        for program_id, image in programs.items():
            path = image_path(program_id, image, folder)
            command += ["--bpf-program", str(program_id), str(path)]
        return command

    def _await_ready(self, child: Child) -> Addresses:
        """Ask until it is healthy and has rooted its first slots, or its time is up."""
        found = Addresses(f"http://{_HOST}:{self._port}", f"ws://{_HOST}:{self._port + 1}")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and child.exit_code() is None:
            if _is_ready(found.rpc_url):
                return found
            time.sleep(_POLL_SECONDS)
        raise child.failure(f"{BINARY_NAME} to be healthy within {START_SECONDS:.0f} s")


def find_validator(binary: Path | None) -> Path:
    """Return the path of the binary; ValidatorMissingError if there is none to run."""
    if binary is None:
        found = shutil.which(BINARY_NAME)
        if found is None:
            raise ValidatorMissingError(f"{BINARY_NAME} on PATH")
        return Path(found)
    if not binary.is_file() or not os.access(binary, os.X_OK):
        raise ValidatorMissingError(str(binary))
    return binary.resolve()


def _is_ready(url: str) -> bool:
    try:
        healthy = request(url, "getHealth", [], _REQUEST_SECONDS) == "ok"
        config = {"commitment": "confirmed"}
        latest = request(url, "getLatestBlockhash", [config], _REQUEST_SECONDS)
        slot = request(url, "getSlot", [config], _REQUEST_SECONDS)
    except RequestFailedError:
        return False
    return healthy and isinstance(latest, Mapping) and isinstance(slot, int) and slot > 0


def _free_port_pair(port: int) -> int:
    """Return a port that is free together with the next; PortInUseError if the given one is not."""
    first, second = bind_pair(_HOST, port)
    with first, second:
        return int(first.getsockname()[1])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
