"""One copy of the model, moved from round to round by the payloads that the chain included.

Owns: master weights, round, cursor, state root, and the way back over the last few rounds.
Never: fetches anything; the caller passes the closure of a round and its decoded payloads.
Next: `compression/apply.py` for the exact step, `steps/settle.py` for the caller.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

import torch
from torch import Tensor

from troth_attestation.pieces import (
    CHUNK_BYTES,
    PieceList,
    StateName,
    in_order,
    pieces_of,
    pieces_over,
)
from troth_client.compression.apply import update
from troth_client.compression.codec import VerifiedPayload
from troth_client.compression.host import Float32, HostArrays
from troth_client.compression.known_answer import ApplyPath
from troth_client.compression.tiles import TileLayout
from troth_client.state.past_states import Past, PastStates, RewindError
from troth_client.state.records import Closure, OwnRoot
from troth_client.storage.entries import WeightState
from troth_coordinator.rules.assignment import next_cursor
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest, RoundIndex
from troth_coordinator.rules.schedule import constants_of


class Replica:
    """Master weights at the start of `round`; fp32, changed in place and only here.

    `weights` may share storage with the model that trains on them. `past` keeps earlier states for
    rewinding; `hashers` are threads for the state root. `restart_round` is the
    round at which these weights were taken up after a halt; 0 if never, or not known.
    """

    def __init__(
        self,
        config: RunConfig,
        weights: Mapping[str, Tensor],
        path: ApplyPath,
        past: PastStates,
        hashers: Executor | None = None,
    ) -> None:
        self.config = config
        self.weights = dict(weights)
        self.layout = TileLayout.from_shapes({n: tuple(w.shape) for n, w in weights.items()})
        self.round = RoundIndex(0)
        self.cursor = 0
        self.restart_round = RoundIndex(0)
        self.path = path
        self._hashers = hashers
        self._pieces: PieceList | None = None
        self._known_root: OwnRoot | None = None
        self._is_torn = False
        """Whether only some tensors may be of `round`; then the way back to it has not ended."""
        self.past = past

    @property
    def oldest_round(self) -> RoundIndex:
        """The earliest round that `rewind` can go back to."""
        oldest = self.past.oldest
        return self.round if oldest is None else oldest

    def applied(self) -> tuple[Closure, ...]:
        """Return the closures that `rewind` can take back, oldest first."""
        return self.past.closures()

    @property
    def known_root(self) -> OwnRoot | None:
        """The root of the weights if it has been hashed; safe to read from other threads."""
        return self._known_root

    def root(self) -> Digest:
        """State root of the weights on which `round` trains; hashed once per round.

        Like `pieces` and `stored` it first ends a way back that an `apply` could not end, and
        raises the error that still prevents it: RewindError, MemoryError.
        """
        return self.pieces().root

    def pieces(self) -> PieceList:
        """Return the pieces under the root of the weights; hashed once per round."""
        self._mend()
        return self._hashed(self.arrays())

    def pieces_at(self, round_: int) -> PieceList | None:
        """Return the pieces of a round that `rewind` can go back to, if they were hashed."""
        if round_ == self.round:
            return self._pieces
        return self.past.pieces_at(round_)

    def arrays(self) -> Mapping[str, Float32]:
        """Return the weights as numpy arrays; on a CPU they share the storage.

        From a device each is copied when it is first asked for: ask before the weights change.
        """
        return HostArrays(self.weights)

    def stored(self) -> WeightState:
        """Return the weights with their root, as they are stored; copied from a device once."""
        self._mend()
        arrays = self.arrays()
        return WeightState(self.round, self.cursor, self._hashed(arrays).root, arrays)

    def apply(self, closure: Closure, payloads: Sequence[VerifiedPayload | None]) -> None:
        """Move from `closure.round` to the next round (section 5.5).

        One entry per included payload; None for one that fails section 5.4 and adds nothing. If no
        payload is included, the weights stay unchanged; round and cursor always advance. After an
        error, memory that does not suffice say, all is as it was before. Where the weights before
        lie on disk and cannot be read either, they are read before they are next asked for.
        """
        self._mend()
        self._expect(closure.round)
        self.past.add(Past(self.round, self.cursor, self._pieces, closure), self.weights)
        constants = constants_of(self.config.schedule, self.round)
        self._know(None)
        self._is_torn = True
        try:
            update(self.weights, payloads, self.layout, (constants.a, constants.b), self.path)
        except BaseException:
            self._mend()  # some tensors may have taken the step already
            raise
        self._is_torn = False
        self.past.tidy()
        self.round = RoundIndex(self.round + 1)
        per_payload = self.config.train.sequences_per_payload
        self.cursor = next_cursor(self.cursor, closure.num_trainers, per_payload)

    def rewind(self, round_: RoundIndex) -> None:
        """Go back to the start of an earlier round; slow, for a thread.

        RewindError when it is not kept; nothing has changed then.
        """
        if round_ < self.round:
            self._go_back(round_)
        self._mend()

    def restore(
        self,
        weights: Mapping[str, Tensor],
        round_: RoundIndex,
        cursor: int,
        pieces: PieceList | None = None,
    ) -> None:
        """Replace the state by one loaded from disk or a checkpoint; forgets the past.

        `pieces` are those of the weights, where the caller has hashed them already.
        """
        self._know(None)
        self._is_torn = True
        self._load(weights)
        self._is_torn = False
        self.round, self.cursor = round_, cursor
        self._know(pieces)
        self.restart_round = RoundIndex(0)
        self.past.clear()

    def move_to(self, round_: RoundIndex, cursor: int) -> None:
        """Declare the weights to be those of another round: the way out of Halted (section 3)."""
        self._mend()
        self._know(None)
        self.round, self.cursor = round_, cursor
        self.restart_round = round_
        self.past.clear()

    def _mend(self) -> None:
        if self._is_torn:
            self._go_back(self.round)

    def _go_back(self, round_: RoundIndex) -> None:
        """Load the weights of a round that is kept; forget it only when all of them are there."""
        past, weights = self.past.find(round_)
        self.past.forget_from(RoundIndex(round_ + 1))
        self.round, self.cursor = past.round, past.cursor
        self._know(None)
        self._is_torn = True
        self._load(weights)
        self._is_torn = False
        self.past.forget_from(round_)
        self._know(past.pieces)

    def _hashed(self, arrays: Mapping[str, Float32]) -> PieceList:
        pieces = self._pieces
        if pieces is None:
            state = StateName(self.round, self.cursor, self.config.config_hash())
            pieces = self._hashed_in_place(state) or pieces_of(arrays, state, self._hashers)
            self._know(pieces)
        return pieces

    def _hashed_in_place(self, state: StateName) -> PieceList | None:
        """Return the pieces of weights that their device hashes; None where the host has to."""
        tensors = [self.weights[name] for name in in_order(self.weights)]
        hashes = self.path.leaf_hashes(tensors, CHUNK_BYTES)
        return None if hashes is None else pieces_over(hashes, self.layout.shapes, state)

    def _know(self, pieces: PieceList | None) -> None:
        """Take these as the pieces of the weights; None where they are not hashed yet."""
        self._pieces = pieces
        self._known_root = None if pieces is None else OwnRoot(self.round, pieces.root)

    def _expect(self, round_: RoundIndex) -> None:
        if round_ != self.round:
            raise RewindError(
                f"the closure of round {self.round}",
                f"that of round {round_}",
                "Apply rounds in order, or rewind first.",
            )

    def _load(self, weights: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, w in self.weights.items():
                w.copy_(weights[name])
