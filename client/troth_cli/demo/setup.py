"""The start of a demo: a chain with the shipped program, data from real text, a funded run.

Owns: the order, the keys and the money of the demo. Never: keeps a key outside the demo's folder.
Next: `participant.py`, `runner.py`.
"""

import asyncio
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.demo.options import DemoOptions, ParticipantPlan
from troth_cli.demo.participant import ParticipantProcess
from troth_client.data.prepare import PrepareOptions, PrepareProgress, prepare
from troth_client.data.sources import stdlib_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.model.genesis import genesis_root
from troth_client.participant.settings import ParticipantSettings
from troth_client.runtime.files import atomic_write
from troth_client.telemetry.events import EventSink
from troth_coordinator import artifacts
from troth_coordinator.chain.addresses import run_address
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.instructions import RunTerms
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.operations import Authority
from troth_coordinator.rules.audits import JURY_SEATS, MAX_SEATS
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.params import ChainParams
from troth_localnet.launcher import Launcher

SOL = 10**9
AUTHORITY_LAMPORTS = 100 * SOL
SESSION_LAMPORTS = SOL // 2
"""Lamports for the rent of all audits that one participant may open at a time."""
OWNER_LAMPORTS = 2 * SOL
"""Lamports beside the stake: the session key's share, and as much again for refills."""


@dataclass(frozen=True, slots=True)
class DemoParticipant:
    """A participant and its two keys."""

    plan: ParticipantPlan
    owner: Keypair
    session: Keypair


@dataclass(frozen=True, slots=True)
class DemoRun:
    """A run that is ready for its participants. `paid`: all lamports that the faucet gave."""

    program: Pubkey
    run: Pubkey
    config: RunConfig
    data: Path
    authority: Keypair
    participants: tuple[DemoParticipant, ...]
    paid: int

    @property
    def addresses(self) -> list[Pubkey]:
        """The accounts outside the program that hold money of this run."""
        keys = [key for one in self.participants for key in (one.owner, one.session)]
        return [self.authority.pubkey(), *(key.pubkey() for key in keys)]


def start_chain(launcher: Launcher, events: EventSink) -> None:
    """Start a chain with the shipped program."""
    launcher.start({program_layout().program_id: artifacts.path(artifacts.PROGRAM_V0)})
    events.emit("chain_started", rpc_url=launcher.rpc_url)


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


async def create_run(options: DemoOptions, client: CoordinatorClient, events: EventSink) -> DemoRun:
    """Prepare the data, create and fund the run, fund every owner."""
    # In a thread, so that the display draws the events meanwhile.
    data, manifest = await asyncio.to_thread(prepare_data, options, events)
    settings = options.settings()
    config = settings.config.with_manifest(manifest)
    participants = tuple(DemoParticipant(plan, Keypair(), Keypair()) for plan in options.plans)
    authority = _authority(options.seed)
    _save_keys(options.folder / "keys", authority, participants)
    run_id = _run_id(options.seed)
    run = run_address(authority.pubkey(), run_id, client.program_id)
    terms = RunTerms(
        run_id=run_id,
        config_hash=config.config_hash(),
        manifest_hash=manifest,
        genesis_root=genesis_root(bytes(run), config),
        council=authority.pubkey(),
        params=settings.chain.to_view(),
    )
    await client.airdrop(authority.pubkey(), AUTHORITY_LAMPORTS)
    acting = Authority.create_at(client, authority, terms)
    fund = _rewards_a_round(settings.chain, len(participants)) * options.num_rounds
    sent = await acting.create_run(terms, fund_lamports=fund)
    each = settings.chain.min_stake_lamports + OWNER_LAMPORTS
    await asyncio.gather(*(client.airdrop(one.owner.pubkey(), each) for one in participants))
    events.emit(
        "run_created",
        run=str(acting.at.run),
        rounds=options.num_rounds,
        participants=len(participants),
        fund=fund,
        fee=sum(one.fee_lamports for one in sent),
    )
    paid = AUTHORITY_LAMPORTS + each * len(participants)
    return DemoRun(client.program_id, acting.at.run, config, data, authority, participants, paid)


def participant_processes(
    options: DemoOptions, demo: DemoRun, rpc_url: str
) -> list[ParticipantProcess]:
    """Return the settings of each participant's process."""
    return [
        ParticipantProcess(
            participant.plan.name,
            ParticipantSettings(
                rpc_urls=(rpc_url,),
                run=str(demo.run),
                config=demo.config,
                data=demo.data,
                state=options.participant_folder(participant.plan.name) / "state",
                owner=bytes(participant.owner),
                session=bytes(participant.session),
                role=participant.plan.role,
                device="cpu",
                poll_seconds=options.slot_milliseconds / 2_000,
                session_lamports=SESSION_LAMPORTS,
                num_threads=1,
                program=str(demo.program),
                # A power cut ends the chain of the demo, too: there is nothing to come back to.
                is_durable=False,
            ),
            options.participant_folder(participant.plan.name),
            participant.plan.cheat,
        )
        for participant in demo.participants
    ]


def _rewards_a_round(params: ChainParams, num_participants: int) -> int:
    """Return the highest cost of a round: all payloads, all seats of its audits, one case."""
    fees = params.audit_cap * MAX_SEATS + JURY_SEATS
    return params.reward_per_payload * num_participants + params.witness_fee * fees


def _run_id(seed: int | None) -> bytes:
    return secrets.token_bytes(32) if seed is None else H("troth:demo", u64(seed))


def _authority(seed: int | None) -> Keypair:
    """Return the key that creates the run: the run's address follows from it, and from the id."""
    return Keypair() if seed is None else Keypair.from_seed(H("troth:demo-authority", u64(seed)))


def _save_keys(folder: Path, authority: Keypair, participants: tuple[DemoParticipant, ...]) -> None:
    """Keep the keys, so that `troth status`, `leave` and `claim` can be tried on the same chain."""
    folder.mkdir(mode=0o700, parents=True)
    owners = ((one.plan.name, one.owner) for one in participants)
    for name, key in [("authority", authority), *owners]:
        path = folder / f"{name}.json"
        atomic_write(path, [json.dumps(list(bytes(key))).encode()], is_secret=True)
