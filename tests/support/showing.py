"""Participants that show states: a store on disk, a state store over it, and a transport.

Owns: making them, what a lying one answers, and counting what travelled.
Never: a socket of its own. Next: `states.py` for the weights, `holders.py` for hostile servers.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from support.states import State
from troth_client.checkpoint.folder import write_weights
from troth_client.checkpoint.state_store import StateStore
from troth_client.storage import Store, StoreIdentity, WeightState
from troth_client.transport.base import BlobKind, ShownFiles
from troth_client.transport.exchange import Exchange


class Unpushed:
    """The part of a state store that takes no push."""

    def has(self, _kind: BlobKind, _key: bytes) -> bool:
        return False

    def welcome(self, _kind: BlobKind, _key: bytes) -> Collection[int]:
        return ()

    def accept(self, kind: BlobKind, _key: bytes, _data: bytes) -> None:
        raise AssertionError(f"a push of {kind} that was not welcome")


@dataclass
class Counted(Unpushed):
    """Counts how often, and how many bytes, a holder answered for pieces."""

    inner: ShownFiles
    served: list[tuple[BlobKind, bytes]] = field(default_factory=list)
    num_bytes: int = 0
    on_piece: Callable[[], None] | None = None

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        found = self.inner.shown(kind, key)
        if found is not None:
            self.served.append((kind, key))
            self.num_bytes += len(found)
            if kind is BlobKind.PIECE and self.on_piece is not None:
                self.on_piece()
        return found

    @property
    def pieces(self) -> list[bytes]:
        """The hashes of the pieces that were asked for and found, in order."""
        return [key for kind, key in self.served if kind is BlobKind.PIECE]


@dataclass
class Spoiled(Unpushed):
    """Answers with the right number of bytes, of which the first is wrong."""

    inner: ShownFiles
    kinds: tuple[BlobKind, ...] = (BlobKind.PIECES, BlobKind.PIECE)

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        found = self.inner.shown(kind, key)
        if found is None or kind not in self.kinds:
            return found
        return bytes([found[0] ^ 1]) + found[1:]


@dataclass
class Short(Unpushed):
    """Answers with a few bytes less or more than it should."""

    inner: ShownFiles
    by: int

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        found = self.inner.shown(kind, key)
        return None if found is None else (found + bytes(64))[: len(found) + self.by]


def fail(error: Exception) -> NoReturn:
    """Report a damaged file that no test here expects."""
    raise error


@contextlib.contextmanager
def state_store(folder: Path) -> Iterator[tuple[Store, StateStore]]:
    """A participant's folder with nothing shown yet."""
    identity = StoreIdentity(b"r" * 32, b"o" * 32, b"c" * 32)
    with Store(folder, identity, fail, durable=False) as store:
        yield store, StateStore(store, fail)


def show_round(store: Store, states: StateStore, state: State) -> None:
    """Keep weights as those of a closed round, and show them."""
    name = state.pieces.state
    store.save_weights(WeightState(name.round, name.cursor, state.root, state.weights))
    states.show_round(state.pieces, keep=3)


def show_checkpoint(states: StateStore, state: State) -> None:
    """Write weights as a checkpoint, and show it."""
    path = states.path(state.pieces.state.round)
    states.show_checkpoint(write_weights(path, state.manifest, state.pieces, state.views))


def shows(transport: Exchange, states: ShownFiles) -> Counted:
    """Let a transport serve states; returns the count of what it serves."""
    counted = Counted(states)
    transport.show_states(counted)
    return counted
