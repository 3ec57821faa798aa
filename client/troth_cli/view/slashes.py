"""What was taken from whom in a run: convictions and fines, for `troth status`.

Owns: one row for each, from transactions, so that it is there after the accounts are closed.
Never: reads the chain; `history.py` does. Next: `describe.py`.
"""

from collections.abc import Mapping, Sequence

from troth_attestation.slashing import Fault
from troth_audit.cases import CaseFile
from troth_audit.history import Fine, Slashes
from troth_cli.view.amounts import sol
from troth_cli.view.output import Grid, Json
from troth_coordinator.rules.audit_view import AuditKind

_FAULTS = {
    AuditKind.WORK: Fault.WORK,
    AuditKind.PAYLOAD: Fault.MALFORMED,
    AuditKind.ROOT: Fault.FALSE_ROOT,
    AuditKind.POSSESSION: Fault.FALSE_POSSESSION,
}


def slash_values(slashes: Slashes, open_cases: Sequence[CaseFile] = ()) -> list[Mapping[str, Json]]:
    """Return a row for each conviction and each fine, by round; none for what was reversed.

    Of a case whose account is still open, that account is believed: it may have been reversed.
    """
    still_open = {case.key: case for case in open_cases}
    cases = [still_open.get(case.key, case) for case in slashes.cases]
    rows = [(case.key[:2], _conviction(case)) for case in cases if case.is_conviction]
    rows += [((fine.round, fine.index), _fine(fine)) for fine in slashes.fines]
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


def slash_grids(rows: Sequence[Mapping[str, Json]]) -> list[Grid]:
    """Return the same for people; nothing where nothing was taken."""
    shown = [
        (
            row["round"],
            row["index"],
            f"{row['fault']} {row['why']}",
            _sol(row["taken_lamports"]),
            _sol(row["burned_lamports"]),
            _sol(row["treasury_lamports"]),
            "paid out" if row["is_paid_out"] else "in escrow",
        )
        for row in rows
    ]
    columns = ("round", "who", "fault", "taken", "burned", "to treasury", "")
    return [Grid(columns, shown, "slashes, from the transactions")] if shown else []


def _conviction(case: CaseFile) -> Mapping[str, Json]:
    round_, target, kind = case.key
    fault = _FAULTS[AuditKind(kind)]
    return {
        "round": round_,
        "index": target,
        "fault": fault.value,
        "why": _words(fault),
        "taken_lamports": case.money.taken,
        "burned_lamports": case.money.burned,
        "treasury_lamports": case.money.treasury,
        "challenger_lamports": case.money.challenger,
        "is_paid_out": case.money.is_paid,
    }


def _fine(fine: Fine) -> Mapping[str, Json]:
    return {
        "round": fine.round,
        "index": fine.index,
        "fault": fine.fault,
        "why": _words(Fault(fine.fault)),
        "taken_lamports": fine.taken,
        "burned_lamports": fine.burned,
        "treasury_lamports": fine.treasury,
        "acquitted_lamports": fine.acquitted,
        "is_paid_out": True,
    }


def _words(fault: Fault) -> str:
    return fault.name.lower().replace("_", " ")


def _sol(amount: Json) -> str:
    return sol(amount) if isinstance(amount, int) and amount else ""
