"""Put a member together: from a config, keys and ports to a participant that can take part.

Owns: the order of start-up: known-answer test, weights from disk or from genesis, their root
against the chain, the residual and the served payloads as a stopped process left them.
Never: opens a socket or reads a command line; `process.py` and the simulation do.
Next: `../member.py`, `supervisor.py`.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray

from troth_client.audit.witness import HonestWitnessWork, Witness, WitnessWork
from troth_client.checkpoint.state_store import StateStore
from troth_client.compression.known_answer import ApplyPath, choose_path
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.member import Member
from troth_client.model.device import Device
from troth_client.model.init import initial_weights
from troth_client.model.llama import Llama
from troth_client.model.weights import load_weights, weight_views
from troth_client.network.chain import Identity, RunChain
from troth_client.network.expecting import last_over
from troth_client.network.fee_funds import FeeFunds
from troth_client.network.reading import LeanReader, Reader
from troth_client.network.submissions import Submissions
from troth_client.network.watch import ChainWatcher
from troth_client.participant.errors import ConfigMismatchError
from troth_client.runtime.base import Runtime
from troth_client.state.audit_state import AuditState
from troth_client.state.audit_tracker import AuditTracker
from troth_client.state.kept_weights import KeptWeights
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.past_states import MEMORY_BYTES, PastStates
from troth_client.state.replica import Replica
from troth_client.state.residual_archive import KeptRounds, ResidualArchive
from troth_client.state.residual_state import ResidualState, Undo
from troth_client.state.retention import Retention
from troth_client.state.round_state import RoundState, Sequences
from troth_client.state.verdict_store import VerdictStore
from troth_client.state.work import HonestWork, TrainerWork
from troth_client.steps.replay import Replay
from troth_client.storage import Store, report_damage
from troth_client.storage.entries import WeightState
from troth_client.telemetry.events import EventSink
from troth_client.train.learner import DEFAULT, Learner
from troth_client.train.team import Team
from troth_client.transport.base import Transport
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.subscription import RunPushes
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest, ParticipantIndex, RoundIndex
from troth_coordinator.rules.view import RunView

Weights = Mapping[str, NDArray[np.float32]]


def as_trainer(honest: HonestWork) -> TrainerWork:
    """Train as the run asks for."""
    return honest


def as_witness(honest: HonestWitnessWork) -> WitnessWork:
    """Judge as the run asks for."""
    return honest


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a member: chain, transport, events, time, and the work that it computes.

    `trains` and `judges` may replace the honest work; cheats use them. `hubs` and `stores` are
    this machine's own, beside those of the run's config. With `pushes` the chain is read sparingly;
    without, every look reads everything. `ranks` are processes that compute gradients with us; they
    meet while the weights are loaded.
    """

    chain: CoordinatorClient
    transport: Transport
    store: Store
    runtime: Runtime
    events: EventSink
    trains: Callable[[HonestWork], TrainerWork] = as_trainer
    judges: Callable[[HonestWitnessWork], WitnessWork] = as_witness
    hubs: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    pushes: RunPushes | None = None
    ranks: Team | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a member: data, device, threads for hashing, its own random numbers.

    `start` reads the given first weights of a run from this machine's own folder.
    `learner` computes its gradients, on that device and perhaps on others. `past_bytes` bounds what
    of past weights, and of past residuals, stays in memory beside the disk.
    """

    data: Sequences
    device: Device
    start: Callable[[], Weights] | None = None
    hashers: Executor | None = None
    random: Random = field(default_factory=Random)
    learner: Learner = DEFAULT
    past_bytes: int = MEMORY_BYTES


@dataclass(frozen=True, slots=True)
class EarlyParts:
    """The parts of a member that need no weights: it reads the chain, signs, shows its files."""

    chain: RunChain
    audits: AuditState


def check_config(view: RunView, config: RunConfig) -> None:
    """Raise ConfigMismatchError unless config and data manifest are those of the run."""
    for what, wanted, found in (
        ("config hash", view.config_hash, config.config_hash()),
        ("data manifest hash", view.manifest_hash, config.manifest_digest()),
    ):
        if wanted != found:
            raise ConfigMismatchError(
                f"{what} {wanted.hex()}, which the run has on chain",
                found.hex(),
                "Use the config file and the data set that the run's creator published.",
            )


def early_parts(
    view: RunView, config: RunConfig, identity: Identity, genesis_hash: Digest, ports: Ports
) -> EarlyParts:
    """Return what works before any weights are read; kept opening sets are served from here on.

    Raises ConfigMismatchError.
    """
    check_config(view, config)
    chain = _run_chain(view, identity, genesis_hash, ports)
    audits = _audit_state(chain, config, ports)
    ports.transport.show(audits.openings)
    return EarlyParts(chain, audits)


def assemble(
    view: RunView, config: RunConfig, early: EarlyParts, ports: Ports, resources: Resources
) -> Member:
    """Return a member that stands where its store left it, or at genesis.

    Raises ConfigMismatchError for other weights, and KnownAnswerError on a machine that cannot
    apply exactly.
    """
    chain, audits = early.chain, early.audits
    stored = ports.store.newest_weights()
    first = _first_weights(view, config, resources) if stored is None else stored.tensors
    model = Llama(config.model).to(resources.device.torch)  # zeros
    if first is not None:
        load_weights(model, first)
    resources.learner.prepare(model, config, resources.device)
    state = _round_state(view, config, model, ports, resources)
    state.has_weights = first is not None
    ports.transport.use_stores((*config.network.stores, *ports.stores), signs=True)
    relays = tuple(dict.fromkeys((*config.network.relays, *ports.hubs, *ports.stores)))
    submissions = Submissions(chain, state, ports.transport, resources.random, relays)
    member = Member(
        chain=chain,
        state=state,
        audits=audits,
        submissions=submissions,
        work=ports.trains(_honest_work(state, audits, model, resources)),
        witness=Witness(
            chain, submissions, audits, ports.judges(HonestWitnessWork(config, resources.device))
        ),
        replay=Replay(chain, submissions, audits),
    )
    ports.transport.show_states(state.states)
    _resume(member, view, stored)
    ports.store.room.add(partial(_drop_blobs, member.submissions, ports.store))
    ports.store.needs_weights(partial(_needed_rounds, member))
    ports.store.room.add(ports.store.drop_old_weights)
    return member


def _first_weights(view: RunView, config: RunConfig, resources: Resources) -> Weights | None:
    """Return w_0; None if the run's creator gave it, and it is not on this machine."""
    if not config.has_given_start:
        return initial_weights(view.address, config.model)
    return None if resources.start is None else resources.start()


