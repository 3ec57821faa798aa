r"""How many copies of the model a participant holds: `python scripts/bench/memory.py [--rounds 6]`.

Owns: the peak and the held memory of a follower, a witness and a trainer over whole rounds, on the
project's own parts and files. A copy is four bytes a parameter, beyond what the interpreter and its
libraries take. Sequences are short, so that activations weigh nothing.
Never: a chain or a socket, nor a claim; those go to docs/results.md.
Next: `client/troth_client/state/replica.py` and `residual_state.py`, which hold the copies.

Each figure comes from a process of its own. Linux: it reads /proc. With `--device cuda` it is the
memory that torch has allocated on the card; the host's is not shown then.
"""

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from troth_attestation.signs import Signs
from troth_client.audit.recompute import own_gradient
from troth_client.compression import codec
from troth_client.compression.codec import VerifiedPayload
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.model.device import CPU, Device, choose_device
from troth_client.model.init import initial_weights
from troth_client.model.llama import Llama
from troth_client.model.weights import build, weight_views
from troth_client.state.kept_weights import KeptWeights
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.past_states import PastStates
from troth_client.state.records import Closure
from troth_client.state.replica import Replica
from troth_client.state.residual_archive import KeptRounds, ResidualArchive
from troth_client.state.residual_state import ResidualState, Undo
from troth_client.state.work import HonestWork
from troth_client.storage import Store
from troth_client.storage.entries import StoreIdentity, Submission
from troth_client.telemetry.losses import round_loss
from troth_coordinator.rules.config import (
    DataSection,
    DemoSection,
    ModelSection,
    RunConfig,
    TrainSection,
)
from troth_coordinator.rules.ids import NONE, RoundIndex

ROLES: Final = ("follower", "witness", "trainer")
SIZES: Final = {"7.7": (384, 4), "31": (768, 4), "82": (1024, 6)}
KEEP, RING, TOKENS = 4, 32, 16
PAST: Final = 0
"""Bytes of past rounds in memory, as `--past-mib 0`: by default they take up to 256 MiB each."""
Batch = NDArray[np.int64]


def config_of(width: int, layers: int) -> RunConfig:
    """Return a run of a Llama with 13 x width^2 parameters a layer."""
    model = ModelSection(
        vocab_size=256,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=TOKENS,
    )
    train = TrainSection(sequences_per_payload=1, microbatch_sequences=1)
    data = DataSection(sequence_tokens=TOKENS)
    config = RunConfig(model=model, data=data, demo=DemoSection(k=8), train=train)
    return config.with_manifest(bytes(32))


@dataclass(slots=True)
class Participant:
    """The parts of a participant that hold tensors, wired as `participant/assembly.py` does."""

    config: RunConfig
    model: Llama
    replica: Replica
    store: Store
    residual: ResidualState | None
    archive: ResidualArchive
    openings: OpeningsStore
    device: Device

    @classmethod
    def of(
        cls,
        config: RunConfig,
        folder: Path,
        role: str,
        keep: int = KEEP,
        past: int = PAST,
        device: Device = CPU,
    ) -> "Participant":
        """Return one at the start of a run; `past` bytes of each kind of past stay in memory."""
        store = Store(folder, StoreIdentity(bytes(32), bytes(32), config.config_hash()), print)
        model = build(config.model, initial_weights(bytes(32), config.model), device.torch)
        views = weight_views(model)
        layout = TileLayout.from_shapes({name: tuple(w.shape) for name, w in views.items()})
        path = choose_path(device.torch, num_tiles=layout.num_tiles, k=config.demo.k)
        hashers = ThreadPoolExecutor(2)
        replica = Replica(config, views, path, PastStates(keep, store, past), hashers)
        undo = Undo(keep, config.demo.k, store.load_residual)
        residual = ResidualState(Residual.of(config), layout.num_tiles, undo, path)
        archive = ResidualArchive(store, KeptRounds(keep, RING, past))
        found = cls(
            config,
            model,
            replica,
            store,
            residual if role == "trainer" else None,
            archive,
            OpeningsStore(folder / "openings", store.room),
            device,
        )
        found.save()
        return found

    def save(self) -> None:
        """Save the weights as `steps/settle.py` does."""
        self.store.save_weights(self.replica.stored())

    def round(self, other: VerifiedPayload, role: str, batch: Batch) -> None:
        """Take part in one round, in which our payload and another one are included."""
        replica, round_ = self.replica, self.replica.round
        payloads = [other]
        residual_root = None
        if self.residual is not None:
            own, residual_root = self.produce(self.residual, batch)
            payloads.append(own)
        closure = Closure(
            round=round_,
            num_trainers=2,
            included=3,
            is_void=False,
            canonical_root=replica.root(),
            own_residual=residual_root,
            carried=frozenset(),
            loss=round_loss([]),
        )
        replica.apply(closure, payloads)
        if self.residual is not None:
            self.settle(self.residual, round_, residual_root)
        self.save()
        self.store.drop_before(max(0, round_ - RING))
        if role == "witness":
            kept = KeptWeights(self.store, self.config.config_hash())
            saved = kept.load(replica.round, replica.root())
            own_gradient(self.config, saved.tensors, batch, self.device)

    def produce(self, residual: ResidualState, batch: Batch) -> tuple[VerifiedPayload, bytes]:
        """Make, store and decode our payload of the replica's round."""
        replica, work = self.replica, self.work(residual)
        residual.begin(RoundIndex(replica.round - 1 if replica.round else NONE))
        proposal = work.propose(replica.round, work.gradient(batch))
        payload = work.encode(proposal).data
        header = b"header"
        self.store.save_submission(
            Submission(replica.round, 0, header, bytes(64), payload), residual.entry()
        )
        self.archive.put(residual.entry())
        return codec.decode(payload, replica.layout.num_tiles, self.config.demo.k), proposal.root

    def work(self, residual: ResidualState) -> HonestWork:
        """Return the work of a trainer on these parts."""
        return HonestWork(
            self.config,
            self.model,
            self.device,
            self.replica.layout,
            residual,
            self.archive,
            self.openings,
            self.replica.path,
        )

    def settle(self, residual: ResidualState, round_: RoundIndex, root: bytes | None) -> None:
        """Keep u as the momentum."""
        residual.settle(round_, root)
        self.archive.tidy(round_, residual.origins())


