"""Accounts as the chain shows them: frozen records with the program's field names.

Owns: one record per account layout and the enums and flags stored in them.
Never: decodes bytes (`chain/accounts.py` does) and never changes after it was made.
Next: `params_view.py` for the parameters; `progress.py` and `membership.py`, which read them.

Hashes and keys are 32 raw bytes, bitmaps are integers (bit i = participant index i), arrays are
tuples, NONE (2^64-1) means "no round" or "no slot". Padding and reserved bytes are left out.
"""

from dataclasses import dataclass
from enum import IntEnum, IntFlag

from troth_coordinator.rules.ids import (
    Address,
    Bitmap,
    Digest,
    Lamports,
    ParticipantIndex,
    RoundIndex,
    RunId,
    Slot,
)
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.phase import Phase


class Status(IntEnum):
    """The standing of a participant."""

    EMPTY = 0
    PENDING = 1
    ACTIVE = 2
    INACTIVE = 3
    JAILED = 4
    BARRED = 5
    LEFT = 6


class Role(IntFlag):
    """The work of a participant in a round."""

    TRAINER = 1
    WITNESS = 2


class RunFlag(IntFlag):
    """Requests of the authority that wait for their moment; a last Warmup that was given."""

    PAUSE_REQUESTED = 1
    PARAMS_PENDING = 2
    LAST_WARMUP = 4


class EntryFlag(IntFlag):
    """Marks on a roster entry."""

    LEAVING = 1
    SILENT = 2
    PROBATION = 8


class RoundFlag(IntFlag):
    """Marks on a round account."""

    ROOT_ONLY = 1
    CLOSED = 2
    VOID = 4
    FORCED_VOID = 8
    COMMIT_RAN_TO_DEADLINE = 16
    ATTEST_RAN_TO_DEADLINE = 32
    DOUBLED = 64


class SeedStatus(IntEnum):
    """The progress of the seed of a round's audits."""

    NONE = 0
    PENDING = 1
    FROZEN = 2
    RETARGETED = 3
    LOST = 4


@dataclass(frozen=True, slots=True)
class RunView:
    """The `Run` account; `address` is the account's own address, which every hash names as run.

    `root` is the newest checkpoint's root. `restart_round` is the round whose weights came from a
    Warmup, and `restart_root_round` the round of the root that it started from: what a replay needs
    to cross a halt. `base_round` is explained at `RoundView`.
    """

    address: Address
    version: int
    bump: int
    vault_bump: int
    roster_bump: int
    phase: Phase
    resume_phase: Phase
    flags: RunFlag
    run_id: RunId
    authority: Address
    council: Address
    funder: Address
    roster: Address
    vault: Address
    config_hash: Digest
    manifest_hash: Digest
    genesis_root: Digest
    root: Digest
    chain_hash: Digest
    created_slot: Slot
    epoch: int
    round: RoundIndex
    cursor: int
    root_round: RoundIndex
    root_cursor: int
    restart_round: RoundIndex
    restart_root_round: RoundIndex
    phase_start_slot: Slot
    phase_end_slot: Slot
    quorum_slot: Slot
    next_checkpoint_round: RoundIndex
    base_round: RoundIndex
    void_streak: int
    seeds_pending: int
    paused_at_slot: Slot
    pause_window_start_slot: Slot
    pause_used_slots: int
    pause_total_slots: int
    params_requested_slot: Slot
    finished_slot: Slot
    event_sequence: int
    num_participants: int
    num_rounds: int
    num_checkpoints: int
    total_stake: Lamports
    total_unbonding: Lamports
    total_unvested: Lamports
    total_claimable: Lamports
    total_bonds: Lamports
    total_escrow: Lamports
    reward_pool: Lamports
    vault_rent: Lamports
    params: ParamsView
    pending_params: ParamsView
    num_audits: int
    audit_epoch: int
    sampled: Bitmap
    accused: Bitmap
    convicted: tuple[Bitmap, Bitmap, Bitmap, Bitmap]
    lost_seeds: int
    waiting_since: Slot
    expected_admitted: int
    expected_members: int
    expected_before: int
    expected_epoch: int
    total_withheld: Lamports
    created: ParamsView


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry of the `Roster`; its participant index is its position."""

    owner: Address
    session: Address
    next_session: Address
    ready_root: Digest
    stake: Lamports
    claimable: Lamports
    bucket_window: tuple[int, int, int]
    bucket_amount: tuple[Lamports, Lamports, Lamports]
    joined_round: RoundIndex
    active_round: RoundIndex
    last_included: RoundIndex
    ready_round: RoundIndex
    return_round: RoundIndex
    inactive_round: RoundIndex
    jailed_until_round: RoundIndex
    left_round: RoundIndex
    rounds_served: int
    included_since_strike: int
    strike_rounds: tuple[RoundIndex, RoundIndex, RoundIndex]
    misses_in_row: int
    deadline_misses_in_row: int
    status: Status
    roles: Role
    flags: EntryFlag
    strikes: int
    unproven_rounds: tuple[RoundIndex, RoundIndex, RoundIndex]
    openings_fault_round: RoundIndex
    audits: int
    targets: int
    frozen: int
    work_faults: int
    seat_faults: int
    unbonding: Lamports
    last_action: Slot
    outage_start: Slot
    outage_end: Slot
    fined_outage: Slot
    reveal_fault_round: RoundIndex
    included_total: int
    openings_mark: int
    withheld: Lamports
    withheld_from: RoundIndex
    probation_round: RoundIndex
    decided_round: tuple[RoundIndex, RoundIndex, RoundIndex, RoundIndex]
    openings_step: int
    pending_kinds: int


@dataclass(frozen=True, slots=True)
class BallotView:
    """One participant's part in a round: commitment, vote, attestation."""

    header_hash: Digest
    root_vote: Digest
    attest_bitmap: Bitmap
    previous_included: RoundIndex
    missing_reports: Bitmap
    possession: bytes


