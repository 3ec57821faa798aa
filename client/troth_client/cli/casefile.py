"""What the chain shows of one audit or case: who said what, what was taken, where it went.

Owns: one record of it, as the open account shows it; its fields for JSON and for people.
Never: reads the chain, or takes a participant's word.
Next: `casehistory.py` for audits that are closed; `commands/case.py` prints them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from solders.pubkey import Pubkey

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.slashing import split
from troth_attestation.verdict import VerdictKind
from troth_client.cli.amounts import sol
from troth_client.cli.output import Facts, Grid, Json
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import (
    AuditFlag,
    AuditKey,
    AuditKind,
    AuditView,
    JurorView,
    SeatView,
)

NO_FLAGS = AuditFlag(0)
NOT_AUDITED = 6
"""The program's outcome of an audit that never began: it is none of the judge's."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a seat or juror has shown; 0 is nothing so far."""

    index: int
    verdict: int


@dataclass(frozen=True, slots=True)
class Money:
    """What a conviction took, by source, and where it goes; lamports.

    `is_paid`: it has gone there; until then it waits in escrow and an appeal may bring it back.
    """

    stake: int = 0
    unbonding: int = 0
    unvested: int = 0
    shortfall: int = 0
    challenger: int = 0
    treasury: int = 0
    burned: int = 0
    returned: int = 0
    is_paid: bool = False

    @property
    def taken(self) -> int:
        """All that was taken."""
        return self.stake + self.unbonding + self.unvested


@dataclass(frozen=True, slots=True)
class Bond:
    """What a challenger posted, and where it went when the case was decided; lamports."""

    posted: int = 0
    spent: int = 0
    returned: int = 0
    acquitted: int = 0
    burned: int = 0
    treasury: int = 0


@dataclass(frozen=True, slots=True)
class CaseFile:
    """One audit from sample to end. `ends` is a moment on the run's clock, None once closed."""

    key: AuditKey
    stage: str
    outcome: int = 0
    case_outcome: int = 0
    flags: AuditFlag = NO_FLAGS
    challenger: str = ""
    bond: Bond = Bond()
    ends: int | None = None
    seats: tuple[Said, ...] = ()
    jurors: tuple[Said, ...] = ()
    money: Money = Money()

    @property
    def is_accused(self) -> bool:
        """Whether a second committee judges or has judged: by the first seats, or for a bond."""
        return self.outcome == AuditOutcome.ACCUSED or bool(self.flags & AuditFlag.BONDED)

    @property
    def is_conviction(self) -> bool:
        """Whether the second committee convicted, and nobody has reversed it."""
        is_reversed = bool(self.flags & AuditFlag.REVERSED)
        return self.case_outcome == CaseOutcome.CONVICTED and not is_reversed


def of_account(audit: AuditView) -> CaseFile:
    """Return what an open account shows."""
    has_bond = bool(audit.flags & AuditFlag.BONDED)
    parts = split(audit.escrow, has_bond=has_bond)
    money = Money(audit.escrow_stake, audit.escrow_unbonding, audit.escrow_unvested)
    money = replace(
        money,
        shortfall=audit.shortfall,
        challenger=parts.challenger,
        treasury=parts.treasury,
        burned=parts.burned,
    )
    if audit.flags & AuditFlag.REVERSED:
        money = replace(money, challenger=0, treasury=0, burned=0, returned=audit.escrow)
    return CaseFile(
        key=audit.key,
        stage=audit.stage.name,
        outcome=audit.outcome,
        case_outcome=audit.case_outcome,
        flags=audit.flags,
        challenger=_address(audit.challenger),
        bond=Bond(posted=audit.bond),
        ends=audit.stage_end,
        seats=_said(audit.judging),
        jurors=_said(audit.jurors),
        money=money,
    )


