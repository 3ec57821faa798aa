"""Hold a GPU against the processor: `python scripts/gpu/equality.py [--device cuda] [--tiles N]`.

Owns: a table of questions, each answered by torch on the device and by Triton's kernels there.
Never: times anything. Exits with 1 if an answer is wrong, with 2 if there is no such device.
With TRITON_INTERPRET=1 and `--device cpu` the same questions are asked where there is no GPU, of
kernels that numpy interprets.
Next: `client/troth_client/compression/known_answer.py`, `compiled.py` beside it.
"""

import argparse
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from troth_attestation.agreement import groups, least_agreement
from troth_attestation.bulk import leaf_hashes
from troth_attestation.measure import scale_of
from troth_attestation.pieces import CHUNK_BYTES
from troth_attestation.sizes import TILE_BYTES
from troth_attestation.sketch import sketch
from troth_attestation.state import residual_root, residual_root_of_parts
from troth_attestation.verdict import VerdictKind
from troth_client.audit.device_gradient import TorchGradient
from troth_client.compression import known_answer
from troth_client.compression.apply import update
from troth_client.compression.basis import float_basis
from troth_client.compression.codec import VerifiedPayload, decode, encode
from troth_client.compression.encoder import Encoder
from troth_client.compression.errors import KnownAnswerError, NonFiniteError
from troth_client.compression.host import leaves_of, streamed
from troth_client.compression.kernels.base import MAX_ERROR, Kernels
from troth_client.compression.kernels.choice import find_triton
from troth_client.compression.known_answer import ApplyPath
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import select, top_k
from troth_client.model.device import choose_device, in_precision, precisions_of
from troth_client.model.errors import DeviceError
from troth_client.participant.measuring import measure_machine
from troth_coordinator.rules.config import RunConfig

A, B = 1.0 - 2.0**-14, 2.0**-10
RULE = Residual(999_000, 400_000)
CPU = torch.device("cpu")
Tensors = dict[str, Tensor]
Answer = tuple[bool, str]


@dataclass(frozen=True)
class Way:
    """One way to compute on the device: its name, and the kernels of Triton or None."""

    name: str
    device: torch.device
    kernels: Kernels | None

    @property
    def path(self) -> ApplyPath:
        """Return the path that steps so; the table shows what the known-answer test says."""
        seal = known_answer._MADE_HERE
        return ApplyPath(self.device, torch.float64, "", (self.kernels, ""), seal=seal)


@dataclass(frozen=True)
class Case:
    """A model with tensors of every odd kind, and tensors of it."""

    layout: TileLayout

    def tensors(self, seed: int) -> Tensors:
        """Return random tensors; the last one has columns that are far apart in memory."""
        draw = torch.Generator().manual_seed(seed)
        found = {n: torch.randn(s, generator=draw) for n, s in self.layout.shapes.items()}
        found["turned"] = found["turned"].T.contiguous().T
        found["constant"].fill_(0.1)
        return found


@functools.cache
def payloads(num_tiles: int, count: int, k: int) -> tuple[VerifiedPayload, ...]:
    """Return checked payloads of random coefficients; every way asks for the same ones."""
    draw = torch.Generator().manual_seed(count)
    u = (torch.randn(num_tiles, 64, 64, generator=draw) for _ in range(count))
    return tuple(decode(encode(select(one, k)), num_tiles, k) for one in u)


