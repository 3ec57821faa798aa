"""Events of runs and participants. Generated: run scripts/gen/event_types.py instead of editing.

Owns: one frozen record per event of the program, as its IDL describes it.
Never: decodes (event_base.py) or finds events in logs (events.py).
Next: event_types.py for the table by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from solders.pubkey import Pubkey

from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.params_view import ParamsView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCreated(Event):
    """A run was created."""

    kind: ClassVar[int | None] = 1

    run_id: bytes
    authority: Pubkey
    council: Pubkey
    config_hash: bytes
    manifest_hash: bytes
    genesis_root: bytes
    params: ParamsView


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterInitialized(Event):
    """The roster reached its full size."""

    kind: ClassVar[int | None] = 2

    roster: Pubkey
    payer: Pubkey


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundInitialized(Event):
    """A position of the ring was created."""

    kind: ClassVar[int | None] = 3

    position: int
    payer: Pubkey


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantAdmitted(Event):
    """The authority admitted an owner."""

    kind: ClassVar[int | None] = 4

    owner: Pubkey


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFunded(Event):
    """The reward pool grew."""

    kind: ClassVar[int | None] = 5

    funder: Pubkey
    lamports: int
    reward_pool: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantJoined(Event):
    """An owner deposited the stake and took an index."""

    kind: ClassVar[int | None] = 6

    owner: Pubkey
    session: Pubkey
    index: int
    roles: int
    stake: int
    round: int
    endpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeToppedUp(Event):
    """A participant added stake."""

    kind: ClassVar[int | None] = 7

    index: int
    lamports: int
    stake: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeySet(Event):
    """A participant named a new session key."""

    kind: ClassVar[int | None] = 8

    index: int
    session: Pubkey
    at_next_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestAnnounced(Event):
    """A participant says where a checkpoint's files are: a hint, never authority."""

    kind: ClassVar[int | None] = 9

    index: int
    owner: Pubkey
    round: int
    manifest_hash: bytes
    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequested(Event):
    """The run pauses at the next close."""

    kind: ClassVar[int | None] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseCancelled(Event):
    """The requested pause will not happen."""

    kind: ClassVar[int | None] = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused(Event):
    """The clock of the run stopped."""

    kind: ClassVar[int | None] = 12

    resume_phase: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed(Event):
    """The clock of the run goes on; its deadlines moved."""

    kind: ClassVar[int | None] = 13

    phase: int
    paused_slots: int
    pause_total_slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamsRequested(Event):
    """New parameters wait for an epoch boundary."""

    kind: ClassVar[int | None] = 14

    params: ParamsView


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamsApplied(Event):
    """The pending parameters are in force."""

    kind: ClassVar[int | None] = 15

    epoch: int
    params: ParamsView


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveRequested(Event):
    """A participant starts leaving: its stake unbonds."""

    kind: ClassVar[int | None] = 16

    index: int
    stake: int
    matures_clock: int
    at_next_open: bool
    duty_until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantLeft(Event):
    """A participant is no longer a member."""

    kind: ClassVar[int | None] = 17

    index: int
    owner: Pubkey
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeUnbonding(Event):
    """Stake above the minimum starts unbonding."""

    kind: ClassVar[int | None] = 18

    index: int
    lamports: int
    matures_clock: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeWithdrawn(Event):
    """Matured stake was paid to its owner."""

    kind: ClassVar[int | None] = 19

    owner: Pubkey
    lamports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardClaimed(Event):
    """Vested rewards were paid to their owner."""

    kind: ClassVar[int | None] = 20

    owner: Pubkey
    vested: int
    lamports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsMoved(Event):
    """Rewards left behind at a reused index went to their owner's account."""

    kind: ClassVar[int | None] = 21

    owner: Pubkey
    index: int
    lamports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantClosed(Event):
    """A settled participant account was closed."""

    kind: ClassVar[int | None] = 22

    owner: Pubkey
    payer: Pubkey


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountClosed(Event):
    """A round or checkpoint account was closed."""

    kind: ClassVar[int | None] = 23

    account: Pubkey
    payer: Pubkey


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoversPaid(Event):
    """The lamports that are owed to nobody went to the funder."""

    kind: ClassVar[int | None] = 24

    funder: Pubkey
    lamports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClosed(Event):
    """Vault, roster and run were closed; the chain hash ends here."""

    kind: ClassVar[int | None] = 25

    funder: Pubkey


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSet(Event):
    """A participant serves what it holds at another address."""

    kind: ClassVar[int | None] = 26

    index: int
    endpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMoved(Event):
    """A record that must outlive a membership moved between the roster and the owner's account."""

    kind: ClassVar[int | None] = 27

    owner: Pubkey
    index: int
    is_in_force: bool
    work_faults: int
    strikes: int
    openings_step: int
    jailed_until_round: int
