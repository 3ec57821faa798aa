"""The common interface of local chains.

Owns: the `Launcher` interface; the parts that its implementations share: one child process with a
folder of its own, and a small JSON-RPC client. Never: knows a command line.
Next: `embedded.py` and `validator.py`, which do.
"""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, NoReturn, Protocol, Self

import httpx
from solders.pubkey import Pubkey

from troth_localnet.child import Child
from troth_localnet.errors import (
    ChainEndedError,
    ProgramImageError,
    RequestFailedError,
    StartFailedError,
)
from troth_localnet.values import Json

Image = Path | bytes
Programs = Mapping[Pubkey, Image]
"""Program images by program id, as files or as bytes."""

_REQUEST_SECONDS: Final = 10.0
_CONFIRM_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02


class Launcher(Protocol):
    """One local chain, from start to stop. Calls block; as a context manager it stops itself."""

    @property
    def rpc_url(self) -> str:
        """The address of JSON-RPC; LauncherError before start."""
        ...

    @property
    def ws_url(self) -> str:
        """The address of the websocket; LauncherError before start."""
        ...

    def start(self, programs: Programs) -> None:
        """Start the chain with these programs and return once it answers.

        Raises LauncherError, PortInUseError or ProgramImageError; then nothing is left running.
        """
        ...

    def airdrop(self, address: Pubkey, lamports: int) -> str:
        """Pay from the faucet, wait until confirmed, return the signature."""
        ...

    def wait(self) -> NoReturn:
        """Wait until the chain ends by itself, however slowly it answers; raise ChainEndedError."""
        ...

    def stop(self) -> None:
        """End the chain and remove its files; may be called twice."""
        ...


class Addresses(NamedTuple):
    """The addresses at which a started chain listens."""

    rpc_url: str
    ws_url: str


class ChildLauncher(ABC):
    """Implements `Launcher` for a chain that is one child process.

    Subclasses give its command line and wait until it answers; `talks` if they read its stdout.
    """

    talks = False

    def __init__(self) -> None:
        self._child: Child | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._addresses = Addresses("", "")

    @property
    def rpc_url(self) -> str:
        """The address of JSON-RPC."""
        self._running()
        return self._addresses.rpc_url

    @property
    def ws_url(self) -> str:
        """The address of the websocket."""
        self._running()
        return self._addresses.ws_url

    @property
    def pid(self) -> int:
        """The id of the child process: of the chain itself, or of a guard around it."""
        return self._running().pid

    def start(self, programs: Programs) -> None:
        """Start the process with these programs and return once it answers."""
        if self._child is not None:
            raise StartFailedError("a launcher that is not running", "it runs", "Call stop() first")
        self._folder = tempfile.TemporaryDirectory(prefix="troth-localnet-")
        try:
            folder = Path(self._folder.name)
            command = self._command(programs, folder)
            self._child = Child(command, folder / "log", pipe_stdout=self.talks)
            self._addresses = self._await_ready(self._child)
        except BaseException:
            self.stop()
            raise

    def airdrop(self, address: Pubkey, lamports: int) -> str:
        """Pay from the faucet, wait until confirmed, return the signature."""
        return airdrop_confirmed(self.rpc_url, address, lamports)

    def wait(self) -> NoReturn:
        """Wait for the end of the process: only that is the end of the chain.

        A chain that does not answer may be stopped, or on a machine that slept.
        """
        child = self._running()
        code = child.wait()
        raise ChainEndedError(
            "the local chain to run until it is stopped",
            f"it ended with code {code}; its last words: {child.log_tail()[-1_000:] or 'none'}",
            "Start it again; what --ledger keeps is still there",
        )

    def stop(self) -> None:
        """End the process by its pid and remove its folder; may be called twice."""
        if self._child is not None:
            self._child.end()
            self._child = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        """Return the launcher; `start` is up to the caller."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    @abstractmethod
    def _command(self, programs: Programs, folder: Path) -> list[str]:
        """Return the child's command line; `folder` is its own."""

    @abstractmethod
    def _await_ready(self, child: Child) -> Addresses:
        """Return where it listens once it answers; LauncherError if it never will."""

    def _running(self) -> Child:
        if self._child is None:
            raise StartFailedError("a started chain", "one not started", "Call start() first")
        return self._child


def image_path(program_id: Pubkey, image: Image, folder: Path) -> Path:
    """Return a file that holds the image, written to `folder` if it came as bytes."""
    if isinstance(image, bytes):
        path = folder / f"{program_id}.so"
        path.write_bytes(image)
        return path
    read_image(program_id, image)
    return image.resolve()


def read_image(program_id: Pubkey, path: Path) -> bytes:
    """Return the bytes of an image file; ProgramImageError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProgramImageError(
            f"a program image for {program_id} at {path}",
            f"a file that cannot be read ({error.strerror})",
            "Check the path (troth ships coordinator_v0.so; `make program` builds it)",
        ) from error


def request(url: str, method: str, params: list[Json], seconds: float = _REQUEST_SECONDS) -> Json:
    """Call one method of a local node; RequestFailedError if it refuses or does not answer."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        # No proxy from the environment may come between us and loopback. Making a TLS context
        # costs 20 ms, so plain http goes without one.
        is_secure = url.startswith("https:")
        answer = httpx.post(url, json=body, timeout=seconds, trust_env=False, verify=is_secure)
        reply = answer.raise_for_status().json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise _failed(url, method, repr(error)) from error
    if not isinstance(reply, dict) or "result" not in reply:
        raise _failed(url, method, str(reply)[:300])
    result: Json = reply["result"]
    return result


def airdrop_confirmed(url: str, address: Pubkey, lamports: int) -> str:
    """Ask a node for an airdrop and wait until it is confirmed; return the signature."""
    signature = str(request(url, "requestAirdrop", [str(address), lamports]))
    deadline = time.monotonic() + _CONFIRM_SECONDS
    while time.monotonic() < deadline:
        result = request(url, "getSignatureStatuses", [[signature]])
        statuses = result.get("value") if isinstance(result, Mapping) else None
        status = statuses[0] if isinstance(statuses, list) and statuses else None
        if isinstance(status, Mapping) and status.get("err") is not None:
            raise _failed(url, "requestAirdrop", f"it failed on chain: {status['err']}")
        if isinstance(status, Mapping) and status.get("confirmationStatus") != "processed":
            return signature
        time.sleep(_POLL_SECONDS)
    raise _failed(url, "requestAirdrop", f"no confirmation within {_CONFIRM_SECONDS} s")


def _failed(url: str, method: str, found: str) -> RequestFailedError:
    return RequestFailedError(
        f"the local chain at {url} to answer {method}", found, "Check that it still runs"
    )
