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

import torch
from torch import Tensor

from troth_attestation import merkle
from troth_attestation.pieces import Float32
from troth_attestation.selection import TopK
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_BYTES
from troth_attestation.state import residual_root_of_parts, zero_residual_root
from troth_client.compression.host import HostCopy, host_array
from troth_client.compression.kernels.base import Encoded
from troth_client.compression.known_answer import ApplyPath
from troth_client.compression.residual import Carried, Moved, Residual
from troth_client.compression.topk import top_k
from troth_client.storage.entries import ResidualEntry
from troth_coordinator.rules.ids import NONE, Digest, RoundIndex


@dataclass(frozen=True, slots=True)
class Momentum:
    """M as of the last included round `previous`, with the root of its u.

    M is zero, and `carried` None, together with `previous` NONE and the root of zero tiles.
    """

    carried: Carried | None
    previous: RoundIndex
    root: Digest


@dataclass(frozen=True, slots=True)
class Proposal:
    """u of a round that is not settled yet, its top k, the sent part of that, and its root.

    `copied` is u as it left its device; None where it was read from disk.
    """

    round: RoundIndex
    u: Tensor
    top: TopK
    sent: Signs
    root: Digest
    copied: HostCopy | None = None

    def on_host(self) -> Float32:
        """Return u on the host; copies one that was replaced since, or read from disk."""
        copied = self.copied
        return host_array(self.u) if copied is None or copied.of is not self.u else copied.array


@dataclass(frozen=True, slots=True)
class Undo:
    """How settled rounds can be taken back: the last `keep` of them.

    No M is kept for that: `load` reads u of a round of ours again, and its top `k` is chosen anew.
    """

    keep: int
    k: int
    load: Callable[[int], ResidualEntry | None]


@dataclass(frozen=True, slots=True)
class _Before:
    """M before a settled round: it is made again from u of round `previous` with this root.

    `included` is the root of our u in the round itself, if that was included.
    """

    round: RoundIndex
    previous: RoundIndex
    root: Digest
    included: bytes | None = None


