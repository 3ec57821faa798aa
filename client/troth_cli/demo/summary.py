"""The claims of a demo, computed from the chain, the exported weights and the payloads' sizes.

Owns: the claims of the summary and their checks. Losses and roots are computed here from the
exported weights, fees from the lamports that are missing on the chain. Never: believes a
participant about a loss, a root or a fee.
Next: `outcome.py` for the cheat; `runner.py`, which calls this; `report.py` for the words.
"""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from multiprocessing import get_context

from numpy import float32, int64
from numpy.typing import NDArray

from troth_attestation.state import state_root
from troth_cli.demo.errors import DemoError
from troth_cli.demo.options import DemoOptions
from troth_cli.demo.outcome import Outcome, read_outcome
from troth_cli.demo.setup import DemoRun
from troth_client.data.manifest import load_manifest
from troth_client.data.shards import TokenData
from troth_client.model.export import load_export
from troth_client.model.init import initial_weights
from troth_client.telemetry.board import Board
from troth_client.telemetry.events import JsonValue
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.config import ModelSection
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RunView

NUM_VALIDATION_SEQUENCES = 64
DENSE_BYTES_PER_PARAMETER = 2
"""Bytes per parameter of a bf16 gradient, which every trainer would send without DeMo."""

Weights = dict[str, NDArray[float32]]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The chain after a run: its account, the lamports spent on fees, the outcome."""

    run: RunView
    fees: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Summary:
    """The outcome of a demo; `is_success` is its exit code.

    Losses are in micro-nats per token on held-out sequences; fees are in lamports. `payload_bytes`
    is the size of one trainer's payload, `dense_bytes` the size of a bf16 gradient. `roots`,
    `missing` and `killed` are about the honest participants.
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
    roots: dict[str, str]
    missing: list[str]
    killed: list[str]
    events: str
    weights: str
    outcome: Outcome

    @property
    def fell_by_micro(self) -> int:
        """How far the validation loss fell, in micro-nats."""
        return self.loss_first_micro - self.loss_last_micro

    @property
    def agrees(self) -> bool:
        """Whether every participant that was not killed holds the root that is on chain."""
        return set(self.roots.values()) == {self.chain_root} and not self.missing

    @property
    def has_learnt(self) -> bool:
        """Whether the loss fell by the margin."""
        return self.fell_by_micro >= self.margin_micro

    @property
    def moved_stakes(self) -> list[str]:
        """The honest whose stake moved, without those that were killed."""
        return self.outcome.moved(self.killed)

    @property
    def is_success(self) -> bool:
        """Whether every claim of the demo holds."""
        is_right = self.outcome.is_caught and not self.moved_stakes
        return self.agrees and self.has_learnt and is_right

    def to_json(self) -> dict[str, JsonValue]:
        """Return all fields and the verdicts, ready for JSON."""
        verdicts: dict[str, JsonValue] = {
            "fell_by_micro": self.fell_by_micro,
            "agrees": self.agrees,
            "moved_stakes": self.moved_stakes,
            "is_success": self.is_success,
        }
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**plain, "outcome": self.outcome.to_json(), **verdicts}


async def read_ledger(client: CoordinatorClient, options: DemoOptions, demo: DemoRun) -> Ledger:
    """Read the run and count the remaining lamports; the rest was burned or spent on fees.

    The chain is the demo's own, so every account of the program belongs to this run.
    """
    run = await client.read_run(demo.run)
    held = await client.rpc.get_program_accounts(client.program_id, [])
    _slot, accounts = await client.rpc.get_accounts(demo.addresses)
    left = sum(one.lamports for _, one in held) + sum(one.lamports for one in accounts if one)
    outcome = await read_outcome(client, options, demo)
    return Ledger(run, demo.paid - left - outcome.burned, outcome)


def summarise(options: DemoOptions, demo: DemoRun, board: Board, ledger: Ledger) -> Summary:
    """Check the run's end: one root everywhere, and the loss of the exported weights.

    Raises DemoError when nobody honest has left weights behind.
    """
    run = ledger.run
    finished = [name for name in options.names if board.state_of(name) == "finished"]
    killed = [name for name in options.names if board.state_of(name) == "killed"]
    if not finished:
        raise DemoError(
            "at least one honest participant to finish",
            ", ".join(f"{name} {board.state_of(name)}" for name in options.names),
            f"Their event logs are {options.folder}/*/events.jsonl.",
        )
    roots: dict[str, str] = {}
    weights: Weights = {}
    for name in reversed(finished):
        weights = load_export(options.weights_folder(name))[1]
        root = state_root(weights, run.root_round, run.root_cursor, demo.config.config_hash())
        roots[name] = root.hex()
    size = sum(array.size for array in weights.values())
    payload = max(line.payload_bytes for line in board.participants.values())
    first, last = _losses(demo, run, weights)
    return Summary(
        run=str(demo.run),
        num_rounds=run.round,
        num_parameters=size,
        loss_first_micro=first,
        loss_last_micro=last,
        margin_micro=options.margin_micro,
        payload_bytes=payload,
        bytes_per_parameter=payload / size,
        dense_bytes=DENSE_BYTES_PER_PARAMETER * size,
        num_included=sum(line.num_included for line in board.participants.values()),
        fees_lamports=ledger.fees,
        state_root=roots[finished[0]],
        chain_root=run.root.hex() if run.phase == Phase.FINISHED else "the run is not finished",
        roots={name: roots[name] for name in finished},
        missing=[name for name in options.names if name not in (*finished, *killed)],
        killed=killed,
        events=str(options.events),
        weights=str(options.weights_folder(finished[0])),
        outcome=ledger.outcome,
    )


def _losses(demo: DemoRun, run: RunView, weights: Weights) -> tuple[int, int]:
    """Return the validation loss of the initial weights and of these, in micro-nats.

    The fork server has PyTorch already; its import would take this process seconds.
    """
    manifest = load_manifest(demo.data, demo.config.manifest_digest())
    with TokenData(demo.data, manifest, "validation") as validation:
        batch = validation.sequences(range(min(NUM_VALIDATION_SEQUENCES, len(validation))))
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("forkserver")) as pool:
        return pool.submit(_evaluated, demo.config.model, run.address, weights, batch).result()


def _evaluated(
    config: ModelSection, run: bytes, weights: Weights, batch: NDArray[int64]
) -> tuple[int, int]:
    from troth_client.model.weights import build
    from troth_client.train.evaluate import evaluate

    first = evaluate(build(config, initial_weights(run, config)), batch)
    return first, evaluate(build(config, weights), batch)
