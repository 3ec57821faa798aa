"""A trainer that cheats: dishonest work behind the port of a trainer.

Owns: gradients that were not computed, forged residuals and forged openings. All hashes are made
anew, so that only the cheat itself is wrong.
Never: decides the conduct of a cheat; `catalogue.py` has it.
Next: `conduct.py` for when it begins, `ports.py`, which puts it in a participant.
"""

import copy
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from troth_attestation import openings
from troth_attestation.openings import Sampled
from troth_attestation.state import residual_root
from troth_client.compression import codec
from troth_client.compression.dct import dct2
from troth_client.compression.host import host_array
from troth_client.compression.kernels.base import Encoded
from troth_client.compression.residual import Moved, Residual
from troth_client.compression.topk import top_k
from troth_client.model.llama import Llama
from troth_client.model.weights import trainable_parameters
from troth_client.state.errors import ResidualLostError
from troth_client.state.residual_state import Momentum, Proposal
from troth_client.state.work import EncodedPayload, HonestWork
from troth_client.storage import Store
from troth_client.train.step import Gradient
from troth_coordinator.rules.ids import Digest, RoundIndex
from troth_simulation.cheats.cheat import Hidden
from troth_simulation.cheats.conduct import Conduct
from troth_simulation.cheats.signed import same_openings, same_residual
from troth_simulation.cheats.tiles import same_tiles
from troth_simulation.cheats.work import Batch

COPIED_SIZE = 0.01
"""The size of every value of a copied u: only places and signs of a payload are public."""


@dataclass(slots=True)
class CheatingWork:
    """The work of a trainer that signs for other work than it was assigned.

    `store` holds the payloads of others.
    """

    honest: HonestWork
    conduct: Conduct
    store: Store
    _last_loss: int = 0
    _past: deque[Llama] = field(default_factory=deque)

    def gradient(self, batch: Batch) -> Gradient:
        """Return the tensors that replace the gradient."""
        cheat, model = self.conduct.cheat, self.honest.model
        if cheat.stale_rounds:
            self._past.append(copy.deepcopy(model))
            if len(self._past) > cheat.stale_rounds + 1:
                self._past.popleft()
        if not self.conduct.begin():
            found = self.honest.gradient(batch)
            self._last_loss = found.mean_loss_micro
            return found
        if not cheat.computes:
            parameters = trainable_parameters(model).items()
            zeros = {name: torch.zeros_like(tensor) for name, tensor in parameters}
            return Gradient(zeros, self._last_loss, 0.0)
        used = replace(self.honest, model=self._past[0]) if cheat.stale_rounds else self.honest
        found = used.gradient(cheat.batch(batch))
        tensors = {name: host_array(tensor) for name, tensor in found.tensors.items()}
        sent = cheat.gradient(tensors)
        device = self.honest.device.torch
        changed = {name: torch.from_numpy(sent[name]).to(device) for name in sent}
        return replace(found, tensors=changed)

    def propose(self, round_: RoundIndex, found: Gradient) -> Proposal:
        """Return the honest proposal, or one of a forged u.

        Earlier forgeries never enter its own momentum: a NaN there would end its payloads.
        """
        cheat, residual = self.conduct.cheat, self.honest.residual
        residual.momentum = _finite(residual.momentum)
        honest = self._proposed(round_, found)
        self.conduct.note(round_)
        is_forger = cheat.residual is not same_residual or cheat.copies
        if not (is_forger and self.conduct.begin()):
            return honest
        u = torch.from_numpy(cheat.residual(host_array(honest.u)))
        if cheat.copies:
            u = _copied(self.store, round_, u, self.honest.config.demo.k)
        residual.proposal = forged = signed(u, honest, self.honest)
        return forged

    def _proposed(self, round_: RoundIndex, found: Gradient) -> Proposal:
        """Return the honest proposal, or that of coefficients which the cheat changed."""
        cheat, work = self.conduct.cheat, self.honest
        if cheat.tiles is same_tiles or not self.conduct.begin():
            return work.propose(round_, found)
        coefficients = host_array(dct2(work.layout.to_tiles(found.tensors)))
        changed = torch.from_numpy(cheat.tiles(coefficients)).to(work.path.device)
        encoder = work.path.encoder(work.layout, Residual.of(work.config), work.config.demo.k)
        return work.residual.offer(
            round_, encoder.encode_tiles(changed, work.residual.momentum.carried)
        )

    def encode(self, proposal: Proposal) -> EncodedPayload:
        """Encode as everybody does."""
        return self.honest.encode(proposal)

    def open_tiles(self, sampled: Sampled) -> Digest:
        """Show other bytes in place of the drawn tiles; return their root.

        Raises ResidualLostError if u was deleted.
        """
        conduct, store = self.conduct, self.honest.openings
        if conduct.is_hiding(Hidden.RESIDUALS, sampled.round):
            raise ResidualLostError(f"u of round {sampled.round}", "deleted", "Nothing to show.")
        forge = conduct.cheat.openings
        is_forged = forge is not same_openings and conduct.has_cheated(sampled.round)
        known = store.find(sampled.round, sampled.index) if is_forged else None
        root = known or self.honest.open_tiles(sampled)
        data = store.shown(root)
        if is_forged and known is None and data is not None:
            data = forge(data)
            root = openings.openings_root(data)
            store.keep(sampled, root, data, durable=False)
        conduct.post(sampled, root)
        return root


def _finite(momentum: Momentum) -> Momentum:
    """Return a momentum without NaN and infinities; its u stays, for an audit may ask for it."""
    if momentum.carried is None or bool(torch.isfinite(momentum.carried.u).all()):
        return momentum
    u = torch.nan_to_num(momentum.carried.u, 0.0, 0.0, 0.0)
    return replace(momentum, carried=replace(momentum.carried, u=u))


def signed(u: Tensor, honest: Proposal, work: HonestWork) -> Proposal:
    """Return a proposal of another u on the present momentum.

    If that u has no top k, the payload stays honest.
    """
    if not np.isfinite(u.numpy()).all():
        return replace(honest, u=u, root=residual_root(u.numpy()))
    rule = Residual.of(work.config)
    moved = Moved(u.to(work.path.device), rule.decayed(work.residual.momentum.carried))
    encoded = Encoded(moved.u, top_k(moved.u, work.config.demo.k), rule.is_sent(moved))
    return work.residual.offer(honest.round, encoded)


def _copied(store: Store, round_: int, own: Tensor, k: int) -> Tensor:
    """Return a u with another trainer's payload of the round before; our own u without one."""
    before = round_ - 1
    ours = store.load_submission(before)
    for index in store.peer_indices(before):
        submission = store.load_peer(before, index)
        if submission is not None and (ours is None or ours.index != index):
            copied = codec.decode(submission.payload, len(own), k).signs
            present, negative = map(torch.from_numpy, (copied.present, copied.negative))
            values = COPIED_SIZE * (1.0 - 2.0 * negative.float()) * present[:, None]
            flat = torch.zeros(len(own), own[0].numel())
            indices = torch.from_numpy(copied.indices).long()
            return flat.scatter_(1, indices, values).view_as(own)
    return own
