"""One audit or case as the chain shows it: verdicts, votes, slashed lamports, destinations.

Owns: one record of it, from the open account.
Never: reads the chain, prints, or believes a participant.
Next: `history.py` for audits that are closed; `troth_cli/view/cases.py` shows the record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from solders.pubkey import Pubkey

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.slashing import split
from troth_coordinator.rules.audit_view import (
    AuditFlag,
    AuditKey,
    AuditView,
    JurorView,
    SeatView,
)

NO_FLAGS = AuditFlag(0)


@dataclass(frozen=True, slots=True)
class Statement:
    """The verdict of a seat or the vote of a juror; 0 while it is hidden."""

    index: int
    verdict: int


@dataclass(frozen=True, slots=True)
class Money:
    """The lamports of a conviction, by source and by destination.

    `jurors`: their fees, paid from what was taken; what a reversal returned of them is not counted.
    `is_paid`: paid out; until then they wait in escrow, and an appeal may bring them back.
    """

    stake: int = 0
    unbonding: int = 0
    unvested: int = 0
    shortfall: int = 0
    jurors: int = 0
    challenger: int = 0
    pool: int = 0
    burned: int = 0
    returned: int = 0
    is_paid: bool = False

    @property
    def taken(self) -> int:
        """All lamports taken."""
        return self.stake + self.unbonding + self.unvested

    @property
    def in_escrow(self) -> int:
        """The lamports that wait; jurors were paid at once, and may have got all."""
        return 0 if self.is_paid else max(0, self.taken - self.jurors)


@dataclass(frozen=True, slots=True)
class Bond:
    """The bond of a challenger, and its destinations once the case is decided; lamports."""

    posted: int = 0
    spent: int = 0
    returned: int = 0
    acquitted: int = 0
    burned: int = 0
    pool: int = 0


@dataclass(frozen=True, slots=True)
class CaseFile:
    """One audit from sample to end. `ends` is a moment on the run's clock, None once closed.

    has_verdicts: whether what was read names seats and jurors, if there were any. The transactions
    of a run's money do not.
    """

    key: AuditKey
    stage: str
    outcome: int = 0
    case_outcome: int = 0
    flags: AuditFlag = NO_FLAGS
    challenger: str = ""
    bond: Bond = Bond()
    ends: int | None = None
    seats: tuple[Statement, ...] = ()
    jurors: tuple[Statement, ...] = ()
    money: Money = Money()
    has_verdicts: bool = True

    @property
    def is_accused(self) -> bool:
        """Whether it went to a jury: the first seats accused, or a challenger posted a bond."""
        accusations = (AuditOutcome.ACCUSED, AuditOutcome.UNAVAILABLE)
        return self.outcome in accusations or bool(self.flags & AuditFlag.BONDED)

    @property
    def is_conviction(self) -> bool:
        """Whether the jury convicted, and the council has not reversed it."""
        is_reversed = bool(self.flags & AuditFlag.REVERSED)
        return self.case_outcome == CaseOutcome.CONVICTED and not is_reversed


def of_account(audit: AuditView) -> CaseFile:
    """Return what an open account shows."""
    has_bond = bool(audit.flags & AuditFlag.BONDED)
    parts = split(audit.escrow + audit.juror_fees, has_bond=has_bond)
    money = Money(audit.escrow_stake, audit.escrow_unbonding, audit.escrow_unvested)
    money = replace(
        money,
        shortfall=audit.shortfall,
        jurors=audit.juror_fees,
        challenger=parts.challenger,
        burned=parts.burned - audit.juror_fees,
    )
    if audit.flags & AuditFlag.REVERSED:
        # The pool gives back what the jurors got, as far as it goes.
        returned = audit.escrow + audit.juror_fees
        money = replace(money, jurors=0, challenger=0, burned=0, returned=returned)
    return CaseFile(
        key=audit.key,
        stage=audit.stage.name,
        outcome=audit.outcome,
        case_outcome=audit.case_outcome,
        flags=audit.flags,
        challenger=_address(audit.challenger),
        bond=Bond(posted=audit.bond),
        ends=audit.stage_end,
        seats=_statements(audit.judging),
        jurors=_statements(audit.jurors),
        money=money,
    )


def _statements(places: Sequence[SeatView] | Sequence[JurorView]) -> tuple[Statement, ...]:
    return tuple(Statement(place.index, place.verdict) for place in places)


def _address(key: bytes) -> str:
    return str(Pubkey.from_bytes(key)) if any(key) else ""
