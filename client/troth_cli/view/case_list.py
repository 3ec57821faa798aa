"""The lists of audits and cases of a run, for people and for JSON: `troth case list`.

Owns: the columns. Never: reads the chain; `../workflows/case_list.py` does.
Next: `cases.py` for one case, `contestable.py` for those that could be opened.
"""

from typing import TYPE_CHECKING

from troth_attestation.quorum import CaseOutcome
from troth_audit.cases import CaseFile
from troth_cli.view.amounts import sol
from troth_cli.view.cases import (
    case_values,
    ends_text,
    kind_text,
    outcome_text,
    verdicts_text,
    word,
)
from troth_cli.view.chain import key_text
from troth_cli.view.contestable import openable_blocks, openable_values
from troth_cli.view.output import Facts, Grid, Json
from troth_coordinator.rules.audits import run_clock

if TYPE_CHECKING:
    from troth_cli.workflows.case_list import CaseList


def list_values(found: "CaseList") -> dict[str, Json]:
    """Return the lists that were asked for, as JSON."""
    values: dict[str, Json] = {
        "run": key_text(found.view.run.address),
        "slot": found.view.slot,
        "slot_micros": found.slot.micros,
        "cases": [case_values(case) for case in found.cases],
    }
    if found.closed is not None:
        values["closed"] = [case_values(case) for case in found.closed]
    if found.openable is not None:
        values["bond_lamports"] = found.view.run.params.bond_lamports
        values["openable"] = openable_values(found.openable, found.view)
    return values


def list_blocks(found: "CaseList") -> list[Facts | Grid | str]:
    """Return the same for people."""
    clock = run_clock(found.view.run, found.view.slot)
    columns = ("round", "target", "kind", "stage", "outcome", "verdicts", "in escrow", "stage ends")
    rows = [
        (*_about(case), _verdicts(case), _taken(case), ends_text(case, clock, found.slot))
        for case in found.cases
    ]
    blocks: list[Facts | Grid | str] = [Grid(columns, rows) if rows else "No audit is open."]
    if found.closed is not None:
        over = [(*_about(case), _taken(case)) for case in found.closed]
        titles = (*columns[:5], "taken")
        blocks.append(Grid(titles, over, "over") if over else "No audit is over yet.")
    if found.openable is not None:
        blocks += openable_blocks(found.openable, found.view, found.slot)
    return blocks


def _about(case: CaseFile) -> tuple[object, ...]:
    return (
        case.key[0],
        case.key[1],
        kind_text(case.key[2]),
        case.stage.lower(),
        word(CaseOutcome, case.case_outcome) or outcome_text(case.outcome) or "",
    )


def _verdicts(case: CaseFile) -> str:
    return verdicts_text(case.jurors or case.seats)


def _taken(case: CaseFile) -> str:
    return sol(case.money.taken) if case.money.taken else ""