def main() -> None:
    """Print the table; exit 1 if a way answers wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiles", type=int, default=1024, help="tiles of the largest tensor")
    arguments = parser.parse_args()
    try:
        device = choose_device(arguments.device).torch
    except DeviceError as error:
        parser.error(str(error))
    case = case_of(arguments.tiles)
    print(f"{device}, {_name(device)}, torch {torch.__version__}, {case.layout.num_tiles} tiles")
    num_wrong = 0
    for name, what, (is_right, note) in answers(device, case):
        num_wrong += not is_right
        print(f"{name:<7} {what:<34} {'equal' if is_right else 'WRONG':<6} {note}", flush=True)
    if num_wrong:
        raise SystemExit("this device does not compute as the processor does")


def answers(device: torch.device, case: Case) -> Iterator[tuple[str, str, Answer]]:
    """Yield who was asked, what, and the answer, as soon as there is one."""
    yield "torch", "known answer", known(device)
    kernels, reason = found_kernels(device)
    yield "triton", "known answer", (not reason, reason)
    for what, answer in of_the_device(device):
        yield "torch", what, answer
    ways = [Way("torch", device, None)]
    if kernels is not None:
        ways.append(Way("triton", device, kernels))
    for way in ways:
        for what, question in QUESTIONS.items():
            yield way.name, what, question(way, case)


def case_of(tiles: int) -> Case:
    """Return a case whose largest tensor has about so many tiles."""
    shapes: dict[str, tuple[int, ...]] = {
        "constant": (130, 64),
        "cut": (3, 31, 65),
        "large": (max(tiles // 8, 1) * 64, 512),
        "norm": (70,),
        "scalar": (),
        "turned": (100, 129),
    }
    return Case(TileLayout.from_shapes(shapes))


def known(device: torch.device) -> Answer:
    """Ask the questions of the start of a participant."""
    try:
        known_answer.check(device)
    except KnownAnswerError as error:
        return False, str(error)
    return True, ""


def found_kernels(device: torch.device) -> tuple[Kernels | None, str]:
    """Return Triton's kernels, or why they are refused."""
    hard = np.array([case[0] for case in known_answer.STEP_CASES], np.uint32).view(np.float32)
    constants = (known_answer.DECAY, known_answer.RATE)
    a, b = (float(np.uint32(bits).view(np.float32)) for bits in constants)
    return find_triton(device, torch.from_numpy(hard), (a, b))


def same_choice(way: Way, case: Case) -> Answer:
    """Compare u, places, signs and sent tiles for the same D(g), to the bit, for some k."""
    for k in (1, 8, 32, 64):
        own, plain = Encoder(case.layout, RULE, k, way.kernels), Encoder(case.layout, RULE, k)
        gradient = _to(case.tensors(k), way.device)
        before = torch.randn(case.layout.num_tiles, 64, 64).round()
        places = top_k(before, k).indices
        coefficients = own.encode(gradient, None).u.cpu()
        found = own.encode(gradient, Carried(before.to(way.device), places))
        expected = plain.encode_tiles(coefficients, Carried(before, places))
        is_same = (
            torch.equal(_bits(found.u), _bits(expected.u))
            and np.array_equal(found.top.indices, expected.top.indices)
            and np.array_equal(found.top.negative, expected.top.negative)
            and np.array_equal(found.is_sent, expected.is_sent)
        )
        if not is_same:
            return False, f"k = {k}"
    return True, "k = 1, 8, 32, 64"


def precise(way: Way, case: Case) -> Answer:
    """Hold D(g) against the exact transform, in fp64 on the processor."""
    gradient = case.tensors(5)
    tiles, basis = case.layout.to_tiles(gradient).double(), torch.from_numpy(float_basis())
    found = Encoder(case.layout, RULE, 8, way.kernels).encode(_to(gradient, way.device), None)
    error = (found.u.cpu() - basis @ tiles @ basis.T).abs().amax(dim=(1, 2))
    worst = float((error / (2.0**-24 * tiles.norm(dim=(1, 2)))).max())
    return worst <= MAX_ERROR, f"{worst:.1f} of {MAX_ERROR} units of 2^-24 |tile|"


def near_payload(way: Way, case: Case) -> Answer:
    """Compare the payloads: places differ only where two coefficients are near each other."""
    k, gradient = 8, case.tensors(6)
    own = Encoder(case.layout, RULE, k, way.kernels).encode(_to(gradient, way.device), None)
    other = Encoder(case.layout, RULE, k).encode(gradient, None)
    values = other.u.flatten(1).double().abs()
    chosen = values.gather(1, torch.from_numpy(own.top.indices).long()).amin(1)
    least = values.topk(k, dim=1).values[:, -1]
    unit = 2.0**-24 * other.u.double().flatten(1).norm(dim=1)
    differing = int((own.top.indices != other.top.indices).any(axis=1).sum())
    is_near = bool((chosen >= least - 4 * MAX_ERROR * unit).all())
    return is_near, f"{differing} of {len(least)} tiles choose another place"


def same_weights(way: Way, case: Case) -> Answer:
    """Compare the weights after a step with one to 64 payloads, to the bit."""
    for count, k in ((1, 1), (8, 32), (40, 64), (64, 64)):
        sent, one = payloads(case.layout.num_tiles, count, k), case.tensors(count)
        other = _to(case.tensors(count), way.device)
        update(one, [*sent, None], case.layout, (A, B), known_answer.choose_path("cpu"))
        update(other, [*sent, None], case.layout, (A, B), way.path)
        for name, weight in one.items():
            if not torch.equal(_bits(other[name]), _bits(weight)):
                return False, f"{name!r} after {count} payloads of k = {k}"
    return True, "1, 8, 40 and 64 payloads"


