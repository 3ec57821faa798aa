"""The cases that a challenger could open now, for people and for JSON.

Owns: the printed form of `troth_attestation/contestable.py`, with what a win and a loss cost.
Never: reads the chain, or knows a penalty; `troth_attestation/slashing.py` does.
Next: `cases.py`; `../commands/case.py`, which prints both.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from troth_attestation import slashing
from troth_attestation.contestable import Contestable
from troth_cli.view.amounts import sol
from troth_cli.view.cases import kind_text
from troth_cli.view.output import Facts, Grid, Json
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.view import EntryView, NetworkView

if TYPE_CHECKING:
    from troth_cli.slot_time import SlotTime


def openable_values(found: Sequence[Contestable], view: NetworkView) -> list[Json]:
    """Return every case that could be opened, and the bounty of its conviction."""
    return [
        {
            "round": one.round,
            "target": one.target,
            "kind": kind_text(one.kind),
            "subjects": list(bitmap.indices_of(one.subjects)),
            "until_slot": view.slot + one.slots_left - 1,
            "slots_left": one.slots_left,
            "bounty_lamports": bounty(one, view.entries[one.target]),
        }
        for one in found
    ]


def openable_blocks(
    found: Sequence[Contestable], view: NetworkView, slot: "SlotTime"
) -> list[Facts | Grid | str]:
    """Return the same for people: one line for each round and kind, then the money."""
    if not found:
        return ["No case can be opened now: every round is too old, or nobody could judge it."]
    rows = [
        _row(list(ones), view, slot) for _, ones in groupby(sorted(found, key=_line), key=_line)
    ]
    columns = ("round", "kind", "targets", "payloads of", "until slot", "time left", "a win pays")
    params, bond = view.run.params, view.run.params.bond_lamports
    lost = slashing.failed_case(bond)
    money = Facts(
        [
            ("bond", f"{sol(bond)}, which the key pays when it opens the case"),
            ("a win", f"the bond comes back, and {slashing.BOUNTY_PERCENT} % of what is taken"),
            (
                "a loss",
                f"the bond: up to seven jurors get {sol(params.witness_fee)} each; of the rest,"
                f" at most {sol(lost.acquitted)} goes to the acquitted and as much is burned",
            ),
            ("not proven", "the jurors' fees; the rest of the bond comes back"),
        ],
        "money of a case",
    )
    return [
        Grid(columns, rows, "a case could be opened about"),
        money,
        "Open one with: troth case open RUN --round N --target INDEX --kind KIND --key FILE",
    ]


def bounty(one: Contestable, entry: EntryView) -> int:
    """Return the challenger's part of a conviction, from the stake that the target has now."""
    funds = slashing.Funds(
        claimable=0,
        unvested=sum(entry.bucket_amount),
        stake=entry.stake,
        unbonding=entry.unbonding,
    )
    penalty = {
        AuditKind.WORK: lambda: slashing.work(funds, is_repeated=entry.work_faults > 0),
        AuditKind.PAYLOAD: lambda: slashing.malformed(funds),
        AuditKind.ROOT: lambda: slashing.false_root(funds),
        AuditKind.POSSESSION: lambda: slashing.false_possession(funds),
    }[one.kind]()
    return slashing.split(slashing.take(penalty, funds).total, has_bond=True).challenger


def _row(ones: Sequence[Contestable], view: NetworkView, slot: "SlotTime") -> tuple[object, ...]:
    first = ones[0]
    subjects = 0
    for one in ones:
        subjects |= one.subjects
    paid = [bounty(one, view.entries[one.target]) for one in ones]
    low, high = min(paid), max(paid)
    return (
        first.round,
        kind_text(first.kind),
        _indices(one.target for one in ones),
        _indices(bitmap.indices_of(subjects)),
        view.slot + first.slots_left - 1,
        slot.about(first.slots_left),
        sol(low) if low == high else f"{sol(low)} to {sol(high)}",
    )


def _line(one: Contestable) -> tuple[int, int]:
    return one.round, int(one.kind)


def _indices(found: Iterable[int]) -> str:
    return ", ".join(map(str, found))
