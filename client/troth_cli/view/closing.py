"""Returns and debts of a run that is closed, for people and for JSON.

Owns: the tables of `troth run close`. Never: reads the chain.
Next: `../workflows/closing.py`, which reads it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from troth_cli.view.amounts import sol
from troth_cli.view.chain import transaction_values
from troth_cli.view.output import Grid, Json

if TYPE_CHECKING:
    from troth_cli.workflows.closing import Closing
    from troth_coordinator.chain.client import ConfirmedTransaction


def closing_values(
    closing: "Closing", sent: "Sequence[ConfirmedTransaction]" = ()
) -> dict[str, Json]:
    """Return what goes back to whom and what is owed; `sent` is empty for a preview."""
    return {
        "run": str(closing.at.run),
        "is_closed": closing.is_closed,
        "num_accounts": len(closing.accounts),
        "num_audits": closing.view.num_audits,
        "returned": [
            {"address": str(receiver), "why": why, "lamports": lamports}
            for (receiver, why), lamports in closing.returned.items()
        ],
        "owed": [
            {
                "owner": str(one.owner),
                "stake_lamports": one.stake,
                "unbonding_lamports": one.unbonding,
                "rewards_lamports": one.rewards,
            }
            for one in closing.owed
        ],
        "transactions": [transaction_values(one) for one in sent],
    }


def closing_blocks(closing: "Closing") -> list[Grid | str]:
    """Return the same for people."""
    back = [(sol(lamports), why, str(to)) for (to, why), lamports in closing.returned.items()]
    owed = [(sol(one.lamports), str(one.owner), one.text) for one in closing.owed]
    blocks: list[Grid | str] = []
    if closing.view.num_audits:
        blocks.append(f"{closing.view.num_audits} audits are open: their due steps come first.")
    if back:
        blocks.append(Grid(("SOL", "what", "to"), back, "goes back"))
    if owed:
        blocks.append(Grid(("SOL", "to", "which"), owed, "stays, because it is owed"))
    return blocks


def closing_lines(closing: "Closing") -> list[str]:
    """Return the same as lines for stderr."""
    lines = [
        f"goes back: {sol(lamports)} {why}, to {to}"
        for (to, why), lamports in closing.returned.items()
    ]
    return [*lines, *(f"stays: {one.owner} is owed {one.text}" for one in closing.owed)]


def closed_blocks(closing: "Closing", sent: "Sequence[ConfirmedTransaction]") -> list[Grid | str]:
    """Return what was done, for people."""
    in_all = f"in {len(sent)} transactions"
    if closing.is_closed:
        return [*closing_blocks(closing), f"Closed run {closing.at.run} {in_all}."]
    done = f"Closed {len(closing.accounts)} accounts {in_all}."
    if closing.owed:
        why = "The run stays open until everybody has left and been paid; repeat it then."
    else:
        why = "The run is still there: its vault keeps lamports that went to nobody. Repeat it."
    return [*closing_blocks(closing), f"{done} {why}"]
