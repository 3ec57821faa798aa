"""The ports of an auditor: bytes, weights, and further checks.

Owns: the interfaces. Never: a torch tensor, a socket, or a path.
Next: `auditor.py`; `troth_client` has the weights and the sources of bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from troth_attestation.measure import Own
from troth_attestation.signs import Signs
from troth_audit.replay.findings import Finding
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.view import RunView

Decoded = TypeVar("Decoded")
"""A payload as the weights take it; only they know what is in it."""
Read_contra = TypeVar("Read_contra", contravariant=True)
"""The same, where it is only read."""


@dataclass(frozen=True, slots=True)
class Terms:
    """All that never changes in a run, beside what its events tell.

    `num_tiles` and `payload_bytes` follow from the model and k, `num_sequences` is in the manifest.
    """

    program: bytes
    run: bytes
    genesis_hash: bytes
    config: RunConfig
    num_sequences: int
    num_tiles: int
    payload_bytes: int


class Sources(Protocol):
    """Bytes by their address, from archives or members. Threads call it."""

    def get(self, kind: str, key: bytes, most_bytes: int) -> bytes | None:
        """Return bytes that have this address, of at most this length; None where nobody has them.

        Of a header without its rightful signature in any source, one with a false one is returned.
        """

    def instead(self, kind: str, key: bytes, most_bytes: int) -> str:
        """Return what a source has under this address instead; "" where none has anything."""
        ...


class Weights(Protocol[Decoded]):
    """The weights of a run at the start of `round`, changed in place."""

    @property
    def round(self) -> int:
        """The round that trains on them."""
        ...

    @property
    def cursor(self) -> int:
        """The cursor before that round."""
        ...

    def decode(self, payload: bytes, root: bytes) -> Decoded | str:
        """Return a payload with this root in canonical form, else what is wrong. In threads."""
        ...

    def apply(self, num_trainers: int, payloads: Sequence[Decoded | None]) -> None:
        """Go to the next round; None stands for a payload that is malformed and adds nothing."""

    def root(self) -> bytes:
        """Return the state root."""
        ...

    def remember(self) -> None:
        """Keep a copy of this state in memory, in place of the one kept before.

        The program stored its root just now.
        """

    def recall(self, round_: int, cursor: int, root: bytes) -> bool:
        """Take the kept copy for the weights of this round; tell whether it is that of the root.

        The root is that of the state which was kept, not of the round.
        """
        ...

    def take_up(self, round_: int, cursor: int, root: bytes) -> bool:
        """Take the state with this root from elsewhere; tell whether somebody has it."""
        ...


class Gradients(Protocol[Read_contra]):
    """Gradients on the weights that the replay has come to."""

    def own(self, ids: Sequence[int]) -> Own | str:
        """Return D(g) of these sequences as a judge has it, else what it lacks."""
        ...

    def signs(self, payload: Read_contra) -> Signs:
        """Return the votes in a payload."""
        ...


class Checker(Protocol):
    """One group of rules. `check` is called before the event is told to `Told`."""

    def check(self, event: Event) -> Iterator[Finding]:
        """Yield what does not fit in the next event of the run."""
        ...


@runtime_checkable
class Ending(Protocol):
    """A checker that has something to say at the end of a ledger."""

    def end(self, run: RunView | None) -> Iterator[Finding]:
        """Yield what is left open; `run` is the account that the ledger leads to, if known."""
        ...


@runtime_checkable
class Counting(Protocol):
    """A checker that counts what it checked, by name."""

    def counts(self) -> Mapping[str, int]:
        """Return how many of each were checked so far."""
        ...
