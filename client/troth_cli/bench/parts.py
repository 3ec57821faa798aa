"""The parts of one round on random tensors of a model's shapes, and what each is compared with.

Owns: what is measured, with which inputs. Never: prints.
Next: `clock.py`; `troth_client/compression/released.py` for the released algorithm.

Random gradients are no worse than real ones here: no part takes longer or shorter for other values.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from troth_attestation import merkle, openings
from troth_attestation.bulk import leaf_hashes
from troth_attestation.measure import JudgeRule, Own
from troth_attestation.pieces import CHUNK_BYTES
from troth_attestation.sampling import drawn_tiles
from troth_attestation.sizes import TILE_BYTES
from troth_attestation.sketch import sketch
from troth_attestation.state import residual_tree, zero_residual_root
from troth_attestation.work import judge
from troth_cli.bench.clock import Way, in_turns
from troth_cli.bench.reduce import dense_all_reduce
from troth_cli.bench.sizes import Size
from troth_client.audit.device_gradient import gradient_of
from troth_client.compression import codec
from troth_client.compression.apply import update
from troth_client.compression.dct import dct2
from troth_client.compression.host import host_array, leaves_of
from troth_client.compression.known_answer import ApplyPath, choose_path
from troth_client.compression.released import ReleasedDeMo
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.train.adamw import adamw, is_fused
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H
from troth_coordinator.rules.ids import NONE, Address, Digest, ParticipantIndex, RoundIndex

OURS, RELEASED, SHA256 = "troth", "released DeMo", "SHA-256"
ON_HOST = "BLAKE3, processor"
ADAMW, NOT_FUSED, ALL_REDUCE = "AdamW, fused", "AdamW, default", "dense all-reduce"
KEPT = "encode, kept for audits"
_STRIDE = 1_009
_A, _B, _RATE = 1.0 - 2.0**-14, 2.0**-10, 1e-3

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure: k, payloads in a round, repetitions, and the device."""

    k: int
    peers: int
    repeats: int
    device: torch.device


@dataclass(frozen=True, slots=True)
class Part:
    """The median seconds of each way to do one part."""

    name: str
    seconds: Mapping[str, float]


def all_reduce_on(device: torch.device) -> str:
    """Return the name of the all-reduce beside a step on a device: it runs on the processor."""
    return ALL_REDUCE if device.type == "cpu" else f"{ALL_REDUCE}, processor"


