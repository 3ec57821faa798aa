"""Put a peer together: from a config, keys and doors to something that can run a round.

Owns: the order of start-up: known-answer test, weights from disk or from genesis, their root
against the chain, the residual and the shelf as a stopped process left them.
Never: opens a socket or reads a command line; the callers in `cli/` do.
Next: `peer.py`, `participant/supervisor.py`.
"""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from troth_client.audit.tracker import AuditTracker
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Residual
from troth_client.errors import ClientError
from troth_client.model.device import Device
from troth_client.model.init import initial_weights
from troth_client.model.weights import build, weight_views
from troth_client.participant.audits import attend
from troth_client.participant.peer import Identity, Peer, Sequences
from troth_client.runtime.clock import Clock
from troth_client.state.kept_weights import KeptWeights
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.replica import Replica
from troth_client.state.residual_archive import Keeping, ResidualArchive
from troth_client.state.residual_state import ResidualState
from troth_client.state.verdict_store import VerdictStore
from troth_client.steps.publish import hold
from troth_client.steps.settle import save_weights
from troth_client.storage import Store
from troth_client.storage.sealed import DamagedFileError
from troth_client.telemetry.events import EventSink
from troth_client.transport.base import Transport
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest, RoundIndex
from troth_coordinator.rules.view import RunView

Weights = Mapping[str, NDArray[np.float32]]


class ConfigMismatchError(ClientError):
    """The config or the data at hand is not that of the run."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What connects a peer with the world and with time."""

    chain: CoordinatorClient
    transport: Transport
    store: Store
    clock: Clock
    events: EventSink


@dataclass(frozen=True, slots=True)
class Resources:
    """What a peer computes with: data, device, threads for hashing, its own random numbers."""

    data: Sequences
    device: Device
    hashers: Executor | None = None
    random: Random = field(default_factory=Random)


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


def assemble(
    view: RunView,
    config: RunConfig,
    identity: Identity,
    genesis_hash: Digest,
    doors: Ports,
    workshop: Resources,
) -> Peer:
    """Return a peer that stands where its store left it, or at genesis.

    Raises ConfigMismatchError, and KnownAnswerError on a machine that cannot apply exactly.
    """
    check_config(view, config)
    path = choose_path(workshop.device.torch)
    doors.events.emit("apply_path", device=str(path.device), reason=path.reason)
    stored = doors.store.newest_weights()
    genesis = initial_weights(view.address, config.model) if stored is None else stored.tensors
    model = build(config.model, genesis, workshop.device.torch)
    keep = view.params.keep_rounds
    replica = Replica(config, weight_views(model), path, keep, workshop.hashers)
    rule = Residual(config.demo.beta_micro, config.demo.alpha_micro)
    at = RunAddresses.of(view, doors.chain.program_id)
    peer = Peer(
        at=at,
        genesis_hash=genesis_hash,
        identity=identity,
        config=config,
        chain=doors.chain,
        transport=doors.transport,
        store=doors.store,
        clock=doors.clock,
        events=doors.events,
        model=model,
        device=workshop.device,
        data=workshop.data,
        replica=replica,
        residual=ResidualState(rule, replica.layout.num_tiles, keep),
        archive=ResidualArchive(doors.store, Keeping(keep, view.params.ring), workshop.hashers),
        desk=OpeningsStore(doors.store.folder / "openings"),
        kept=KeptWeights(doors.store, config.config_hash()),
        verdicts=_verdict_book(doors),
        tracker=AuditTracker(doors.chain, at, doors.events),
        attend=attend,
        keep_rounds=max(keep, view.params.ring - 1),
        random=workshop.random,
    )
    doors.transport.show(peer.desk)
    if stored is None:
        _check_genesis(peer, view)
        save_weights(peer)
    else:
        replica.restore(replica.weights, RoundIndex(stored.round), stored.cursor)
        _resume(peer)
    return peer


def _verdict_book(doors: Ports) -> VerdictStore:
    def damaged(error: DamagedFileError) -> None:
        doors.events.emit("file_damaged", reason=str(error))

    store = doors.store
    return VerdictStore(store.folder / "verdicts", store.salt_key, damaged, store.durable)


def _check_genesis(peer: Peer, view: RunView) -> None:
    found = peer.replica.root()
    if found != view.genesis_root:
        raise ConfigMismatchError(
            f"genesis root {view.genesis_root.hex()}, which the run has on chain",
            found.hex(),
            "The run was created with other software or other weights; check the troth version.",
        )


def _resume(peer: Peer) -> None:
    """Take up the residual and put everything that is kept on the shelf again."""
    entry = peer.store.newest_residual()
    if entry is not None:
        peer.residual.resume(entry, peer.config.demo.k)
        if peer.store.load_submission(entry.round) is None:
            # Stopped before the submission was whole on disk: M stands, the round is made again.
            peer.residual.proposal = None
    own = [peer.store.load_submission(round_) for round_ in peer.store.submission_rounds()]
    for submission in own:
        if submission is not None:
            hold(peer, submission)
    # Rounds before the replica's are closed on chain: their Commit phases have ended.
    if peer.replica.round > 0:
        peer.transport.release(RoundIndex(peer.replica.round - 1))
