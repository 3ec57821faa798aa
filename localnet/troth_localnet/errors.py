"""Errors of a local chain, as one exception tree.

    LocalnetError
    ├── OptionError               an option out of its range (also a ValueError)
    ├── BindRefusedError          an address other machines could reach
    ├── PortInUseError            the RPC port or the websocket port beside it is taken
    ├── ProgramImageError         an image that this chain cannot run
    ├── InvalidTransactionError   bytes that are no transaction
    ├── RefusedTransactionError   preflight said no: nothing changed
    ├── AirdropRefusedError       the faucet cannot pay that
    ├── KeptChainError            a kept chain that cannot be opened
    │   ├── ChainInUseError
    │   ├── ChainMismatchError    of another version, program or length of a slot
    │   └── ChainDamagedError
    ├── LauncherError             a chain process that did not do what it should
    │   ├── ValidatorMissingError
    │   ├── StartFailedError
    │   ├── ChainEndedError
    │   └── RequestFailedError
    └── FleetError                a fleet used out of order

Owns: the classes. Each message names the expected value, the found value and the next step.
Never: retries or logs. Next: `launcher.py`, `svm.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth_coordinator.errors import TrothError

if TYPE_CHECKING:
    from pathlib import Path

    from troth_localnet.execution import Outcome


class LocalnetError(TrothError):
    """Root of the tree."""


class OptionError(LocalnetError, ValueError):
    """An option of a chain or a server is out of its range."""


class BindRefusedError(LocalnetError):
    """The embedded chain hands out free lamports: it listens on loopback only."""

    def __init__(self, host: str) -> None:
        super().__init__(
            "a loopback address to listen on (127.0.0.1, ::1 or localhost)",
            repr(host),
            "The embedded chain is for one machine; use a tunnel to reach it from another",
        )
        self.host = host


class PortInUseError(LocalnetError):
    """Another program listens on the port."""

    def __init__(self, host: str, port: int, purpose: str) -> None:
        super().__init__(
            f"{host} port {port} to be free for the {purpose}",
            "another program listening there",
            "End that program (perhaps an earlier `troth localnet up`), or choose another port"
            " with --port (0 lets the system pick; the websocket takes the port after it)",
        )
        self.port = port


class ProgramImageError(LocalnetError):
    """The bytes are not a program image that this chain can run."""


class InvalidTransactionError(LocalnetError):
    """The bytes are not one well-formed signed transaction."""

    def __init__(self, found: str) -> None:
        super().__init__(
            "the bytes of one signed transaction, at most 1232",
            found,
            "Serialise the transaction again and send exactly those bytes",
        )


class RefusedTransactionError(LocalnetError):
    """Preflight refused the transaction: it was not executed and took no fee."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(
            "a transaction that passes preflight",
            f"{outcome.error}",
            "The program logs in `.outcome.logs` say why",
        )
        self.outcome = outcome


class AirdropRefusedError(LocalnetError):
    """The faucet could not pay."""


class KeptChainError(LocalnetError):
    """A kept chain cannot be opened; its file stays as it is."""


class ChainInUseError(KeptChainError):
    """Another process runs this chain."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} to be free", "another process that runs this chain", "End that process first"
        )


class ChainMismatchError(KeptChainError):
    """The chain was begun with something else."""

    def __init__(self, path: Path, what: str, wanted: str, found: str) -> None:
        super().__init__(
            f"a ledger of {what} {wanted} in {path}",
            f"one of {what} {found}",
            "Go on with what began it, or name another folder for a new chain",
        )


class ChainDamagedError(KeptChainError):
    """The file is not what was written."""

    def __init__(self, path: Path, found: str) -> None:
        super().__init__(
            f"a chain that this program has kept, whole, in {path}",
            found,
            "Restore the file from a copy, or name another folder for a new chain",
        )


class LauncherError(LocalnetError):
    """A chain process did not start, answer or end as it should."""


class ValidatorMissingError(LauncherError):
    """There is no solana-test-validator to run."""

    def __init__(self, looked_for: str) -> None:
        super().__init__(
            "an executable solana-test-validator",
            f"none at {looked_for}",
            "Install it (`cargo install agave-validator --bin solana-test-validator`), put it on"
            " PATH or pass its path; the embedded chain needs nothing installed",
        )


class StartFailedError(LauncherError):
    """The process ended or was not ready in time."""


class ChainEndedError(LauncherError):
    """A running chain has ended by itself."""


class RequestFailedError(LauncherError):
    """The running chain refused a request of the launcher, or did not answer."""


class FleetError(LocalnetError):
    """A fleet operation at the wrong time or with an unknown index."""
