"""Writes what a member needs at the sizes of the presets into README.md.

python scripts/gen/sizes.py           write
python scripts/gen/sizes.py --check   exit 1 if the committed table differs

Owns: the table. Bytes, disk, stake and fees come from the same functions that the client uses.
Never: measures; `scripts/bench/sizes.py` has measured the memory that `sizes.json` keeps.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from marked import write_or_compare

from troth_attestation.openings import Sampled, size
from troth_attestation.pieces import FP32_BYTES
from troth_client.audit.push_openings import NUM_SPARES
from troth_client.compression.limits import payload_length
from troth_client.compression.tiles import TileLayout
from troth_client.model.shapes import trainable_shapes
from troth_client.state.retention import Retention
from troth_coordinator.chain.transactions import FEE_PER_SIGNATURE_LAMPORTS
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.audits import FIRST_SEATS
from troth_coordinator.rules.earnings import Crowd, earnings
from troth_coordinator.rules.economics import drawn_chance
from troth_coordinator.rules.ids import Address, Digest, ParticipantIndex, RoundIndex
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.view import Role

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "scripts/gen/sizes.json"
PRESETS = ("25m", "124m", "350m", "1b")
PEERS = 16
LINE_BITS = 60 * 10**6
ROUNDS = 1_000
SLOT_SECONDS = 0.4
BASE = "124m"
"""The largest that was measured: larger ones are computed from its bytes per parameter."""


@dataclass(frozen=True)
class Need:
    """The needs of one member at one size; bytes unless the name says otherwise."""

    name: str
    num_parameters: int
    k: int
    payload: int
    openings: float
    memory: float
    is_measured: bool
    disk: int
    teraflops: float
    longest_seconds: float
    stake_sol: float
    fees_sol: float

    @property
    def exchanged(self) -> float:
        """The bytes that a member fetches in an average round; without a hub it sends as much."""
        return (PEERS - 1) * self.payload + self.openings


def main() -> int:
    """Write the table or compare it."""
    return write_or_compare(ROOT / "README.md", "sizes", table(), "sizes.py")


def table() -> str:
    """Return the table, a size a line."""
    measured = json.loads(MEASURED.read_text())
    lines = [
        "| preset | parameters, k | payload | each way in a round | at 60 Mbit/s | round, at most"
        " | memory | disk, at most | to be in time | stake | fees |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [row(need(name, measured)) for name in PRESETS]
    return "\n".join(lines) + "\n"


def row(found: Need) -> str:
    """Return the line of one size."""
    cells = (
        f"`{found.name}`",
        f"{found.num_parameters / 1e6:.0f} M, {found.k}",
        f"{found.payload / 1e6:.2f} MB",
        f"{found.exchanged / 1e6:.0f} MB",
        f"{8 * found.exchanged / LINE_BITS:.1f} s",
        f"{found.longest_seconds:.0f} s",
        f"{found.memory / 1e9:.1f} GB{'' if found.is_measured else ' ¹'}",
        f"{found.disk / 1e9:.0f} GB",
        f"{found.teraflops:.1f} TFLOP/s",
        f"{found.stake_sol:g} SOL",
        f"{found.fees_sol:.3f} SOL",
    )
    return f"| {' | '.join(cells)} |"


def need(name: str, measured: Mapping[str, Mapping[str, float]]) -> Need:
    """Return what a member needs at the size of a preset."""
    settings = load_config([ROOT / f"configs/{name}.toml"])
    config, params = settings.config, settings.chain.to_view()
    layout = TileLayout.from_shapes(trainable_shapes(config.model))
    payload = payload_length(layout.num_tiles, config.demo.k)
    weights = FP32_BYTES * layout.num_parameters
    retention = Retention.of(params)
    tokens = config.train.sequences_per_payload * config.data.sequence_tokens
    commit = params.commit_slots * SLOT_SECONDS
    return Need(
        name=name,
        num_parameters=layout.num_parameters,
        k=config.demo.k,
        payload=payload,
        openings=openings(settings, layout.num_tiles),
        memory=memory(settings, layout.num_parameters, measured, name),
        is_measured=name in measured,
        disk=retention.disk_bytes(weights, layout.num_tiles, payload, PEERS),
        teraflops=6 * layout.num_parameters * tokens / (commit / 2) / 1e12,
        longest_seconds=commit + params.attest_slots * SLOT_SECONDS,
        stake_sol=params.min_stake_lamports / 1e9,
        fees_sol=fees(settings) * ROUNDS / 1e9,
    )


def openings(settings: RunSettings, num_tiles: int) -> float:
    """Return the bytes of opening sets that a member fetches, or sends, in an average round.

    Each audit's set goes to its seats and to the spares. A quiet run has no jurors.
    """
    count = settings.config.judge.openings_tiles
    tiles, root, index = tuple(range(min(count, num_tiles))), Digest(bytes(32)), ParticipantIndex(0)
    rounds = RoundIndex(1), RoundIndex(0)
    one = Sampled(Address(root), rounds[0], index, rounds[1], num_tiles, tiles, root, root)
    params = settings.chain.to_view()
    audits = float(drawn_chance(params.p_base_ppm, PEERS, params.audit_cap))
    return audits * (FIRST_SEATS + NUM_SPARES) * size(one)


def memory(
    settings: RunSettings,
    num_parameters: int,
    measured: Mapping[str, Mapping[str, float]],
    name: str,
) -> float:
    """Return the peak of a member's process: measured, or from the bytes per parameter of BASE.

    Activations grow with tokens, width and depth, and logits with the vocabulary.
    """
    if name in measured:
        return measured[name]["peak_bytes"]
    base = measured[BASE]
    known = load_config([ROOT / f"configs/{BASE}.toml"])
    held = (base["held_bytes"] - base["base_bytes"]) / base["num_parameters"]
    extra = (base["peak_bytes"] - base["held_bytes"]) / activations(known)
    return base["base_bytes"] + held * num_parameters + extra * activations(settings)


def activations(settings: RunSettings) -> int:
    """Return a number that grows as the activations of one microbatch do."""
    model = settings.config.model
    tokens = settings.config.train.microbatch_sequences * settings.config.data.sequence_tokens
    inside = model.num_hidden_layers * (16 * model.hidden_size + 5 * model.intermediate_size)
    return tokens * (inside + 4 * model.vocab_size)


def fees(settings: RunSettings) -> float:
    """Return the lamports that one of 16 members pays in transaction fees of a round."""
    params = settings.chain.to_view()
    crowd = Crowd(PEERS, PEERS, PEERS, params.audit_cap)
    both = Role.TRAINER | Role.WITNESS
    found = earnings(params, 10**15, crowd, both, ROUNDS, FEE_PER_SIGNATURE_LAMPORTS)
    return float(found.fees)


if __name__ == "__main__":
    sys.exit(main())
