"""Audits and cases as the chain shows them: frozen records with the program's field names.

Owns: one record per struct of the `Audit` account, the enums and flags stored in it, and sets of
stages that share a rule.
Never: decodes bytes (`chain/accounts.py` does) and never changes after it was made.
Next: `audits.py`, which tells what is due; `view.py` for the other accounts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

from troth_coordinator.rules.ids import (
    MAX_PARTICIPANTS,
    Address,
    Bitmap,
    Digest,
    Lamports,
    ParticipantIndex,
    RoundIndex,
    Slot,
)

AuditKey = tuple[int, int, int]
"""Round, target, kind: what tells the audits of one run apart."""


class AuditKind(IntEnum):
    """The subject of a judgement: work is sampled or accused, the others are exact cases."""

    WORK = 0
    PAYLOAD = 1
    ROOT = 2
    POSSESSION = 3


class AuditStage(IntEnum):
    """The stages of an audit, in order of their numbers on chain."""

    REQUESTED = 0
    OPENINGS = 1
    COMMIT = 2
    REVEAL = 3
    SETTLED = 4
    ACCUSED = 5
    CASE_COMMIT = 6
    CASE_REVEAL = 7
    DECIDED = 8


BEFORE_SETTLED: Final = (AuditStage.OPENINGS, AuditStage.COMMIT, AuditStage.REVEAL)
"""The seats are drawn and may still judge."""
WITH_JURY: Final = (AuditStage.CASE_COMMIT, AuditStage.CASE_REVEAL)
"""The jury is drawn and may still judge."""
IN_CASE: Final = (AuditStage.ACCUSED, *WITH_JURY)
"""A case is open."""
BEFORE_JURY: Final = (*BEFORE_SETTLED, AuditStage.ACCUSED)
"""Stages of an opened audit that a jury may follow."""
MAY_NEED_OPENINGS: Final = (
    AuditStage.OPENINGS,
    AuditStage.COMMIT,
    AuditStage.ACCUSED,
    AuditStage.CASE_COMMIT,
)
"""The target may still be asked for its openings."""
MAY_BE_SHOWN: Final = (
    AuditStage.COMMIT,
    AuditStage.REVEAL,
    AuditStage.CASE_COMMIT,
    AuditStage.CASE_REVEAL,
)
"""A verdict or a vote may still be shown."""
ONLY_REVEALS: Final = (AuditStage.REVEAL, AuditStage.CASE_REVEAL)
"""A seat or juror without a commit owes nothing any more: it was fined, or is exempt."""
NOTHING_OWED: Final = (AuditStage.SETTLED, AuditStage.DECIDED)
"""Nobody owes a verdict or a vote."""

NOT_AUDITED: Final = 6
"""The outcome of an audit that never took place; the judge's `AuditOutcome` has no name for it."""


class AuditFlag(IntFlag):
    """Marks on an audit."""

    REQUESTED = 1
    RETARGETED = 4
    APPEALED = 8
    REVERSED = 16
    BREAKER = 32
    BONDED = 64
    UNAVAILABLE = 128
    WITHHELD = 256
    FURTHER = 512


MOST: Final[Mapping[str, int]] = {
    "outcome": 7,
    "case_outcome": 5,
    "num_available": 7,
    "num_jurors": 7,
    "target": MAX_PARTICIPANTS - 1,
    "index": MAX_PARTICIPANTS - 1,
    "verdict": 4,
}
"""The largest numbers of an audit's fields, of its seats and of its jurors: those of the enums of
`troth_attestation`, of the places in the account and in the roster."""


class SeatFlag(IntFlag):
    """Marks on a seat or juror."""

    COMMITTED = 1
    REVEALED = 2
    FAULTY = 4
    PAID = 8


@dataclass(frozen=True, slots=True)
class SeatView:
    """One seat; `verdict` is 0 until revealed, then that of `VerdictKind`."""

    commit: Digest
    sketch: tuple[int, ...]
    index: ParticipantIndex
    verdict: int
    flags: SeatFlag


@dataclass(frozen=True, slots=True)
class JurorView:
    """One juror of a case; `verdict` is 0 until revealed."""

    commit: Digest
    index: ParticipantIndex
    verdict: int
    flags: SeatFlag


@dataclass(frozen=True, slots=True)
class AuditView:
    """An `Audit` account. `stage_end` and `case_end` are on the run clock.

    `outcome` and `case_outcome` are 0 until decided, then those of the judge's enums; `seats` and
    `jurors` hold only those that exist (`num_available` and `num_jurors`).
    """

    version: int
    bump: int
    kind: AuditKind
    stage: AuditStage
    outcome: int
    case_outcome: int
    flags: AuditFlag
    num_seats: int
    num_available: int
    num_jurors: int
    first_acting: int
    target: ParticipantIndex
    subject: int
    challenger_index: int
    run: Address
    payer: Address
    owner: Address
    challenger: Address
    header_hash: Digest
    root_vote: Digest
    canonical_root: Digest
    seed: Digest
    openings_root: Digest
    case_seed: Digest
    round: RoundIndex
    previous_included: RoundIndex
    eligible: Bitmap
    vouchers: Bitmap
    attest_bitmap: Bitmap
    reward_paid: Lamports
    reward_window: int
    stage_end: Slot
    case_end: Slot
    case_seed_slot: Slot
    appeal_end: Slot
    prepaid: Lamports
    bond: Lamports
    escrow_stake: Lamports
    escrow_unbonding: Lamports
    escrow_unvested: Lamports
    shortfall: Lamports
    reward_price: Lamports
    openings_price: Lamports
    juror_fees: Lamports
    decided_before: RoundIndex
    jailed_until: RoundIndex
    commit_ends: tuple[Slot, Slot, Slot, Slot]
    possession: bytes
    seats: tuple[SeatView, ...]
    jurors: tuple[JurorView, ...]

    @property
    def judging(self) -> tuple[SeatView, ...]:
        """The seats that judge now: three, up to five after one extension, seven after two."""
        return self.seats[: self.num_seats]

    @property
    def escrow(self) -> Lamports:
        """Lamports that wait for the end of the appeal window."""
        taken = self.escrow_stake + self.escrow_unbonding + self.escrow_unvested
        return Lamports(taken - self.juror_fees)

    @property
    def key(self) -> AuditKey:
        """Round, target and kind."""
        return self.round, self.target, self.kind