def case_values(case: CaseFile) -> dict[str, Json]:
    """Return the record for JSON."""
    money = case.money
    sources = ("stake", "unbonding", "unvested", "shortfall")
    parts = ("challenger", "treasury", "burned", "returned")
    round_, target, kind = case.key
    return {
        "round": round_,
        "target": target,
        "kind": kind_text(kind),
        "stage": case.stage.lower(),
        "outcome": outcome_text(case.outcome),
        "case_outcome": _word(CaseOutcome, case.case_outcome),
        "is_conviction": case.is_conviction,
        "flags": [str(flag.name).lower() for flag in AuditFlag if flag in case.flags],
        "challenger": case.challenger or None,
        "bond_lamports": case.bond.posted,
        "bond": {f"{name}_lamports": amount for name, amount in asdict(case.bond).items()},
        "ends_at_clock": case.ends,
        "seats": [_said_values(one) for one in case.seats],
        "jurors": [_said_values(one) for one in case.jurors],
        "taken_lamports": money.taken,
        "taken": {f"{name}_lamports": int(getattr(money, name)) for name in sources},
        "split": {f"{name}_lamports": int(getattr(money, name)) for name in parts},
        "is_paid_out": money.is_paid,
    }


def case_blocks(case: CaseFile, history: Sequence[Event]) -> list[Facts | Grid]:
    """Return the record and its events for people."""
    values = case_values(case)
    names = ("round", "target", "kind", "stage", "outcome", "case_outcome", "challenger")
    facts: list[tuple[str, object]] = [
        (name.replace("_", " "), values[name]) for name in names if values[name] is not None
    ]
    if case.flags:
        facts.append(("flags", ", ".join(str(flag.name).lower() for flag in case.flags)))
    facts.append(("first seats", verdicts_text(case.seats)))
    if case.jurors:
        facts.append(("second committee", verdicts_text(case.jurors)))
    blocks: list[Facts | Grid] = [Facts(facts)]
    if case.money.taken or case.money.shortfall:
        blocks.append(Facts(money_rows(case.money), "money"))
    if case.bond.posted:
        blocks.append(Facts(bond_rows(case.bond), "bond"))
    steps = [(event.slot, event.sequence, event.name) for event in history]
    return [*blocks, Grid(("slot", "event", "what"), steps, "on chain")]


def money_rows(money: Money) -> list[tuple[str, object]]:
    """Return what was taken and where it goes, the parts that are not zero."""
    taken = [(f"from {name}", getattr(money, name)) for name in ("stake", "unbonding", "unvested")]
    gone = "" if money.is_paid else ", once the escrow ends"
    parts = [
        (f"{label}{gone}", getattr(money, name))
        for name, label in (
            ("burned", "burned"),
            ("treasury", "to the treasury"),
            ("challenger", "to the challenger"),
            ("returned", "back to the target"),
        )
    ]
    rows = [("taken", money.taken), *taken, ("not there", money.shortfall), *parts]
    return [(label, sol(amount)) for label, amount in rows if amount]


def bond_rows(bond: Bond) -> list[tuple[str, object]]:
    """Return what was posted and where it went, the parts that are not zero."""
    rows = [
        ("posted", bond.posted),
        ("to the committee", bond.spent),
        ("back to the challenger", bond.returned),
        ("to the acquitted", bond.acquitted),
        ("burned", bond.burned),
        ("to the treasury", bond.treasury),
    ]
    return [(label, sol(amount)) for label, amount in rows if amount]


def kind_text(kind: int) -> str:
    """Return `work`, `payload`, `root` or `possession`."""
    return AuditKind(kind).name.lower()


def outcome_text(outcome: int) -> str | None:
    """Return the outcome of the first seats in words; None while there is none."""
    return "not audited" if outcome == NOT_AUDITED else _word(AuditOutcome, outcome)


def verdict_text(verdict: int) -> str:
    """Return a verdict in a word, `-` for nothing shown."""
    return VerdictKind(verdict).name.lower() if verdict else "-"


def verdicts_text(said: Sequence[Said]) -> str:
    """Return who said what, in one line."""
    return ", ".join(f"{one.index}: {verdict_text(one.verdict)}" for one in said) or "none"


def _word(kind: type[AuditOutcome] | type[CaseOutcome], value: int) -> str | None:
    return kind(value).name.lower().replace("_", " ") if value else None


def _said_values(said: Said) -> Mapping[str, Json]:
    return {"index": said.index, "verdict": verdict_text(said.verdict)}


def _said(places: Sequence[SeatView] | Sequence[JurorView]) -> tuple[Said, ...]:
    return tuple(Said(place.index, place.verdict) for place in places)


def _address(key: bytes) -> str:
    return str(Pubkey.from_bytes(key)) if any(key) else ""
