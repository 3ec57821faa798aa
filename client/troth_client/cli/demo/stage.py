"""Set the stage: an embedded chain with the shipped program, data from real text, a funded run.

Owns: the order and the keys of the demo. Never: keeps a key beyond the demo's folder.
Next: `trainer.py`, `show.py`.
"""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from solders.keypair import Keypair

from troth_client.cli.demo.options import DemoOptions
from troth_client.cli.participant import ParticipantSettings
from troth_client.data.prepare import PrepareOptions, PrepareProgress, prepare
from troth_client.data.sources import stdlib_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.files import atomic_write
from troth_client.genesis import genesis_root
from troth_client.telemetry.events import EventSink
from troth_coordinator import artifacts
from troth_coordinator.chain.addresses import run_address
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.instructions import RunTerms
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.operations import Authority
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.settings import RunSettings
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.launcher import Launcher

SOL = 10**9


@dataclass(frozen=True, slots=True)
class Stage:
    """A run that is ready for its trainers."""

    run: str
    config: RunConfig
    settings: RunSettings
    data: Path
    owners: tuple[Keypair, ...]


def start_chain(options: DemoOptions, events: EventSink) -> Launcher:
    """Start the embedded chain with the shipped program."""
    launcher = EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=options.slot_milliseconds))
    launcher.start({program_layout().program_id: artifacts.path(artifacts.PROGRAM_V0)})
    events.emit("chain_started", rpc_url=launcher.rpc_url)
    return launcher


def prepare_data(options: DemoOptions, events: EventSink) -> tuple[Path, bytes]:
    """Prepare the byte-level data set of the Python standard library; return folder and hash."""
    folder = options.folder / "data"

    def report(progress: PrepareProgress) -> None:
        events.emit("data_progress", done=progress.done_bytes, total=progress.total_bytes)

    shape = PrepareOptions(sequence_tokens=options.settings().config.data.sequence_tokens)
    manifest = prepare(folder, stdlib_source(), ByteTokenizer(), shape, report)
    events.emit(
        "data_prepared",
        sequences=manifest.count("train"),
        validation=manifest.count("validation"),
        manifest=manifest.hash.hex(),
    )
    return folder, manifest.hash


async def create_run(
    options: DemoOptions, launcher: Launcher, client: CoordinatorClient, events: EventSink
) -> Stage:
    """Prepare the data, create and fund the run, give every trainer's owner its money."""
    data, manifest = prepare_data(options, events)
    settings = options.settings()
    config = settings.config.with_manifest(manifest)
    authority = Keypair()
    launcher.airdrop(authority.pubkey(), 1_000 * SOL)
    run_id = secrets.token_bytes(32)
    run = run_address(run_id)
    terms = RunTerms(
        run_id=run_id,
        config_hash=config.config_hash(),
        manifest_hash=manifest,
        genesis_root=genesis_root(bytes(run), config),
        council=authority.pubkey(),
        params=settings.chain.to_view(),
    )
    rewards = settings.chain.reward_per_payload * options.num_trainers * options.num_rounds
    acting = Authority.create_at(client, authority, terms)
    sent = await acting.create_run(terms, fund_lamports=rewards)
    owners = tuple(Keypair() for _ in range(options.num_trainers))
    for owner in owners:
        launcher.airdrop(owner.pubkey(), settings.chain.stake_lamports + SOL)
    _save_keys(options.folder / "keys", {"authority": authority, **_named(owners)})
    events.emit(
        "run_created",
        run=str(run),
        rounds=options.num_rounds,
        trainers=options.num_trainers,
        fund=rewards,
        fees=sum(one.fee_lamports for one in sent),
    )
    return Stage(str(run), config, settings, data, owners)


def trainer_settings(
    options: DemoOptions, stage: Stage, rpc_url: str, index: int
) -> ParticipantSettings:
    """Return what one trainer process is told."""
    return ParticipantSettings(
        rpc_url=rpc_url,
        run=stage.run,
        config=stage.config,
        data=stage.data,
        state=options.trainer_folder(index) / "state",
        owner=bytes(stage.owners[index]),
        session=bytes(Keypair()),
        device="cpu",
        poll_seconds=options.slot_milliseconds / 2_000,
        num_threads=1,
    )


def _named(owners: tuple[Keypair, ...]) -> dict[str, Keypair]:
    return {f"trainer-{index}": owner for index, owner in enumerate(owners)}


def _save_keys(folder: Path, keys: dict[str, Keypair]) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, key in keys.items():
        path = folder / f"{name}.json"
        atomic_write(path, [json.dumps(list(bytes(key))).encode()])
        path.chmod(0o600)
