"""Convictions and fines of a run as a table, for `troth status`.

Owns: the printed form of the records of `troth_audit/slashes.py`. Never: reads the chain.
Next: `status.py`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from troth_attestation.slashing import Fault
from troth_cli.view.amounts import sol
from troth_cli.view.output import Grid, Json

if TYPE_CHECKING:
    from troth_audit.slashes import Slash


def slash_values(slash: "Slash") -> Mapping[str, Json]:
    """Return a record for JSON, without the parts that its kind cannot have."""
    values: dict[str, Json] = {
        "round": slash.round,
        "index": slash.index,
        "fault": slash.fault.value,
        "why": _words(slash.fault),
        "taken_lamports": slash.taken,
        "burned_lamports": slash.burned,
    }
    if slash.challenger is not None:
        values["challenger_lamports"] = slash.challenger
    if slash.acquitted is not None:
        values["acquitted_lamports"] = slash.acquitted
    return values | {"is_paid_out": slash.is_paid_out}


def slash_grids(slashes: "Sequence[Slash]") -> list[Grid]:
    """Return a table for people; nothing if nothing was taken."""
    rows = [
        (
            one.round,
            one.index,
            f"{one.fault.value} {_words(one.fault)}",
            _sol(one.taken),
            _sol(one.burned),
            "paid out" if one.is_paid_out else "in escrow",
        )
        for one in slashes
    ]
    columns = ("round", "who", "fault", "taken", "burned", "")
    return [Grid(columns, rows, "slashes, from the transactions")] if rows else []


def _words(fault: Fault) -> str:
    return fault.name.lower().replace("_", " ")


def _sol(amount: int) -> str:
    return sol(amount) if amount else ""
