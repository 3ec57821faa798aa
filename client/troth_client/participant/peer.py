"""One participant of one run: its keys, its copy of the model and its doors to the outside.

Owns: the composition that every step receives. Never: behaviour; `steps/` and `roles/` have it.
Next: `round.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from numpy import int64
from numpy.typing import NDArray
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_client.audit.chamber import Chamber
from troth_client.audit.tracker import AuditTracker
from troth_client.model.device import Device
from troth_client.model.llama import Llama
from troth_client.runtime.clock import Clock
from troth_client.state.kept_weights import KeptWeights
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.replica import Replica
from troth_client.state.residual_archive import ResidualArchive
from troth_client.state.residual_state import ResidualState
from troth_client.state.verdict_store import VerdictStore
from troth_client.storage import Store
from troth_client.telemetry.events import EventSink
from troth_client.transport.base import Transport
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Address, Digest, ParticipantIndex, RoundIndex
from troth_coordinator.rules.view import NetworkView


class Sequences(Protocol):
    """Where token sequences come from; `data.shards.TokenData` is the implementation."""

    def __len__(self) -> int:
        """Return the number of sequences N; ids are 0..N-1."""
        ...

    def sequences(self, ids: Sequence[int]) -> NDArray[int64]:
        """Return the sequences as int64 [len(ids), T + 1], hash-checked."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the participant is: owner address, session key, index in the roster."""

    owner: Pubkey
    session: Keypair
    index: ParticipantIndex

    @property
    def owner_address(self) -> Address:
        """The owner as raw bytes."""
        return Address(bytes(self.owner))

    @property
    def session_address(self) -> Address:
        """The session's public key as raw bytes."""
        return Address(bytes(self.session.pubkey()))

    @property
    def session_seed(self) -> bytes:
        """The 32-byte ed25519 seed that signs headers."""
        return bytes(self.session)[:32]


Attend = Callable[["Peer", NetworkView], Awaitable[None]]
"""What a participant does for audits while it waits; `participant/audits.py` has it."""


@dataclass(slots=True)
class Peer:
    """Everything a step needs.

    `keep_rounds` bounds what is kept on disk and served; `endpoints` caches the owner and address
    of each index. `root_round` is that of the run's stored root when we last looked: its weights
    are kept, for a run that halts starts from them again; `kept` finds those that audits need.
    `step` names the step of the round that is under way. `stop` is set when the participant
    is asked to leave.
    """

    at: RunAddresses
    genesis_hash: Digest
    identity: Identity
    config: RunConfig
    chain: CoordinatorClient
    transport: Transport
    store: Store
    clock: Clock
    events: EventSink
    model: Llama
    device: Device
    data: Sequences
    replica: Replica
    residual: ResidualState
    archive: ResidualArchive
    desk: OpeningsStore
    kept: KeptWeights
    verdicts: VerdictStore
    tracker: AuditTracker
    attend: Attend
    keep_rounds: int
    root_round: RoundIndex = field(default=RoundIndex(0))
    step: str = ""
    chamber: Chamber = field(default_factory=Chamber)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    random: Random = field(default_factory=Random)
    endpoints: dict[int, tuple[Address, str]] = field(default_factory=dict)

    @property
    def run(self) -> Address:
        """The run's address as raw bytes, as every hash takes it."""
        return Address(bytes(self.at.run))

    @property
    def index(self) -> ParticipantIndex:
        """The participant's index in the roster."""
        return self.identity.index
