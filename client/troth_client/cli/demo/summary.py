"""What a demo proved, computed from the chain, the exported weights and the event logs.

Owns: the claims of the summary and their checks. Never: takes a trainer's word for the loss or the
root: both are recomputed here from the weights that it exported.
Next: `show.py`, which prints it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from troth_attestation.state import state_root
from troth_client.cli.demo.options import DemoOptions
from troth_client.cli.demo.stage import Stage
from troth_client.data.manifest import load_manifest
from troth_client.data.shards import TokenData
from troth_client.model.export import load_export
from troth_client.model.init import initial_weights
from troth_client.model.weights import build
from troth_client.telemetry.board import Board
from troth_client.train.evaluate import evaluate
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RunView

NUM_VALIDATION_SEQUENCES = 64


@dataclass(frozen=True, slots=True)
class Summary:
    """The outcome of a demo; `is_success` is its exit code.

    Losses in micro-nats per byte on held-out sequences; fees in lamports.
    """

    run: str
    num_rounds: int
    num_parameters: int
    loss_first_micro: int
    loss_last_micro: int
    margin_micro: int
    payload_bytes: int
    bytes_per_parameter: float
    dense_bytes: int
    num_included: int
    fees_lamports: int
    state_root: str
    chain_root: str
    peer_roots: dict[str, str]
    missing_peers: list[str]
    events: str
    weights: str

    @property
    def fell_by_micro(self) -> int:
        """How far the validation loss fell, in micro-nats."""
        return self.loss_first_micro - self.loss_last_micro

    @property
    def agrees(self) -> bool:
        """Whether every peer, the exported weights and the chain have one and the same root."""
        roots = {*self.peer_roots.values(), self.state_root}
        return roots == {self.chain_root} and not self.missing_peers

    @property
    def is_success(self) -> bool:
        """Whether the demo shows what it promises."""
        return self.agrees and self.fell_by_micro >= self.margin_micro

    def to_json(self) -> dict[str, object]:
        """Return all fields and the verdicts, ready for JSON."""
        verdicts = {
            "fell_by_micro": self.fell_by_micro,
            "agrees": self.agrees,
            "is_success": self.is_success,
        }
        return {**asdict(self), **verdicts}


def summarise(options: DemoOptions, stage: Stage, board: Board, view: RunView) -> Summary:
    """Check the run's end: one root everywhere, and the loss of the exported weights."""
    finished = {name: line for name, line in board.peers.items() if line.state == "finished"}
    folder = _weights_of(options, finished)
    model, weights, _ = load_export(folder)
    root = state_root(weights, view.root_round, view.root_cursor, stage.config.config_hash())
    manifest = load_manifest(stage.data, stage.config.manifest_digest())
    with TokenData(stage.data, manifest, "validation") as validation:
        batch = validation.sequences(range(min(NUM_VALIDATION_SEQUENCES, len(validation))))
    first = evaluate(build(model, initial_weights(view.address, model)), batch)
    last = evaluate(build(model, weights), batch)
    size = sum(array.size for array in weights.values())
    payload = max(line.payload_bytes for line in board.peers.values())
    return Summary(
        run=stage.run,
        num_rounds=view.round,
        num_parameters=size,
        loss_first_micro=first,
        loss_last_micro=last,
        margin_micro=options.margin_micro,
        payload_bytes=payload,
        bytes_per_parameter=payload / size,
        dense_bytes=2 * size,
        num_included=sum(line.num_included for line in board.peers.values()),
        fees_lamports=board.fees,
        state_root=root.hex(),
        chain_root=view.root.hex() if view.phase == Phase.FINISHED else "the run is not finished",
        peer_roots={name: line.root for name, line in sorted(finished.items())},
        missing_peers=[
            name
            for name, line in sorted(board.peers.items())
            if line.state not in ("finished", "killed")
        ],
        events=str(options.events),
        weights=str(folder),
    )


def _weights_of(options: DemoOptions, finished: Mapping[str, object]) -> Path:
    index = min(int(name.rpartition("-")[2]) for name in finished)
    return options.trainer_folder(index) / "state" / "weights"