class ResidualState:
    """M of one trainer, with the way back over settled rounds.

    M and u stay on the device of `path`; u leaves it once a round, to be stored. An error, memory
    that does not suffice say, leaves all as it was before, so that every step can be repeated.
    """

    def __init__(self, rule: Residual, num_tiles: int, undo: Undo, path: ApplyPath) -> None:
        self._rule = rule
        self._path = path
        self._zero = Momentum(None, RoundIndex(NONE), zero_residual_root(num_tiles))
        self._undo = undo
        self._past: deque[_Before] = deque(maxlen=undo.keep)
        self._settled = -1
        self._named: _Before | None = None  # a u on disk that the chain may name
        self.momentum = self._zero
        self.proposal: Proposal | None = None

    @property
    def zero_root(self) -> Digest:
        """The residual root of zero tiles."""
        return self._zero.root

    def begin(self, previous_included: RoundIndex) -> Momentum:
        """Return M for a round whose header may carry on `previous_included` and nothing else.

        A proposal that a stopped process left behind is settled first, if it was included after
        all. If the chain names another round than M does, u of that round is looked for on disk, as
        after a round that was missed or taken back. Where there is none, M is declared zero, as any
        header may do: in a new residual period too. May read a u: for a thread.
        """
        if self.proposal is not None and self.proposal.round == previous_included:
            self.momentum = self._adopted(self.proposal)
            self._settled = max(self._settled, previous_included)
        self.proposal = None
        if self.momentum.previous != previous_included:
            named = self._named
            if named is None or named.previous != previous_included:
                self.momentum = self._zero
            else:
                self.momentum = self._restored(named)
        self._named = None
        return self.momentum

    def offer(self, round_: RoundIndex, encoded: Encoded) -> Proposal:
        """Return the proposal of a gradient that was encoded on the momentum."""
        copied = HostCopy(encoded.u)
        root = self._root_of(copied)
        sent = encoded.top.signs(encoded.is_sent)
        self.proposal = Proposal(round_, encoded.u, encoded.top, sent, root, copied)
        return self.proposal

    def settle(self, round_: RoundIndex, included: bytes | None) -> None:
        """Make u of a round the momentum if it was included, under the residual root `included`.

        None: our payload was not included, and M stays. If the chain included another u of ours, it
        is looked for on disk in `begin`.

        A round that was settled otherwise is taken back first: our payload was struck meanwhile.
        That reads a u: for a thread.
        """
        if round_ < self._settled or self._is_ahead_of(round_):
            return
        if round_ == self._settled:
            if not self._is_otherwise(round_, included):
                return
            self.rewind(round_)
        momentum, named = self._after(round_, included)
        before = self.momentum
        self._past.append(_Before(round_, before.previous, before.root, included))
        self._settled, self.momentum, self.proposal = round_, momentum, None
        self._named = named

    def origins(self) -> set[RoundIndex]:
        """Return the rounds that M may be carried on from, now or after a rewind."""
        every = {self.momentum.previous, *(before.previous for before in self._past)}
        if self._named is not None:
            every.add(self._named.previous)
        return every - {RoundIndex(NONE)}

    def rewind(self, round_: RoundIndex) -> None:
        """Undo the changes of `round_` and later rounds to M; reads a file: for a thread.

        Where that is lost, M is declared zero.
        """
        first = next((before for before in self._past if before.round >= round_), None)
        if first is not None:
            self.momentum = self._restored(first)
        while self._past and self._past[-1].round >= round_:
            self._past.pop()
        self._settled = min(self._settled, round_ - 1)
        self.proposal = self._named = None

    def reset(self) -> None:
        """Declare M zero: after a join, a halt, a loss."""
        self._past.clear()
        self.proposal = self._named = None
        self.momentum = self._zero

    def entry(self) -> ResidualEntry:
        """Return the entry that is stored beside the submission of the proposed round."""
        if self.proposal is None:
            raise ValueError("nothing is proposed: call offer() first")
        return ResidualEntry(
            round=self.proposal.round,
            previous_round=self.momentum.previous,
            root_before=self.momentum.root,
            root_after=self.proposal.root,
            u=self.proposal.on_host(),
        )

    def resume(self, entry: ResidualEntry, k: int) -> None:
        """Restore the residual of a stopped process: the entry's round is proposed.

        M is made again from the u before; where that is lost, it is declared zero.
        """
        round_, previous = RoundIndex(entry.round), RoundIndex(entry.previous_round)
        self.momentum = self._restored(_Before(round_, previous, Digest(entry.root_before)))
        moved = Moved(self._here(entry.u), self._rule.decayed(self.momentum.carried))
        top = top_k(moved.u, k)
        sent = top.signs(self._rule.is_sent(moved))
        self.proposal = Proposal(round_, moved.u, top, sent, Digest(entry.root_after))

    def _root_of(self, u: HostCopy) -> Digest:
        """Return the root of u, by its device where that hashes, and copy it."""
        hashes = self._path.leaf_hashes([u.of], TILE_BYTES)
        if hashes is None:
            return residual_root_of_parts(u.parts())
        u.fill()
        return merkle.root_of(hashes)

    def _here(self, stored: Float32) -> Tensor:
        return torch.from_numpy(stored.copy()).to(self._path.device)

    def _is_ahead_of(self, round_: RoundIndex) -> bool:
        """Whether M is that of a later round already: weights are replayed after a restart."""
        return self.proposal is not None and self.proposal.round > round_

    def _is_otherwise(self, round_: RoundIndex, included: bytes | None) -> bool:
        """Whether a settled round ended in another way than now."""
        last = self._past[-1] if self._past else None
        return last is not None and last.round == round_ and last.included != included

    def _after(self, round_: RoundIndex, included: bytes | None) -> tuple[Momentum, _Before | None]:
        """Return M after a round, and a u that the chain may name in its place."""
        proposal = self.proposal
        if included is None:
            if proposal is not None and proposal.round < round_:
                # A stopped process had settled that round, and has missed this one.
                return self.momentum, _Before(round_, proposal.round, proposal.root)
            return self.momentum, self._named
        if proposal is None or (proposal.round, proposal.root) != (round_, included):
            return self._zero, _Before(round_, round_, Digest(included))
        return self._adopted(proposal), None

    def _restored(self, before: _Before) -> Momentum:
        if before.previous == NONE:
            return self._zero
        if (before.previous, before.root) == (self.momentum.previous, self.momentum.root):
            return self.momentum
        entry = self._undo.load(before.previous)
        if entry is None or entry.root_after != before.root:
            return self._zero
        u = self._here(entry.u)
        return Momentum(Carried(u, top_k(u, self._undo.k).indices), before.previous, before.root)

    def _adopted(self, proposal: Proposal) -> Momentum:
        carried = Carried(proposal.u.to(self._path.device), proposal.top.indices)
        return Momentum(carried, proposal.round, proposal.root)
