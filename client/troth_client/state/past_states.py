"""The states before the last rounds, for the way back: in memory up to a limit, else on disk.

Owns: which of them are in memory. Never: writes a file: `steps/settle.py` saves the weights of
every round, and a state that lies there whole needs no copy here.
Next: `replica.py`, which goes back; `storage/store.py` for the files.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from troth_attestation.pieces import PieceList
from troth_client.errors import ClientError
from troth_client.state.records import Closure
from troth_client.storage.entries import WeightState
from troth_coordinator.rules.ids import RoundIndex

MEMORY_BYTES = 256 * 2**20


class RewindError(ClientError):
    """The state of an earlier round is asked for and no longer kept."""


class SavedWeights(Protocol):
    """Where the weights of past rounds lie; `storage.Store` is the implementation."""

    def load_weights(self, round_: int) -> WeightState | None:
        """Return w_r if it is there, whole."""
        ...

    def holds_weights(self, round_: int, root: bytes) -> bool:
        """Tell whether w_r with this state root seems to be there."""
        ...


@dataclass(slots=True)
class Past:
    """The state before a round was applied, and what was applied to it.

    `weights` is None where they are on disk only.
    """

    round: RoundIndex
    cursor: int
    pieces: PieceList | None
    closure: Closure
    weights: Mapping[str, Tensor] | None = None


class PastStates:
    """The last `keep` states. Copies of weights take up to `memory_bytes` where a disk has them.

    A copy is on the device of its weights. Without a disk, or where it is full, the newest state is
    copied in any case, and older ones are forgotten above the limit.
    """

    def __init__(
        self, keep: int, saved: SavedWeights | None = None, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._saved = saved
        self._memory_bytes = memory_bytes
        self._keep = keep
        self._past: deque[Past] = deque()

    @property
    def memory_bytes(self) -> int:
        """Bytes of weights that are held in memory now."""
        return sum(_held(past) for past in self._past)

    @property
    def oldest(self) -> RoundIndex | None:
        """The earliest round that is kept."""
        return self._past[0].round if self._past else None

    def closures(self) -> tuple[Closure, ...]:
        """Return what was applied, oldest first."""
        return tuple(past.closure for past in self._past)

    def pieces_at(self, round_: int) -> PieceList | None:
        """Return the pieces of a kept round, if they were hashed."""
        return next((past.pieces for past in self._past if past.round == round_), None)

    def add(self, past: Past, weights: Mapping[str, Tensor]) -> None:
        """Keep a state before its weights change; `tidy` follows when they have.

        Nothing is forgotten before, so that a step which fails may be taken back whole.
        """
        num_leaving = max(0, len(self._past) + 1 - self._keep)
        free = self._memory_bytes - sum(map(_held, list(self._past)[num_leaving:]))
        if _size(weights) <= free or not self._is_saved(past):
            past.weights = {name: w.detach().clone() for name, w in weights.items()}
        self._past.append(past)

    def tidy(self) -> None:
        """Forget the states before the last `keep`, and the copies that are above the limit."""
        while len(self._past) > self._keep:
            self._past.popleft()
        self._shrink()

    def find(self, round_: RoundIndex) -> tuple[Past, Mapping[str, Tensor]]:
        """Return the state of a round with its weights.

        Reads them from disk where they are there only: slow, for a thread. Raises RewindError.
        """
        past = next((one for one in self._past if one.round == round_), None)
        weights = None if past is None else self._weights_of(past)
        if past is None or weights is None:
            kept = [int(one.round) for one in self._past]
            raise RewindError(
                f"the state of round {round_} to be kept",
                f"rounds {kept}" if past is None else "no file of it that is whole",
                "Start again from a checkpoint at or before that round.",
            )
        return past, weights

    def forget_from(self, round_: RoundIndex) -> None:
        """Forget the states from a round on."""
        while self._past and self._past[-1].round >= round_:
            self._past.pop()

    def clear(self) -> None:
        """Forget all of them."""
        self._past.clear()

    def _shrink(self) -> None:
        """Leave the oldest copies to the disk until the rest fits; the newest one stays."""
        for past in list(self._past)[:-1]:
            if self.memory_bytes <= self._memory_bytes:
                return
            if past.weights is None:
                continue
            if self._is_saved(past):
                past.weights = None
                continue
            # Nothing leads back over a state that is nowhere.
            while self._past.popleft() is not past:
                pass

    def _is_saved(self, past: Past) -> bool:
        root = None if past.pieces is None else past.pieces.root
        return (
            self._saved is not None
            and root is not None
            and self._saved.holds_weights(past.round, root)
        )

    def _weights_of(self, past: Past) -> Mapping[str, Tensor] | None:
        if past.weights is not None:
            return past.weights
        state = None if self._saved is None else self._saved.load_weights(past.round)
        if state is None or past.pieces is None or state.state_root != past.pieces.root:
            return None
        return {name: torch.tensor(array) for name, array in state.tensors.items()}


def _held(past: Past) -> int:
    return 0 if past.weights is None else _size(past.weights)


def _size(weights: Mapping[str, Tensor]) -> int:
    return sum(w.nbytes for w in weights.values())