class Bench:
    """The tensors of one size; each method measures one part."""

    def __init__(self, size: Size, plan: Plan) -> None:
        self._plan = plan
        self._layout = TileLayout.from_shapes(size.shapes)
        self._path = choose_path(plan.device, num_tiles=self._layout.num_tiles, k=plan.k)
        self._gradient = self._draw(0)
        self._encoder = self._path.encoder(self._layout, Residual.of(RunConfig()), plan.k)
        found = self._encoder.encode(self._gradient, None)
        self._u = host_array(found.u)
        self._signs = found.top.signs(found.is_sent)
        self._payload = codec.encode(self._signs)

    @property
    def path(self) -> ApplyPath:
        """Where payloads are applied, and by which kernels."""
        return self._path

    @property
    def payload_bytes(self) -> int:
        """The length of one payload."""
        return len(self._payload)

    def parts(self) -> Iterator[Part]:
        """Measure every part, one after another."""
        yield self._timed(KEPT, {OURS: self._encode_for_audits()})
        yield from self._step()
        yield self._timed("payload, write", {OURS: self._write})
        yield self._timed("payload, read", {OURS: self._read})
        weights, u = list(self._draw(1).values()), torch.from_numpy(self._u)
        yield self._timed("state root", self._roots(weights, CHUNK_BYTES))
        yield self._timed("residual root", self._roots([u.to(self._path.device)], TILE_BYTES))
        yield self._timed("judge", {OURS: self._judge()})
        yield self._timed("sketch", {OURS: self._sketch()})

    def payload_of(self, peer: int) -> codec.VerifiedPayload:
        """Return the payload of one of the peers; each of them chooses other coefficients."""
        found = self._encoder.encode(self._gradient_of(peer), None)
        payload = codec.encode(found.top.signs(found.is_sent))
        return codec.decode(payload, self._layout.num_tiles, self._plan.k)

    def _gradient_of(self, peer: int) -> Tensors:
        """Return the own gradient with its elements in other places: cheaper than another draw."""
        return {
            name: tensor.flatten().roll(_STRIDE * peer).view_as(tensor)
            for name, tensor in self._gradient.items()
        }

    def _timed(self, name: str, ways: Mapping[str, Way]) -> Part:
        return Part(name, in_turns(ways, self._plan.repeats, self._plan.device))

    def _encode_for_audits(self) -> Way:
        """Return an encode as a participant makes it: an audit may ask for both its u."""
        carried = self._encoder.encode(self._gradient, None).carried

        def encode() -> None:
            nonlocal carried
            found = self._encoder.encode(self._gradient, carried)
            carried = found.carried

        return encode

    def _step(self) -> Iterator[Part]:
        """Measure encode, apply, and both together, which is a step of DeMo as an optimizer."""
        plan, weights = self._plan, self._draw(1)
        payloads = [self.payload_of(peer) for peer in range(plan.peers)]
        carried = self._encoder.encode(self._gradient, None).carried

        def encode() -> None:
            nonlocal carried
            found = self._encoder.encode(self._gradient, carried, in_place=True)
            carried = found.carried

        def apply() -> None:
            update(weights, payloads, self._layout, (_A, _B), self._path)

        released = ReleasedDeMo(self._draw(1), plan.k, _RATE)
        sent = [released.encode(self._gradient_of(peer)) for peer in range(plan.peers)]

        def released_encode() -> None:
            released.encode(self._gradient)

        def released_apply() -> None:
            released.apply(sent)

        def both() -> None:
            encode()
            apply()

        def released_both() -> None:
            released_encode()
            released_apply()

        yield self._timed("encode", {OURS: encode, RELEASED: released_encode})
        yield self._timed("apply", {OURS: apply, RELEASED: released_apply})
        ways = {OURS: both, RELEASED: released_both, **self._adamw()}
        seconds = in_turns(ways, plan.repeats, plan.device)
        # Not in turns with the others: it needs two processes, which start and end with it.
        count, threads = self._layout.num_parameters, torch.get_num_threads()
        seconds[all_reduce_on(plan.device)] = dense_all_reduce(count, plan.repeats, threads)
        yield Part("step", seconds)

    def _adamw(self) -> dict[str, Way]:
        weights = [tensor.requires_grad_() for tensor in self._draw(1).values()]
        for weight, gradient in zip(weights, self._gradient.values(), strict=True):
            weight.grad = gradient
        optimizer = adamw(weights, lr=_RATE)
        return {ADAMW if is_fused(optimizer) else NOT_FUSED: optimizer.step}

    def _write(self) -> bytes:
        return codec.encode(self._signs)

    def _read(self) -> codec.VerifiedPayload:
        return codec.decode(self._payload, self._layout.num_tiles, self._plan.k)

    def _roots(self, tensors: Sequence[torch.Tensor], length: int) -> dict[str, Way]:
        """Hash all leaves and the tree above them as a participant does, and as version 2 did.

        Copies of a GPU's tensors are made before: a participant stores them anyway.
        """
        held, kernels = [host_array(tensor) for tensor in tensors], self._path.kernels

        def on_host() -> Digest:
            return merkle.root_of(leaf_hashes(leaves_of(held, length)))

        def by_sha256() -> Digest:
            return merkle.root_of([_sha256(leaf) for leaf in leaves_of(held, length)])

        if kernels is None or kernels.leaf_hashes is None:
            return {OURS: on_host, SHA256: by_sha256}
        hashes = kernels.leaf_hashes
        on_device = lambda: merkle.root_of(hashes(tensors, length))  # noqa: E731
        return {OURS: on_device, ON_HOST: on_host, SHA256: by_sha256}

    def _coefficients(self) -> torch.Tensor:
        return dct2(self._layout.to_tiles(self._gradient), in_place=True)

    def _judge(self) -> Way:
        """Judge one payload with its openings in hand; the own gradient is not part of it."""
        config = RunConfig()
        own, num_tiles = self._coefficients(), self._layout.num_tiles
        after = openings.Residual(self._u, residual_tree(self._u))
        tiles = drawn_tiles(H("troth:bench"), 0, num_tiles, config.judge.openings_tiles)
        sampled = openings.Sampled(
            run=Address(bytes(32)),
            round=RoundIndex(0),
            index=ParticipantIndex(0),
            previous_included=RoundIndex(NONE),
            num_tiles=num_tiles,
            tiles=tiles,
            root_after=after.tree.root,
            root_before=zero_residual_root(num_tiles),
        )
        data = openings.encode(sampled, after)
        root, rule = openings.openings_root(data), JudgeRule(config.demo, config.judge)
        return lambda: judge(data, sampled, root, self._signs, Own(gradient_of(own)), rule)

    def _sketch(self) -> Way:
        own = gradient_of(self._coefficients())
        return lambda: sketch(own, bytes(32), 0)

    def _draw(self, seed: int) -> Tensors:
        """Return random tensors of the layout on the device."""
        source = np.random.default_rng(seed)
        shapes = self._layout.shapes.items()
        drawn = {n: source.standard_normal(s, np.float32) * np.float32(0.01) for n, s in shapes}
        return {n: torch.from_numpy(array).to(self._plan.device) for n, array in drawn.items()}


def _sha256(leaf: merkle.Leaf) -> Digest:
    return Digest(hashlib.sha256(leaf).digest())
