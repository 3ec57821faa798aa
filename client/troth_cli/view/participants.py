"""Participants for people and for JSON: a line of `troth status`, and the claims of an owner.

Owns: names and units of the printed fields. Never: reads the chain.
Next: `status.py`, and `commands/membership.py`, which print them.
"""

from collections.abc import Mapping

from solders.pubkey import Pubkey

from troth_cli.errors import NotJoinedError
from troth_cli.observe.fold import taken_entries
from troth_cli.slot_time import SlotTime
from troth_cli.view.amounts import sol
from troth_cli.view.output import Facts, Json
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.reward import Buckets, claimable_from, release
from troth_coordinator.rules.view import (
    EntryFlag,
    EntryView,
    NetworkView,
    ParticipantView,
)


def entry_of(view: NetworkView, owner: Pubkey) -> tuple[int, EntryView] | None:
    """Return the newest entry of an owner with its index, left ones too; None without one."""
    mine = [(index, entry) for index, entry in taken_entries(view) if entry.owner == bytes(owner)]
    return max(mine, key=lambda one: one[1].joined_round, default=None)


def require_joined(participant: ParticipantView | None, run: Pubkey, owner: Pubkey) -> None:
    """Raise NotJoinedError where an owner has no account in a run."""
    if participant is None:
        raise NotJoinedError(
            f"a participant of run {run}",
            "none with this key",
            "Pass the key that joined; what has left and been paid is closed.",
            f"owner {owner}",
        )


def owner_values(
    view: NetworkView, participant: ParticipantView | None, owner: Pubkey
) -> dict[str, Json]:
    """Return the lamports that a run owes an owner; zeros if everything has been paid."""
    _, entry = entry_of(view, owner) or (None, None)
    tickets = () if participant is None else participant.tickets
    vesting = view.run.params.vesting_slots
    rest, vested = Buckets((0, 0, 0), (0, 0, 0)), 0
    clock = run_clock(view.run, view.slot)
    if entry is not None:
        rest, vested = release(Buckets(entry.bucket_window, entry.bucket_amount), clock, vesting)
    moved = 0 if participant is None else participant.claimable
    dates = sorted(
        (view.slot + claimable_from(window, vesting) - clock, amount)
        for window, amount in zip(rest.windows, rest.amounts, strict=True)
        if amount
    )
    return {
        "at_slot": view.slot,
        "status": "closed" if participant is None else _status_text(entry),
        "stake_lamports": 0 if entry is None else entry.stake,
        "claimable_lamports": moved + vested + (0 if entry is None else entry.claimable),
        "unvested_lamports": rest.unvested,
        "next_vesting_slot": dates[0][0] if dates else None,
        "next_vesting_lamports": dates[0][1] if dates else 0,
        "claimed_total_lamports": 0 if participant is None else participant.claimed_total,
        "withdrawn_total_lamports": 0 if participant is None else participant.withdrawn_total,
        "unbonding": [
            {"lamports": ticket.lamports, "matures_slot": view.slot + ticket.matures_clock - clock}
            for ticket in tickets
            if ticket.lamports
        ],
    }


def owner_block(values: Mapping[str, Json], slot: SlotTime) -> Facts:
    """Return the same for people; `slot` turns windows into times."""
    rows: list[tuple[str, object]] = [("status", values["status"])]
    for name in ("stake", "claimable", "unvested"):
        rows.append((name, sol(whole(values[f"{name}_lamports"]))))
    next_part = next_vesting(values, slot)
    if next_part:
        rows.append(("next rewards", next_part))
    at, tickets = whole(values["at_slot"]), values["unbonding"]
    for ticket in tickets if isinstance(tickets, list) else []:
        left = max(0, ticket["matures_slot"] - at)
        rows.append(("unbonding", f"{sol(ticket['lamports'])}, due in {slot.window(left)}"))
    return Facts(rows)


def next_vesting(values: Mapping[str, Json], slot: SlotTime) -> str:
    """Return what vests next and when; "" where nothing waits."""
    if values["next_vesting_slot"] is None:
        return ""
    due = whole(values["next_vesting_slot"])
    left = max(0, due - whole(values["at_slot"]))
    amount = sol(whole(values["next_vesting_lamports"]))
    return f"{amount} vest at slot {due}, in {slot.window(left)}"


def whole(value: Json) -> int:
    """Return a value that is a whole number, zero for any other."""
    return value if isinstance(value, int) else 0


def _status_text(entry: EntryView | None) -> str:
    if entry is None:
        return "left"
    return "leaving" if entry.flags & EntryFlag.LEAVING else entry.status.name.lower()