def refused(way: Way, case: Case) -> Answer:
    """Expect that NaN and infinities in a gradient are refused, and that the momentum stays."""
    for bad in (float("nan"), float("inf"), -float("inf")):
        gradient = _to(case.tensors(7), way.device)
        gradient["turned"][70, 3] = bad
        before = torch.ones(case.layout.num_tiles, 64, 64, device=way.device)
        carried = Carried(before, top_k(before, 8).indices)
        try:
            Encoder(case.layout, RULE, 8, way.kernels).encode(gradient, carried)
        except NonFiniteError:
            if bool((before == 1).all()):
                continue
        return False, f"{bad}"
    return True, "nan, inf, -inf"


def same_hashes(way: Way, case: Case) -> Answer:
    """Compare the leaf hashes that the device makes of weights and of u with the host's."""
    u = torch.randn(100, 64, 64)
    for leaf_bytes, given in ((CHUNK_BYTES, [*case.tensors(9).values()]), (TILE_BYTES, [u])):
        there = way.path.leaf_hashes([one.to(way.device) for one in given], leaf_bytes)
        if there is None:
            return way.kernels is None, "the processor hashes"
        if there != leaf_hashes(leaves_of([one.numpy() for one in given], leaf_bytes)):
            return False, f"leaves of {leaf_bytes} bytes"
    return True, "leaves of weights and of u"


def of_the_device(device: torch.device) -> list[tuple[str, Answer]]:
    """Return what holds for the device as such: roots of what leaves it, and the judge."""
    u = torch.randn(100, 64, 64)
    target = np.empty(u.numel(), np.float32)
    root = residual_root_of_parts(streamed(u.to(device), target, 7 * 4096))
    rows = [("root of u, streamed", (root == residual_root(u.numpy()), ""))]
    rows.append(("judge's numbers, against numpy", same_measures(device)))
    for precision in precisions_of(device):
        found = measure_machine(RunConfig(), in_precision(device, precision))
        note = f"median error {found.error:.5f}" if found.error is not None else "no error"
        name = f"judge, {precision} against the reference"
        rows.append((name, (found.verdict == VerdictKind.OK, note)))
    return rows


def same_measures(device: torch.device) -> Answer:
    """Compare what a judge asks of its gradient on the device with numpy's answers."""
    tiles = torch.randn(300, 64, 64, generator=torch.Generator().manual_seed(8)) / 1000
    tiles[7], tiles[8] = 0, 2.0**-140
    own, here = TorchGradient.of(tiles.to(device)), tiles.numpy()
    scale, signs, drawn = scale_of(here), select(tiles, 8), [299, 0, 7, 8]
    votes = groups((300,)), signs, np.ones(300, np.bool_)
    agreements = own.agreement(*votes), least_agreement(votes[0], signs, here, votes[2])
    sketches = np.array([sketch(one, bytes(32), 3) for one in (own, here)], np.int64)
    off = int(np.abs(sketches[0] - sketches[1]).max())
    wrong = {
        "drawn tiles": not np.array_equal(own.drawn(drawn), here[drawn].reshape(4, -1)),
        "largest": not np.array_equal(own.scale.largest, scale.largest),
        "norms": not np.allclose(own.scale.norms, scale.norms, rtol=2.0**-40, atol=0),
        "agreement": not np.allclose(*agreements, rtol=2.0**-40, atol=0),
        "sketch": off > 1,
    }
    names = [name for name, is_wrong in wrong.items() if is_wrong]
    return not names, ", ".join(names) or f"sketch off by {off} of 2^-23"


QUESTIONS: dict[str, Callable[[Way, Case], Answer]] = {
    "encode, same D(g), to the bit": same_choice,
    "D(g) near the exact one": precise,
    "payload near the processor's": near_payload,
    "weights after a step, to the bit": same_weights,
    "NaN and infinities": refused,
    "leaf hashes": same_hashes,
}


def _bits(tensor: Tensor) -> Tensor:
    return tensor.cpu().contiguous().view(torch.int32)


def _to(tensors: Tensors, device: torch.device) -> Tensors:
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU"


if __name__ == "__main__":
    main()
