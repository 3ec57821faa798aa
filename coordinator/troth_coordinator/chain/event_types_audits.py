"""Events of audits and cases. Generated: run scripts/gen/event_types.py instead of editing.

Owns: one frozen record per event of the program, as its IDL describes it.
Never: decodes (event_base.py) or finds events in logs (events.py).
Next: event_types.py for the table by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from solders.pubkey import Pubkey

from troth_coordinator.chain.event_base import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequested(Event):
    """Somebody paid for an audit of the open round in advance."""

    kind: ClassVar[int | None] = 64

    round: int
    target: int
    challenger: Pubkey
    prepaid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOpened(Event):
    """A sampled or requested target must show its openings."""

    kind: ClassVar[int | None] = 65

    round: int
    target: int
    is_requested: bool
    seats: tuple[int, int, int, int, int, int, int]
    stage_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningsPosted(Event):
    """The target fixed what it shows."""

    kind: ClassVar[int | None] = 66

    round: int
    target: int
    root: bytes
    stage_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCommitted(Event):
    """A seat committed to a hidden verdict."""

    kind: ClassVar[int | None] = 67

    round: int
    target: int
    index: int
    commitment: bytes
    stage: int
    stage_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRevealed(Event):
    """A seat showed its verdict."""

    kind: ClassVar[int | None] = 68

    round: int
    target: int
    index: int
    verdict: int
    evidence: bytes
    sketch: tuple[int, ...]
    salt: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditExtended(Event):
    """The seats so far decide nothing: two more judge, where there are so many."""

    kind: ClassVar[int | None] = 69

    round: int
    target: int
    num_seats: int
    stage_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettled(Event):
    """An audit ended."""

    kind: ClassVar[int | None] = 70

    round: int
    target: int
    outcome: int
    stage_end: int
    case_seed_slot: int
    fee: int
    paid: int
    vested: int
    reward_undone: int
    is_strike: bool
    jailed: int
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeesScaled(Event):
    """The source could not pay the seats in full."""

    kind: ClassVar[int | None] = 71

    round: int
    target: int
    witness_fee: int
    fee: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Penalised(Event):
    """A small penalty was taken and split at once."""

    kind: ClassVar[int | None] = 72

    round: int
    target: int
    index: int
    fault: int
    claimable: int
    stake: int
    unbonding: int
    unvested: int
    shortfall: int
    acquitted: int
    burned: int
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepaidRefunded(Event):
    """The rest of fees paid in advance left the vault."""

    kind: ClassVar[int | None] = 73

    round: int
    target: int
    challenger: Pubkey
    refunded: int
    kept: int
    pool: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbationChanged(Event):
    """A probation began, went on, or ended; rewards that waited for it moved."""

    kind: ClassVar[int | None] = 74

    round: int
    index: int
    is_on: bool
    credited: int
    returned: int
    vested: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbationsEnded(Event):
    """Probations ended because the membership did, or the run."""

    kind: ClassVar[int | None] = 75

    ended: int
    returned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOpened(Event):
    """Somebody posted a bond: a jury must judge."""

    kind: ClassVar[int | None] = 80

    round: int
    target: int
    audit_kind: int
    subject: int
    challenger: Pubkey
    challenger_index: int
    bond: int
    case_seed_slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSeedRetargeted(Event):
    """The seed slot of a case was lost once: a later one is asked for."""

    kind: ClassVar[int | None] = 81

    round: int
    target: int
    audit_kind: int
    case_seed_slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSeedLost(Event):
    """The seed slot of a case was lost twice: there is no jury, and the case is not proven."""

    kind: ClassVar[int | None] = 82

    round: int
    target: int
    audit_kind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JuryDrawn(Event):
    """The jury is drawn."""

    kind: ClassVar[int | None] = 83

    round: int
    target: int
    audit_kind: int
    case_seed_slot: int
    found_slot: int
    slot_hash: bytes
    case_seed: bytes
    eligible: int
    jurors: tuple[int, int, int, int, int, int, int]
    stage_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JurorVoteCommitted(Event):
    """A juror committed to a hidden vote."""

    kind: ClassVar[int | None] = 84

    round: int
    target: int
    audit_kind: int
    index: int
    commitment: bytes
    stage: int
    stage_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JurorVoteRevealed(Event):
    """A juror showed its vote."""

    kind: ClassVar[int | None] = 85

    round: int
    target: int
    audit_kind: int
    index: int
    verdict: int
    evidence: bytes
    sketch: tuple[int, ...]
    salt: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSettled(Event):
    """A case ended. Penalties of judges are events of their own."""

    kind: ClassVar[int | None] = 86

    round: int
    target: int
    audit_kind: int
    outcome: int
    flags: int
    fault: int
    stake: int
    unbonding: int
    unvested: int
    shortfall: int
    appeal_end: int
    stage_end: int
    fee: int
    paid: int
    seats_paid: int
    seats_fee: int
    vested: int
    bond_spent: int
    juror_fees: int
    bond_returned: int
    bond_acquitted: int
    bond_burned: int
    bond_pool: int
    reward_undone: int
    is_strike: bool
    vouchers: int
    jailed: int
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAppealed(Event):
    """The convicted owner appealed."""

    kind: ClassVar[int | None] = 87

    round: int
    target: int
    audit_kind: int
    stage_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReversed(Event):
    """The council reversed a conviction."""

    kind: ClassVar[int | None] = 88

    round: int
    target: int
    audit_kind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditClosed(Event):
    """An audit or case is over: what was in escrow is paid, and the account is closed."""

    kind: ClassVar[int | None] = 89

    round: int
    target: int
    audit_kind: int
    returned: int
    challenger: int
    pool: int
    burned: int
    shortfall: int
    status: int
    payer: Pubkey
