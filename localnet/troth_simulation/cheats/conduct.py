"""What a cheat computes behind its doors, in place of what it was asked for.

Owns: when it begins, gradients that were not computed, residuals and openings that were forged;
all hashes are made anew, so that nothing but the cheat is wrong.
Never: decides what a kind of cheat does; `troth_simulation/cheats` has the catalogue.
Next: `cheats.py`, which puts it behind a participant's clock.
"""

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from troth_attestation import openings
from troth_attestation.openings import Residual, Sampled
from troth_attestation.state import residual_root
from troth_client.compression import codec
from troth_client.compression.topk import select
from troth_client.model.device import Device
from troth_client.model.llama import Llama
from troth_client.model.weights import trainable_parameters
from troth_client.participant.peer import Peer
from troth_client.state.errors import ResidualLostError
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.records import RoundPlan
from troth_client.state.residual_archive import ResidualArchive
from troth_client.state.residual_state import Proposal
from troth_client.steps import produce
from troth_client.train.step import Gradient, gradient
from troth_coordinator.rules.ids import Digest
from troth_simulation.cheats.cheat import Cheat, Hidden
from troth_simulation.cheats.signed import same_openings, same_residual
from troth_simulation.cheats.work import Batch

COPIED_SIZE = 0.01
"""The size of every value of a copied u: only places and signs of a payload are public."""


class Conduct:
    """Whether somebody cheats now: not before enough of its payloads were included."""

    def __init__(self, cheat: Cheat, tell: Callable[..., None]) -> None:
        self.cheat = cheat
        self.num_included = 0
        self.hidden_roots: set[Digest] = set()
        self._tell = tell
        self._first: int | None = None

    def begin(self) -> bool:
        """Tell whether the payload that is made now cheats."""
        return self.num_included >= self.cheat.honest_rounds

    def has_cheated(self, round_: int) -> bool:
        """Tell whether the payload of a round, which was made before, is not an honest one."""
        return self._first is not None and round_ >= self._first

    def note(self, round_: int) -> bool:
        """Take down that a payload is made; tell whether it is the first that cheats."""
        is_first = self._first is None and self.begin()
        if is_first:
            self._first = round_
            self._tell("cheating", round=round_, cheat=self.cheat.name, story=self.cheat.story)
        return is_first

    def is_hiding(self, what: Hidden, round_: int) -> bool:
        """Tell whether that, of a round, is kept from everybody."""
        return self.cheat.hides is what and self.has_cheated(round_)


class Idler:
    """Somebody who signs for other gradients than those it was assigned."""

    def __init__(self, conduct: Conduct) -> None:
        self._conduct = conduct
        self._last_loss = 0
        self._past: deque[Llama] = deque(maxlen=conduct.cheat.stale_rounds + 1)

    def gradient(
        self, model: Llama, batch: Batch, microbatch: int, clip_micro: int, device: Device
    ) -> Gradient:
        """Return what is sent in place of the gradient that `train.step` describes."""
        cheat = self._conduct.cheat
        if cheat.stale_rounds:
            self._past.append(copy.deepcopy(model))
        if not self._conduct.begin():
            found = gradient(model, batch, microbatch, clip_micro, device)
            self._last_loss = found.mean_loss_micro
            return found
        if not cheat.computes:
            parameters = trainable_parameters(model).items()
            zeros = {name: torch.zeros_like(tensor) for name, tensor in parameters}
            return Gradient(zeros, self._last_loss, 0.0)
        used = self._past[0] if cheat.stale_rounds else model
        found = gradient(used, cheat.batch(batch), microbatch, clip_micro, device)
        tensors = {name: tensor.cpu().numpy() for name, tensor in found.tensors.items()}
        sent = cheat.gradient(tensors)
        changed = {name: torch.from_numpy(sent[name]).to(device.torch) for name in sent}
        return replace(found, tensors=changed)


class Forger:
    """Somebody who commits to another u than the rules make, or shows something else."""

    def __init__(self, conduct: Conduct) -> None:
        self._conduct = conduct

    def propose(self, peer: Peer, plan: RoundPlan, found: Gradient) -> Proposal:
        """Return the honest proposal, or one of a forged u.

        What it forged before never spoils its own momentum: NaN there would end its payloads.
        """
        cheat = self._conduct.cheat
        torch.nan_to_num_(peer.residual.momentum.matrix, 0.0, 0.0, 0.0)
        honest = produce._propose(peer, plan, found)
        is_first = self._conduct.note(plan.round)
        is_forger = cheat.residual is not same_residual or cheat.copies
        if not (is_forger and self._conduct.begin()) or (cheat.is_once and not is_first):
            return honest
        u = torch.from_numpy(cheat.residual(honest.u.numpy()))
        if cheat.copies:
            u = _copied(peer, plan, u)
        forged = signed(u, honest, peer.config.demo.k)
        peer.residual.proposal = forged
        return forged

    def make(
        self, desk: OpeningsStore, sampled: Sampled, after: Residual, before: Residual | None
    ) -> Digest:
        """Put something onto the desk in place of the drawn tiles; return its root."""
        root = desk.make(sampled, after, before)
        data, forge = desk.shown(root), self._conduct.cheat.openings
        is_forged = forge is not same_openings and self._conduct.has_cheated(sampled.round)
        if is_forged and data is not None:
            data = forge(data)
            root = openings.openings_root(data)
            desk._keep(sampled, root, data, durable=False)
        if self._conduct.is_hiding(Hidden.OPENINGS, sampled.round):
            self._conduct.hidden_roots.add(root)
        return root

    def pair(self, archive: ResidualArchive, sampled: Sampled) -> tuple[Residual, Residual | None]:
        """Find the two u of a round, unless they were deleted. Raises ResidualLostError."""
        if self._conduct.is_hiding(Hidden.RESIDUALS, sampled.round):
            raise ResidualLostError(f"u of round {sampled.round}", "deleted", "Nothing to show.")
        return archive.pair(sampled)


def signed(u: Tensor, honest: Proposal, k: int) -> Proposal:
    """Return a proposal of another u; where that has no top k, the payload stays the honest one."""
    is_finite = bool(np.isfinite(u.numpy()).all())
    sent = select(u, k) if is_finite else honest.sent
    return Proposal(honest.round, u, sent, residual_root(u.numpy()))


def _copied(peer: Peer, plan: RoundPlan, own: Tensor) -> Tensor:
    """Return a u whose payload is that of somebody else in the round before; ours without one."""
    before = plan.round - 1
    for index in peer.store.peer_indices(before):
        submission = peer.store.load_peer(before, index)
        if submission is not None and index != peer.index:
            copied = codec.decode(submission.payload, len(own), peer.config.demo.k).signs
            present, negative = map(torch.from_numpy, (copied.present, copied.negative))
            values = COPIED_SIZE * (1.0 - 2.0 * negative.float()) * present[:, None]
            flat = torch.zeros(len(own), own[0].numel())
            indices = torch.from_numpy(copied.indices).long()
            return flat.scatter_(1, indices, values).view_as(own)
    return own
