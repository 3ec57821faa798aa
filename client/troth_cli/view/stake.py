"""The stake of a participant and its losses, for people and for JSON.

Owns: names, units and rough dates of `troth stake show`. Never: reads the chain.
Next: `../commands/stake.py`; `participants.py` for the amounts that every owner's command shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from solders.pubkey import Pubkey

from troth_cli.slot_time import SlotTime
from troth_cli.view.amounts import sol
from troth_cli.view.output import Facts, Grid, Json
from troth_cli.view.participants import entry_of, owner_block, owner_values, whole
from troth_cli.view.slashes import slash_values
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import PRESENT
from troth_coordinator.rules.reward import claimable_from
from troth_coordinator.rules.standing import needed_stake
from troth_coordinator.rules.view import NetworkView, ParticipantView

if TYPE_CHECKING:
    from troth_audit.slashes import Slash


def stake_values(
    view: NetworkView, participant: ParticipantView | None, owner: Pubkey
) -> dict[str, Json]:
    """Return what `troth withdraw` shows, and the least stake, what waits, and when it vests.

    The least stake is None where more would not help: after leaving, a bar, or the run's end.
    """
    values, params = owner_values(view, participant, owner), view.run.params
    _, entry = entry_of(view, owner) or (None, None)
    if entry is None:
        return values | {"needed_lamports": None}
    may_stay = entry.status in PRESENT and view.run.phase != Phase.FINISHED
    clock = run_clock(view.run, view.slot)
    buckets = zip(entry.bucket_window, entry.bucket_amount, strict=True)
    dates = [(claimable_from(window, params.vesting_slots), amount) for window, amount in buckets]
    return values | {
        "needed_lamports": needed_stake(entry, params) if may_stay else None,
        "join_lamports": params.min_stake_lamports,
        "offences": entry.work_faults,
        "is_frozen": entry.frozen > 0,
        "withheld_lamports": entry.withheld,
        "vesting": [
            {"lamports": amount, "vests_slot": view.slot + due - clock}
            for due, amount in sorted(dates)
            if amount and due > clock
        ],
    }


def losses_of(
    view: NetworkView, owner: Pubkey, slashes: "Sequence[Slash]"
) -> list[Mapping[str, Json]]:
    """Return the convictions and fines of an owner; of its index before it joined are others'.

    An owner that has left answers for its last rounds as well, until somebody takes its index.
    """
    found = entry_of(view, owner)
    if found is None:
        return []
    index, entry = found
    mine = (one for one in slashes if one.index == index and one.round >= entry.joined_round)
    return [slash_values(one) for one in mine]


def stake_blocks(
    values: Mapping[str, Json], losses: Sequence[Mapping[str, Json]], slot: SlotTime
) -> list[Facts | Grid]:
    """Return the same for people."""
    blocks: list[Facts | Grid] = [Facts(list(_rows(values, slot))), owner_block(values, slot)]
    rows = [
        (str(one["round"]), f"{one['fault']} {one['why']}", sol(whole(one["taken_lamports"])))
        for one in losses
    ]
    return [*blocks, Grid(("round", "reason", "taken"), rows, "lost")] if rows else blocks


def _rows(values: Mapping[str, Json], slot: SlotTime) -> Iterator[tuple[str, object]]:
    stake, needed = whole(values["stake_lamports"]), values["needed_lamports"]
    if isinstance(needed, int):
        yield "least to stay", sol(needed)
        if stake < needed:
            yield "missing", f"{sol(needed - stake)}: troth stake top-up"
    if values.get("is_frozen"):
        yield "accused", "a case is open, so nothing is paid out until it ends"
    withheld = whole(values.get("withheld_lamports"))
    if withheld:
        yield "withheld", f"{sol(withheld)}, until an audit of later work clears"
    vesting = values.get("vesting")
    for part in vesting if isinstance(vesting, list) else []:
        left = max(0, part["vests_slot"] - whole(values["at_slot"]))
        yield "vests", f"{sol(part['lamports'])} in {slot.window(left)}"
