"""The residual of one trainer: the u that became momentum, and how to undo that.

Owns: M, its root, its round; the bookkeeping of sections 5.2 and 6 around the rule of
`compression/residual.py`. Never: lets a payload that was not included change M.
Next: `steps/produce.py`, which makes u; `steps/settle.py`, which reports whether it was included.

A round is settled once. The weights of a settled round may be applied again, after a correction of
other payloads or in a replay after a restart. Settling the round again then changes nothing. When
our own inclusion changed, `rewind` comes first.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from troth_attestation.pieces import Float32
from troth_attestation.selection import TopK
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_SIDE
from troth_attestation.state import residual_root_of_parts, zero_residual_root
from troth_client.compression.host import HostCopy, host_array
from troth_client.compression.kernels.base import Encoded
from troth_client.compression.residual import Moved, Residual
from troth_client.compression.topk import top_k
from troth_client.state.past_states import MEMORY_BYTES
from troth_client.storage.entries import ResidualEntry
from troth_coordinator.rules.ids import NONE, Digest, RoundIndex

_PROCESSOR: Final = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Momentum:
    """M, float32 [tiles, 64, 64], as of the last included round `previous`, with the root of its u.

    `previous` is NONE together with the root of zero tiles.
    """

    matrix: Tensor
    previous: RoundIndex
    root: Digest


@dataclass(frozen=True, slots=True)
class Proposal:
    """u of a round that is not settled yet, its top k, the sent part of that, and its root."""

    round: RoundIndex
    u: Tensor
    top: TopK
    sent: Signs
    root: Digest


@dataclass(frozen=True, slots=True)
class Undo:
    """How settled rounds can be taken back: the last `keep` of them.

    Their M take up to `memory_bytes`. Above that, `load` reads u of a round of ours again, and its
    top `k` makes M.
    """

    keep: int
    k: int
    load: Callable[[int], ResidualEntry | None]
    memory_bytes: int = MEMORY_BYTES


@dataclass(frozen=True, slots=True)
class _Before:
    """M before a settled round: `momentum` is None where it can be made again from its u."""

    round: RoundIndex
    previous: RoundIndex
    root: Digest
    momentum: Momentum | None


class ResidualState:
    """M of one trainer, with the way back over settled rounds.

    M and u stay on `device`; u leaves it once a round, to be hashed and stored.
    """

    def __init__(
        self, rule: Residual, num_tiles: int, undo: Undo, device: torch.device = _PROCESSOR
    ) -> None:
        self._rule = rule
        self._device = device
        self._copied: HostCopy | None = None
        # Zero is stored, and never computed with: see `carried`. NumPy's zeros take no memory
        # before somebody writes into them; PyTorch's do.
        zero = torch.from_numpy(np.zeros((num_tiles, TILE_SIDE, TILE_SIDE), np.float32))
        self._zero = Momentum(zero, RoundIndex(NONE), zero_residual_root(num_tiles))
        self._undo = undo
        self._past: deque[_Before] = deque(maxlen=undo.keep)
        self._settled = -1
        self.momentum = self._zero
        self.proposal: Proposal | None = None

    def carried(self) -> Tensor | None:
        """Return M; None where it is zero."""
        return None if self.momentum is self._zero else self.momentum.matrix

    @property
    def zero_root(self) -> Digest:
        """The residual root of zero tiles."""
        return self._zero.root

    def begin(self, previous_included: RoundIndex) -> Momentum:
        """Return M for a round whose header may carry on `previous_included` and nothing else.

        A proposal that a stopped process left behind is settled first, if it was included after
        all. If the chain names another round than M does, M is declared zero, as any header may do.
        This happens in a new residual period, after a crash that lost M, or after a correction that
        removed a round.
        """
        if self.proposal is not None and self.proposal.round == previous_included:
            self._adopt(self.proposal)
            self._settled = max(self._settled, previous_included)
        self.proposal = None
        if self.momentum.previous != previous_included:
            self.momentum = self._zero
        return self.momentum

    def propose(self, round_: RoundIndex, coefficients: Tensor, k: int) -> Proposal:
        """Return u = beta * M + D(g) of a round with its canonical top k.

        `coefficients` is D(g), float32 [tiles, 64, 64]. Raises NonFiniteError.
        """
        moved = self._rule.accumulate(self.carried(), coefficients.to(self._device))
        self.proposal = self._proposed(round_, moved, k, self._root_of(moved.u))
        return self.proposal

    def offer(self, round_: RoundIndex, encoded: Encoded) -> Proposal:
        """Return the proposal of a gradient that was encoded on what `carried` returns."""
        root = self._root_of(encoded.u)
        sent = encoded.top.signs(encoded.is_sent)
        self.proposal = Proposal(round_, encoded.u, encoded.top, sent, root)
        return self.proposal

    def sign(self, round_: RoundIndex, u: Tensor, k: int) -> Proposal:
        """Return the proposal that has this u, float32 [tiles, 64, 64], on the present momentum."""
        moved = Moved(u.to(self._device), self._rule.decayed(self.carried()))
        return self._proposed(round_, moved, k, self._root_of(moved.u))

    def settle(self, round_: RoundIndex, included: bytes | None, *, is_free: bool = False) -> None:
        """Make u of a round the momentum if it was included, under the residual root `included`.

        `is_free`: nobody else holds the memory of u, so M may take its place.

        None: our payload was not included, and M stays. If the chain included another u of ours,
        which this machine has lost, M is declared zero.
        """
        if round_ <= self._settled or self._is_ahead_of(round_):
            return
        self._past.append(self._before(round_))
        self._settled = round_
        self._copied = None
        proposal, self.proposal = self.proposal, None
        if included is None:
            return
        if proposal is None or (proposal.round, proposal.root) != (round_, included):
            self.momentum = self._zero
        else:
            self._adopt(proposal, in_place=is_free)

    def origins(self) -> set[RoundIndex]:
        """Return the rounds that M may be carried on from, now or after a rewind."""
        every = {self.momentum.previous, *(before.previous for before in self._past)}
        return every - {RoundIndex(NONE)}

    def rewind(self, round_: RoundIndex) -> None:
        """Undo the changes of `round_` and later rounds to M; may read a file.

        Where that is lost, M is declared zero.
        """
        self.proposal = None
        self._settled = min(self._settled, round_ - 1)
        first: _Before | None = None
        while self._past and self._past[-1].round >= round_:
            first = self._past.pop()
        if first is not None:
            self.momentum = self._restored(first)

    def reset(self) -> None:
        """Declare M zero: after a join, a halt, a loss."""
        self._past.clear()
        self.proposal = None
        self.momentum = self._zero

    def entry(self) -> ResidualEntry:
        """Return the entry that is stored beside the submission of the proposed round."""
        if self.proposal is None:
            raise ValueError("nothing is proposed: call propose() first")
        return ResidualEntry(
            round=self.proposal.round,
            previous_round=self.momentum.previous,
            root_before=self.momentum.root,
            root_after=self.proposal.root,
            u=self._on_host(self.proposal.u),
        )

    def resume(self, entry: ResidualEntry, k: int) -> None:
        """Restore the residual of a stopped process: the entry's round is proposed.

        M is made again from the u before; where that is lost, it is declared zero.
        """
        previous, root = RoundIndex(entry.previous_round), Digest(entry.root_before)
        before = _Before(RoundIndex(entry.round), previous, root, None)
        self.momentum = self._zero if previous == NONE else self._restored(before)
        moved = Moved(self._here(entry.u), self._rule.decayed(self.carried()))
        root = Digest(entry.root_after)
        self.proposal = self._proposed(RoundIndex(entry.round), moved, k, root)

    def _here(self, stored: Float32) -> Tensor:
        return torch.from_numpy(stored.copy()).to(self._device)

    def _root_of(self, u: Tensor) -> Digest:
        self._copied = HostCopy(u)
        return residual_root_of_parts(self._copied.parts())

    def _on_host(self, u: Tensor) -> Float32:
        """Return u as it was copied for its root, or a copy of a u that was not hashed here."""
        copied = self._copied
        return host_array(u) if copied is None or copied.of is not u else copied.array

    def _proposed(self, round_: RoundIndex, moved: Moved, k: int, root: Digest) -> Proposal:
        top = top_k(moved.u, k)
        sent = top.signs(self._rule.is_sent(moved))
        return Proposal(round_, moved.u, top, sent, root)

    def _is_ahead_of(self, round_: RoundIndex) -> bool:
        """Whether M is that of a later round already: weights are replayed after a restart."""
        return self.proposal is not None and self.proposal.round > round_

    def _before(self, round_: RoundIndex) -> _Before:
        """Return the present M as what a rewind of `round_` gives back."""
        held = {id(m): m.matrix.nbytes for b in self._past if (m := b.momentum) is not None}
        held[id(self.momentum)] = self.momentum.matrix.nbytes
        held.pop(id(self._zero), None)
        stays = sum(held.values()) <= self._undo.memory_bytes or self.momentum is self._zero
        momentum = self.momentum if stays else None
        return _Before(round_, self.momentum.previous, self.momentum.root, momentum)

    def _restored(self, before: _Before) -> Momentum:
        if before.momentum is not None:
            return before.momentum
        entry = self._undo.load(before.previous)
        if entry is None or entry.root_after != before.root:
            return self._zero
        u = self._here(entry.u)
        matrix = self._rule.after_included(u, top_k(u, self._undo.k), in_place=True)
        return Momentum(matrix, before.previous, before.root)

    def _adopt(self, proposal: Proposal, *, in_place: bool = False) -> None:
        matrix = self._rule.after_included(
            proposal.u.to(self._device), proposal.top, in_place=in_place
        )
        self.momentum = Momentum(matrix, proposal.round, proposal.root)
