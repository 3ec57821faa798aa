"""Events of rounds and seeds. Generated: run scripts/gen/event_types.py instead of editing.

Owns: one frozen record per event of the program, as its IDL describes it.
Never: decodes (event_base.py) or finds events in logs (events.py).
Next: event_types.py for the table by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from troth_coordinator.chain.event_base import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted(Event):
    """A phase without a round of its own began.

    WaitingForMembers, Warmup, Attest, Halted, Finished.
    """

    kind: ClassVar[int | None] = 32

    phase: int
    round: int
    ends_slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupEnded(Event):
    """Warmup ended: ready participants became active, the others inactive."""

    kind: ClassVar[int | None] = 33

    round: int
    ready: int
    absent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOpened(Event):
    """A round, or the root-only step of Cooldown, opened: its sets are fixed."""

    kind: ClassVar[int | None] = 34

    round: int
    epoch: int
    cursor: int
    root_only: bool
    ends_slot: int
    members: int
    trainers: int
    eligible: int
    is_new: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipChanged(Event):
    """Requests that waited for the end of a round took effect."""

    kind: ClassVar[int | None] = 35

    round: int
    left: int
    rotated: int
    short: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSettled(Event):
    """Rewards, misses and strikes of a closed round."""

    kind: ClassVar[int | None] = 36

    round: int
    reward_paid: int
    reward_window: int
    vested: int
    missed_commit: int
    missed_attest: int
    inactivated: int
    fees: int
    struck: int
    jailed: int
    withheld: int
    probation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardsScaled(Event):
    """The pool could not pay the rewards of a round in full."""

    kind: ClassVar[int | None] = 37

    round: int
    reward_per_payload: int
    reward_paid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStored(Event):
    """The program stored a canonical root."""

    kind: ClassVar[int | None] = 38

    round: int
    cursor: int
    epoch: int
    root: bytes
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPosted(Event):
    """A participant says that it holds the weights."""

    kind: ClassVar[int | None] = 39

    index: int
    round: int
    vote: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated(Event):
    """A joiner's weights match the canonical root."""

    kind: ClassVar[int | None] = 40

    index: int
    ready_round: int
    active_round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedFrozen(Event):
    """The seed of a round's audits is fixed."""

    kind: ClassVar[int | None] = 41

    round: int
    seed_slot: int
    found_slot: int
    slot_hash: bytes
    seed: bytes
    sampled: int
    unseated: int
    reward_undone: int
    price_base: int
    price_new: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRetargeted(Event):
    """The seed slot was lost once: a later one is asked for."""

    kind: ClassVar[int | None] = 42

    round: int
    seed_slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedLost(Event):
    """The seed slot was lost twice: the round has no audit."""

    kind: ClassVar[int | None] = 43

    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingReported(Event):
    """A member lacks an included payload."""

    kind: ClassVar[int | None] = 44

    round: int
    target: int
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadStruck(Event):
    """Half of the members lack an included payload.

    It is struck, and the open round closes void.
    """

    kind: ClassVar[int | None] = 45

    round: int
    target: int
    open_round: int
    included: int
    reward_undone: int
    vouchers: int
    jailed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attested(Event):
    """A member attested (plain)."""

    kind: ClassVar[int | None] = None

    round: int
    index: int
    bitmap: int
    possession: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadCommitted(Event):
    """A trainer committed a payload, or its root vote in a root-only step (plain)."""

    kind: ClassVar[int | None] = None

    round: int
    index: int
    header_hash: bytes
    root_vote: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundClosed(Event):
    """A round or root-only step closed (plain): its record is in the chain hash."""

    kind: ClassVar[int | None] = None

    round: int
    flags: int
    members: int
    trainers: int
    committed: int
    attested: int
    included: int
    canonical_root: bytes
    seed_slot: int
    chain_hash: bytes