@dataclass(frozen=True, slots=True)
class RoundView:
    """A `Round` account: the sets fixed at its open and what happened since.

    `base_round` is the last round whose payloads are in the weights that this round trains on and
    that a report of missing payloads may still correct; NONE if there is none.
    """

    version: int
    bump: int
    flags: RoundFlag
    seed_status: SeedStatus
    position: int
    run: Address
    payer: Address
    round: RoundIndex
    epoch: int
    cursor: int
    open_slot: Slot
    commit_end_slot: Slot
    close_slot: Slot
    seed_slot: Slot
    reward_paid: Lamports
    reward_window: int
    base_round: RoundIndex
    slot_hash: Digest
    seed: Digest
    canonical_root: Digest
    members: Bitmap
    trainers: Bitmap
    eligible: Bitmap
    is_new: Bitmap
    committed: Bitmap
    attested: Bitmap
    included: Bitmap
    struck: Bitmap
    freeze_clock: Slot
    close_clock: Slot
    requested: Bitmap
    sampled: Bitmap
    audited: Bitmap
    unpaid: Bitmap
    reward_price: Lamports
    price_base: Lamports
    price_new: Lamports
    withheld: Bitmap
    probation: Bitmap
    ballots: tuple[BallotView, ...]


@dataclass(frozen=True, slots=True)
class TicketView:
    """Stake on its way out: paid once the run clock shows `matures_clock`."""

    lamports: Lamports
    matures_clock: Slot


@dataclass(frozen=True, slots=True)
class RecordView:
    """The past of a participant, which the run remembers after it has left."""

    work_faults: int
    seat_faults: int
    strikes: int
    openings_step: int
    strike_rounds: tuple[RoundIndex, RoundIndex, RoundIndex]
    unproven_rounds: tuple[RoundIndex, RoundIndex, RoundIndex]
    decided_round: tuple[RoundIndex, RoundIndex, RoundIndex, RoundIndex]
    openings_mark: int
    included_total: int
    openings_fault_round: RoundIndex
    reveal_fault_round: RoundIndex
    inactive_round: RoundIndex
    return_round: RoundIndex
    jailed_until_round: RoundIndex
    is_on_probation: bool


@dataclass(frozen=True, slots=True)
class ParticipantView:
    """A `Participant` account: the owner's cold data."""

    version: int
    bump: int
    run: Address
    owner: Address
    payer: Address
    index: ParticipantIndex
    admitted: bool
    barred: bool
    endpoint: str
    tickets: tuple[TicketView, ...]
    claimable: Lamports
    withdrawn_total: Lamports
    claimed_total: Lamports
    manifest_round: RoundIndex
    manifest_hash: Digest
    manifest_uri: str
    record: RecordView


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """A `Checkpoint` account: the root that the program itself stored at a close."""

    version: int
    bump: int
    run: Address
    payer: Address
    round: RoundIndex
    cursor: int
    epoch: int
    root: Digest
    slot: Slot


@dataclass(frozen=True, slots=True)
class NetworkView:
    """Everything a client acts on, as it was at one slot.

    Between two reads `slot` may go on with the clock: then it is an estimate.

    `round` is the ring account of `run.round` where it holds that round (in Commit, Attest and
    Cooldown), `previous_round` that of `run.round - 1`; either is None where there is none.
    """

    slot: Slot
    run: RunView
    entries: tuple[EntryView, ...]
    round: RoundView | None
    previous_round: RoundView | None