def joined(member: Member, index: ParticipantIndex) -> Member:
    """Return the member as it goes on after it has joined under this index."""
    chain = replace(member.chain, identity=replace(member.chain.identity, index=index))
    submissions = replace(member.submissions, chain=chain)
    return replace(
        member,
        chain=chain,
        submissions=submissions,
        witness=replace(member.witness, chain=chain, submissions=submissions),
        replay=Replay(chain, submissions, member.audits),
    )


def _run_chain(view: RunView, identity: Identity, genesis_hash: Digest, ports: Ports) -> RunChain:
    at = RunAddresses.of(view, ports.chain.program_id)
    reader: Reader | None = None
    if ports.pushes is not None:
        reader = LeanReader(ports.chain, at.run, ports.pushes, time.monotonic)
    watch = ChainWatcher(ports.chain, at.run, ports.runtime, ports.events, reader)
    funds = FeeFunds(ports.chain.pricing.policy.send_cap)
    made = RunChain(ports.chain, at, genesis_hash, identity, watch, ports.runtime, ports.events)
    return replace(made, funds=funds)


def _round_state(
    view: RunView, config: RunConfig, model: Llama, ports: Ports, resources: Resources
) -> RoundState:
    views = weight_views(model)
    layout = TileLayout.from_shapes({name: tuple(view.shape) for name, view in views.items()})
    path = choose_path(resources.device.torch, num_tiles=layout.num_tiles, k=config.demo.k)
    report_path(path, ports.events)
    keep, ring = view.params.keep_rounds, view.params.ring
    past = PastStates(keep, ports.store, resources.past_bytes)
    replica = Replica(config, views, path, past, resources.hashers)
    rule = Residual.of(config)
    undo = Undo(keep, config.demo.k, ports.store.load_residual)
    return RoundState(
        config=config,
        data=resources.data,
        replica=replica,
        residual=ResidualState(rule, layout.num_tiles, undo, path),
        archive=ResidualArchive(ports.store, KeptRounds(keep, ring, resources.past_bytes)),
        store=ports.store,
        states=StateStore(ports.store, report_damage(ports.events)),
        retention=Retention.of(view.params),
        runtime=ports.runtime,
        events=ports.events,
    )