def measure(role: str, size: str, rounds: int, device: Device) -> tuple[int, float, float]:
    """Return the parameters, and the held and the peak bytes a parameter, of this process."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        play(config_of(*SIZES["7.7"]), Path(folder) / "warm", role, 1, device)
        trim()
        base = held(device)
        config = config_of(*SIZES[size])
        one = play(config, Path(folder) / "run", role, rounds, device)
        peak = high(device) - base
        trim()
        count = one.replica.layout.num_parameters
        return count, (held(device) - base) / count, peak / count


def play(config: RunConfig, folder: Path, role: str, rounds: int, device: Device) -> Participant:
    """Take part for some rounds; the high-water mark begins with the second one."""
    one = Participant.of(config, folder, role, device=device)
    batch = np.arange(TOKENS + 1, dtype=np.int64)[None]
    other = drawn(one.replica.layout.num_tiles, config.demo.k)
    for number in range(rounds):
        if number == 1:
            trim()
            begin(device)
        one.round(other, role, batch)
    return one


def drawn(num_tiles: int, k: int) -> VerifiedPayload:
    """Return a payload with the first k places of every tile."""
    indices = np.broadcast_to(np.arange(k, dtype=np.int16), (num_tiles, k)).copy()
    negative = np.zeros((num_tiles, k), np.bool_)
    signs = Signs(np.ones(num_tiles, np.bool_), indices, negative)
    return codec.decode(codec.encode(signs), num_tiles, k)


def trim() -> None:
    """Give free memory back to the system."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def begin(device: Device) -> None:
    """Set the high-water mark back."""
    if device.torch.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device.torch)
    else:
        Path("/proc/self/clear_refs").write_text("5")


def held(device: Device) -> int:
    """Return the bytes of this process in memory."""
    if device.torch.type == "cuda":
        return torch.cuda.memory_allocated(device.torch)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def high(device: Device) -> int:
    """Return the most bytes since the mark was set back."""
    if device.torch.type == "cuda":
        return torch.cuda.max_memory_allocated(device.torch)
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def main() -> None:
    """Print a row for every role and size, each from a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--sizes", nargs="+", default=[*SIZES], choices=[*SIZES])
    parser.add_argument("--roles", nargs="+", default=[*ROLES], choices=ROLES)
    parser.add_argument("--one", nargs=2, metavar=("ROLE", "SIZE"), help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    if arguments.one:
        torch.set_num_threads(1)
        device = choose_device(arguments.device)
        count, rest, peak = measure(*arguments.one, arguments.rounds, device)
        cells = f"{rest:.1f} | {peak:.1f} | {rest / 4:.1f} | {peak / 4:.1f}"
        print(f"| {arguments.one[0]} | {count / 1e6:.1f} M | {cells} |", flush=True)
        return
    print("| role | parameters | held, B a parameter | peak | held, copies | peak, copies |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for role in arguments.roles:
        for size in arguments.sizes:
            command = [sys.executable, __file__, "--rounds", str(arguments.rounds)]
            command += ["--device", arguments.device, "--one", role, size]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
