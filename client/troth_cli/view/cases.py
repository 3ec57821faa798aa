"""One audit or case for people and for JSON.

Owns: the printed form of the record of `troth_audit/cases.py`. Never: reads the chain.
Next: `commands/case.py`, which prints it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.verdict import VerdictKind
from troth_audit.cases import Bond, CaseFile, Money, Statement
from troth_cli.view.amounts import sol
from troth_cli.view.output import Facts, Grid, Json
from troth_coordinator.chain import event_types_audits as audit_events
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import NOT_AUDITED, AuditFlag, AuditKind
from troth_coordinator.rules.ids import NO_INDEX, NONE

if TYPE_CHECKING:
    from troth_cli.slot_time import SlotTime


def case_values(case: CaseFile) -> dict[str, Json]:
    """Return the record for JSON; null for what was not among the things that were read."""
    money = case.money
    bond = _bond_values(case)
    sources = ("stake", "unbonding", "unvested", "shortfall")
    parts = ("jurors", "challenger", "pool", "burned", "returned")
    round_, target, kind = case.key
    return {
        "round": round_,
        "target": target,
        "kind": kind_text(kind),
        "stage": case.stage.lower(),
        "outcome": outcome_text(case.outcome),
        "case_outcome": word(CaseOutcome, case.case_outcome),
        "is_conviction": case.is_conviction,
        "flags": [str(flag.name).lower() for flag in AuditFlag if flag in case.flags],
        "challenger": case.challenger or None,
        "bond_lamports": bond["posted_lamports"],
        "bond": bond,
        "ends_at_clock": case.ends,
        "seats": [_statement_values(one) for one in case.seats] if case.has_verdicts else None,
        "jurors": [_statement_values(one) for one in case.jurors] if case.has_verdicts else None,
        "taken_lamports": money.taken,
        "taken": {f"{name}_lamports": int(getattr(money, name)) for name in sources},
        "split": {f"{name}_lamports": int(getattr(money, name)) for name in parts},
        "is_paid_out": not money.in_escrow,
    }


def case_blocks(
    case: CaseFile, history: Sequence[Event], clock: int, slot: "SlotTime"
) -> list[Facts | Grid]:
    """Return the record and its events for people; `clock` is the run's own time."""
    values = case_values(case)
    names = ("round", "target", "kind", "stage", "outcome", "case_outcome", "challenger")
    facts: list[tuple[str, object]] = [
        (name.replace("_", " "), values[name]) for name in names if values[name] is not None
    ]
    ends = ends_text(case, clock, slot)
    if ends:
        facts.append(("stage ends", ends))
    if case.flags:
        facts.append(("flags", ", ".join(str(flag.name).lower() for flag in case.flags)))
    facts.append(("first seats", verdicts_text(case.seats)))
    if case.jurors:
        facts.append(("jury", verdicts_text(case.jurors)))
    blocks: list[Facts | Grid] = [Facts(facts)]
    if case.money.taken or case.money.shortfall:
        blocks.append(Facts(money_rows(case.money), "money"))
    if case.bond.posted:
        blocks.append(Facts(bond_rows(case.bond), "bond"))
    rows = [["" if cell is None else cell for cell in step] for step in _steps(history)]
    return [*blocks, Grid(("slot", "event", "what", "who", "verdict"), rows, "on chain")]


def history_values(history: Sequence[Event]) -> list[Json]:
    """Return the events for JSON; `index` and `verdict` are null where an event has none."""
    names = ("slot", "sequence", "event", "index", "verdict")
    return [dict(zip(names, step, strict=True)) for step in _steps(history)]


def money_rows(money: Money) -> list[tuple[str, object]]:
    """Return the slashed lamports and their destinations, without zeros."""
    taken = [(f"from {name}", getattr(money, name)) for name in ("stake", "unbonding", "unvested")]
    gone = ", once the escrow ends" if money.in_escrow else ""
    parts = [
        (f"{label}{gone}", getattr(money, name))
        for name, label in (
            ("jurors", "to the jurors"),
            ("burned", "burned"),
            ("pool", "to the pool"),
            ("challenger", "to the challenger"),
            ("returned", "back to the target"),
        )
    ]
    rows = [("taken", money.taken), *taken, ("not there", money.shortfall), *parts]
    return [(label, sol(amount)) for label, amount in rows if amount]


def bond_rows(bond: Bond) -> list[tuple[str, object]]:
    """Return the posted bond and its destinations, without zeros."""
    rows = [
        ("posted", bond.posted),
        ("to the jurors", bond.spent),
        ("back to the challenger", bond.returned),
        ("to the acquitted", bond.acquitted),
        ("burned", bond.burned),
        ("to the pool", bond.pool),
    ]
    return [(label, sol(amount)) for label, amount in rows if amount]


def kind_text(kind: int) -> str:
    """Return `work`, `payload`, `root` or `possession`."""
    return AuditKind(kind).name.lower()


def outcome_text(outcome: int) -> str | None:
    """Return the outcome of the first seats in words; None while there is none."""
    return "not audited" if outcome == NOT_AUDITED else word(AuditOutcome, outcome)


def verdict_text(verdict: int) -> str:
    """Return a verdict in a word, `-` for nothing shown."""
    return VerdictKind(verdict).name.lower() if verdict else "-"


def verdicts_text(statements: Sequence[Statement]) -> str:
    """Return verdicts or votes by index, in one line."""
    return ", ".join(f"{one.index}: {verdict_text(one.verdict)}" for one in statements) or "none"


def ends_text(case: CaseFile, clock: int, slot: "SlotTime") -> str:
    """Return when the stage of an open audit ends; "" where it waits for somebody else."""
    if case.ends is None or case.ends == NONE:
        return ""
    left = case.ends - clock
    return f"in {slot.window(left)}" if left > 0 else "now"


def word(kind: type[AuditOutcome] | type[CaseOutcome], value: int) -> str | None:
    """Return an outcome in words, None while there is none."""
    return kind(value).name.lower().replace("_", " ") if value else None


def _steps(history: Sequence[Event]) -> list[tuple[str | int | None, ...]]:
    return [
        (event.slot, event.sequence, event.name, _who(event), _shown(event)) for event in history
    ]


def _who(event: Event) -> int | None:
    """Return the index of the participant that acted or paid; None for what anybody may send."""
    match event:
        case audit_events.OpeningsPosted() | audit_events.CaseAppealed():
            return event.target
        case audit_events.CaseOpened():
            return None if event.challenger_index == NO_INDEX else event.challenger_index
    index: int | None = getattr(event, "index", None)
    return index


def _shown(event: Event) -> str | None:
    """Return the verdict or vote that an event reveals."""
    if isinstance(event, audit_events.VerdictRevealed | audit_events.JurorVoteRevealed):
        return verdict_text(event.verdict)
    return None


def _bond_values(case: CaseFile) -> dict[str, Json]:
    """Return the bond and its parts; null for those that were not read though there is a bond."""
    amounts: dict[str, Json] = asdict(case.bond)
    if AuditFlag.BONDED in case.flags and not case.bond.posted:
        # The account of a decided case holds no bond any more; old transactions may be left out.
        amounts = amounts | {"posted": None} if any(amounts.values()) else dict.fromkeys(amounts)
    return {f"{name}_lamports": amount for name, amount in amounts.items()}


def _statement_values(statement: Statement) -> Mapping[str, Json]:
    return {"index": statement.index, "verdict": verdict_text(statement.verdict)}