def report_path(path: ApplyPath, events: EventSink) -> None:
    """Report where payloads are applied, and why it is not the fastest way where it is not."""
    events.emit(
        "apply_path",
        device=str(path.device),
        reason=path.reason,
        compiled=path.kernels is not None,
        note=path.note,
    )
    if path.reason or path.note:
        how = "compiled kernels" if path.kernels is not None else "torch"
        in_integers = " in int64" if path.dtype == torch.int64 else ""
        instead = f"{how} on {path.device}{in_integers}"
        events.emit("slower_path", instead=instead, reason=path.reason or path.note)


def _audit_state(chain: RunChain, config: RunConfig, ports: Ports) -> AuditState:
    store, report = ports.store, report_damage(ports.events)
    return AuditState(
        openings=OpeningsStore(store.folder / "openings", store.room, durable=store.durable),
        kept=KeptWeights(store, config.config_hash()),
        verdicts=VerdictStore(
            store.folder / "verdicts", store.salt_key, report, store.durable, store.room
        ),
        tracker=AuditTracker(ports.chain, chain.at, ports.runtime, ports.events),
    )


def _honest_work(
    state: RoundState, audits: AuditState, model: Llama, resources: Resources
) -> HonestWork:
    return HonestWork(
        config=state.config,
        model=model,
        device=resources.device,
        layout=state.replica.layout,
        residual=state.residual,
        archive=state.archive,
        openings=audits.openings,
        path=state.replica.path,
        learner=resources.learner,
    )


def _resume(member: Member, view: RunView, stored: WeightState | None) -> None:
    """Take up the stored weights, the residual and the served payloads; check a new start."""
    state = member.state
    if not state.has_weights:
        return
    if stored is None:
        _check_genesis(state, view)
        state.save_weights()
        return
    state.replica.restore(state.replica.weights, RoundIndex(stored.round), stored.cursor)
    entry = state.store.newest_residual()
    if entry is not None:
        state.residual.resume(entry, state.config.demo.k)
        if state.store.load_submission(entry.round) is None:
            # The process stopped before the submission was whole on disk: M is unchanged, and the
            # round is made again.
            state.residual.proposal = None
    _hold_own(member.submissions, state.store)
    # Rounds before the replica's are closed on chain, whatever an RPC node that lags shows now.
    over = max(last_over(view), state.replica.round - 1)
    if over >= 0:
        member.submissions.transport.release(RoundIndex(over))


def _hold_own(submissions: Submissions, store: Store) -> None:
    for round_ in store.submission_rounds():
        submission = store.load_submission(round_)
        if submission is not None:
            submissions.hold(submission)


def _drop_blobs(submissions: Submissions, store: Store) -> None:
    """Forget the bytes of closed rounds that others have, too; our own we hold again.

    Those that the disk cannot take any more are held in memory.
    """
    submissions.transport.drop_before(max(store.submission_rounds(), default=0))
    _hold_own(submissions, store)


def _needed_rounds(member: Member) -> list[int]:
    """Return the rounds whose weights are needed, the least missed first.

    Judges need those of audits under way. A run that halts starts again from its stored root.
    """
    root, held = member.chain.watch.latest.run.root_round, member.audits.tracker.held_rounds
    return [*sorted(held - {root}), root]


def _check_genesis(state: RoundState, view: RunView) -> None:
    found = state.replica.root()
    if found != view.genesis_root:
        raise ConfigMismatchError(
            f"genesis root {view.genesis_root.hex()}, which the run has on chain",
            found.hex(),
            "The run was created with other software or other weights; check the troth version, and"
            " the folder of the start weights if you named one.",
        )
