"""The tally after a round: where the run and we stand, and what has moved.

Owns: the fields of the event `tallied`, from the view and the counts that are here already.
Never: asks an RPC node or another participant. Next: `settle.py`, which emits it;
`telemetry/own_board.py`, which adds it up.
"""

from troth_client.network.chain import OUTSIDE, RunChain
from troth_client.telemetry.events import JsonValue
from troth_client.transport.base import Transport
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.reward import Buckets, release
from troth_coordinator.rules.view import EntryView, NetworkView, Status


def tally(chain: RunChain, transport: Transport, round_: int) -> dict[str, JsonValue]:
    """Return the numbers after a closed round. Money in lamports, bytes since this start."""
    view = chain.watch.latest
    members = 0 if view.round is None else view.round.members
    counts: dict[str, JsonValue] = {
        "round": round_,
        "rounds": view.run.params.max_rounds,
        "slot": view.slot,
        "members": bitmap.count(members) if members else _num_active(view),
        "audits": view.run.num_audits,
        "sent_bytes": transport.tally.num_sent,
        "received_bytes": transport.tally.num_received,
    }
    return counts if chain.index == OUTSIDE else {**counts, **_own(view.entries[chain.index], view)}


def _own(entry: EntryView, view: NetworkView) -> dict[str, JsonValue]:
    buckets = Buckets(entry.bucket_window, entry.bucket_amount)
    clock = run_clock(view.run, view.slot)
    rest, vested = release(buckets, clock, view.run.params.vesting_slots)
    return {
        "included": entry.included_total,
        "stake": entry.stake,
        "claimable": entry.claimable + vested,
        "unvested": rest.unvested,
        "strikes": entry.strikes,
        "offences": entry.work_faults,
    }


def _num_active(view: NetworkView) -> int:
    return sum(entry.status == Status.ACTIVE for entry in view.entries)
