"""What the chain shows of a run, as plain values for JSON and as rows for people.

Owns: names and units of the printed fields. Never: reads the chain.
Next: `commands/run.py` and `commands/status.py`, which print them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from solders.pubkey import Pubkey

from troth_audit.cases import CaseFile
from troth_cli.view.amounts import number_or_none, sol
from troth_cli.view.cases import case_values
from troth_cli.view.output import Facts, Grid, Json
from troth_coordinator.chain.client import ConfirmedTransaction
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.progress import attendance, is_transition_due
from troth_coordinator.rules.reward import Buckets, claimable_from, release
from troth_coordinator.rules.view import (
    EntryFlag,
    EntryView,
    NetworkView,
    ParticipantView,
    Role,
    RunFlag,
    RunView,
    Status,
)

_MONEY = (
    "total_stake",
    "total_unbonding",
    "total_unvested",
    "total_claimable",
    "total_bonds",
    "total_escrow",
    "treasury",
    "reward_pool",
)


def run_values(view: RunView) -> dict[str, Json]:
    """Return everything that a Run account says, hashes in hex, addresses in base58."""
    values: dict[str, Json] = {
        "run": key_text(view.address),
        "authority": key_text(view.authority),
        "council": key_text(view.council),
        "phase": view.phase.name.lower(),
        "round": view.round,
        "max_rounds": view.params.max_rounds,
        "epoch": view.epoch,
        "cursor": view.cursor,
        "root_round": view.root_round,
        "is_pause_requested": bool(view.flags & RunFlag.PAUSE_REQUESTED),
        "are_params_pending": bool(view.flags & RunFlag.PARAMS_PENDING),
        "void_streak": view.void_streak,
        "num_participants": view.num_participants,
    }
    for name in ("run_id", "config_hash", "manifest_hash", "genesis_root", "root", "chain_hash"):
        values[name] = bytes(getattr(view, name)).hex()
    for name in _MONEY:
        values[f"{name}_lamports"] = int(getattr(view, name))
    params = {k: int(v) for k, v in asdict(view.params).items()}
    values["params"] = params | {"admission": view.params.admission.name.lower()}
    return values


def run_blocks(view: RunView) -> Sequence[Facts]:
    """Return the same for people, without the parameters."""
    values = run_values(view)
    money = [(name.replace("_", " "), sol(int(getattr(view, name)))) for name in _MONEY]
    plain = [
        (name.replace("_", " "), value)
        for name, value in values.items()
        if name not in ("params", "run_id") and not name.endswith("_lamports")
    ]
    return [Facts(plain), Facts(money, "money")]


def status_values(
    view: NetworkView,
    participants: Mapping[int, ParticipantView | None],
    cases: Sequence[CaseFile] = (),
    slashes: Sequence[Mapping[str, Json]] = (),
) -> dict[str, Json]:
    """Return where a run stands, who takes part, what is judged and what was taken.

    `participants` is by index; `slashes` are rows of `slashes.py`.
    """
    run = view.run
    who = attendance(view)
    ends = number_or_none(run.phase_end_slot)
    return {
        "run": key_text(run.address),
        "slot": view.slot,
        "phase": run.phase.name.lower(),
        "phase_end_slot": ends,
        "slots_left": None if ends is None else max(0, ends - view.slot),
        "is_transition_due": is_transition_due(view),
        "round": run.round,
        "max_rounds": run.params.max_rounds,
        "epoch": run.epoch,
        "is_pause_requested": bool(run.flags & RunFlag.PAUSE_REQUESTED),
        "void_streak": run.void_streak,
        "root": run.root.hex(),
        "root_round": run.root_round,
        "chain_hash": run.chain_hash.hex(),
        "reward_pool_lamports": run.reward_pool,
        "treasury_lamports": run.treasury,
        "escrow_lamports": run.total_escrow,
        "bonds_lamports": run.total_bonds,
        "num_audits": run.num_audits,
        "accusations": [case_values(case) for case in cases if case.is_accused],
        "slashes": list(slashes),
        "capacity": run.params.capacity,
        "min_members": run.params.min_members,
        "num_required": bitmap.count(who.required),
        "num_acted": bitmap.count(who.acted),
        "participants": [
            _entry_values(index, entry, view, participants.get(index))
            for index, entry in taken(view)
        ],
    }


def status_blocks(values: Mapping[str, Json]) -> Sequence[Facts | Grid]:
    """Return the same for people."""
    left = values["slots_left"]
    head = Facts(
        [
            ("run", values["run"]),
            ("phase", f"{values['phase']}" + ("" if left is None else f" ({left} slots left)")),
            ("round", f"{values['round']} of {values['max_rounds']}"),
            ("acted", f"{values['num_acted']} of {values['num_required']}"),
            ("reward pool", sol(_number(values["reward_pool_lamports"]))),
            ("treasury", sol(_number(values["treasury_lamports"]))),
            ("in escrow", sol(_number(values["escrow_lamports"]))),
            ("open audits", values["num_audits"]),
            ("root", f"{values['root']} (round {values['root_round']})"),
        ]
    )
    people = values["participants"]
    rows = [
        (
            row["index"],
            row["owner"],
            row["status"],
            row["role"],
            sol(_number(row["stake_lamports"])),
            sol(_number(row["claimable_lamports"]) + _number(row["unvested_lamports"])),
            "" if row["last_included_round"] is None else row["last_included_round"],
            row["strikes"],
            row["convictions"],
            row["endpoint"] or "",
        )
        for row in (people if isinstance(people, list) else [])
    ]
    columns = (
        "#",
        "owner",
        "status",
        "role",
        "stake",
        "rewards",
        "included",
        "strikes",
        "convictions",
        "endpoint",
    )
    return [head, Grid(columns, rows), *_accusations(values["accusations"])]


def _accusations(cases: Json) -> list[Grid]:
    rows = [
        (
            case["round"],
            case["target"],
            case["stage"],
            case["case_outcome"] or "",
            sol(case["taken_lamports"]),
            sol(case["split"]["burned_lamports"]),
            sol(case["split"]["treasury_lamports"]),
        )
        for case in (cases if isinstance(cases, list) else [])
    ]
    columns = ("round", "accused", "stage", "outcome", "taken", "to burn", "to treasury")
    return [Grid(columns, rows, "open accusations")] if rows else []


def taken(view: NetworkView) -> list[tuple[int, EntryView]]:
    """Return the entries that somebody holds or has held, with their indices."""
    return [(i, entry) for i, entry in enumerate(view.entries) if entry.status != Status.EMPTY]


def transaction_values(sent: ConfirmedTransaction) -> dict[str, Json]:
    """Return what is worth knowing of one transaction."""
    return {
        "signature": str(sent.signature),
        "slot": sent.slot,
        "fee_lamports": sent.fee_lamports,
        "compute_units": sent.compute_units,
    }


def key_text(key: bytes) -> str:
    """Return an address in base58."""
    return str(Pubkey.from_bytes(key))


def role_text(roles: Role) -> str:
    """Return `trainer`, `witness` or `both`."""
    if roles == Role.TRAINER | Role.WITNESS:
        return "both"
    return (roles.name or str(int(roles))).lower()


def _entry_values(
    index: int, entry: EntryView, view: NetworkView, participant: ParticipantView | None
) -> dict[str, Json]:
    buckets = Buckets(entry.bucket_window, entry.bucket_amount)
    clock = run_clock(view.run, view.slot)
    unvested, vested = release(buckets, clock, view.run.params.vesting_slots)
    acted = attendance(view)
    return {
        "index": index,
        "owner": key_text(entry.owner),
        "session": key_text(entry.session),
        "status": entry.status.name.lower(),
        "role": role_text(entry.roles),
        "is_leaving": bool(entry.flags & EntryFlag.LEAVING),
        "has_acted": bool(acted.acted >> index & 1) if acted.required >> index & 1 else None,
        "stake_lamports": entry.stake,
        "claimable_lamports": entry.claimable + vested,
        "unvested_lamports": unvested.unvested,
        "joined_round": number_or_none(entry.joined_round),
        "last_included_round": number_or_none(entry.last_included),
        "return_round": None if entry.return_round == NONE else entry.return_round,
        "jailed_until_round": number_or_none(entry.jailed_until_round),
        "rounds_served": entry.rounds_served,
        "misses_in_row": entry.misses_in_row,
        "strikes": entry.strikes,
        "convictions": entry.work_faults,
        "is_frozen": entry.frozen > 0,
        "endpoint": None if participant is None else participant.endpoint,
    }


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0


def owner_values(
    view: NetworkView, participant: ParticipantView | None, owner: Pubkey
) -> dict[str, Json]:
    """Return what a run owes an owner; zeros where everything has been paid."""
    entry = next((e for _, e in taken(view) if e.owner == bytes(owner)), None)
    tickets = () if participant is None else participant.tickets
    vesting = view.run.params.vesting_slots
    rest, vested = Buckets((0, 0, 0), (0, 0, 0)), 0
    clock = run_clock(view.run, view.slot)
    if entry is not None:
        rest, vested = release(Buckets(entry.bucket_window, entry.bucket_amount), clock, vesting)
    moved = 0 if participant is None else participant.claimable
    return {
        "at_slot": view.slot,
        "status": "closed" if participant is None else _status_text(entry),
        "stake_lamports": 0 if entry is None else entry.stake,
        "claimable_lamports": moved + vested + (0 if entry is None else entry.claimable),
        "unvested_lamports": rest.unvested,
        "next_vesting_slot": min(
            (
                view.slot + claimable_from(window, vesting) - clock
                for window, amount in zip(rest.windows, rest.amounts, strict=True)
                if amount
            ),
            default=None,
        ),
        "claimed_total_lamports": 0 if participant is None else participant.claimed_total,
        "withdrawn_total_lamports": 0 if participant is None else participant.withdrawn_total,
        "unbonding": [
            {"lamports": ticket.lamports, "matures_slot": ticket.matures_slot}
            for ticket in tickets
            if ticket.lamports
        ],
    }


def owner_block(values: Mapping[str, Json]) -> Facts:
    """Return the same for people."""
    rows: list[tuple[str, object]] = [("status", values["status"])]
    for name in ("stake", "claimable", "unvested"):
        rows.append((name, sol(_number(values[f"{name}_lamports"]))))
    slot, tickets = _number(values["at_slot"]), values["unbonding"]
    if values["next_vesting_slot"] is not None:
        left = max(0, _number(values["next_vesting_slot"]) - slot)
        rows.append(("next rewards vest", f"in {left} slots"))
    for ticket in tickets if isinstance(tickets, list) else []:
        left = max(0, ticket["matures_slot"] - slot)
        rows.append(("unbonding", f"{sol(ticket['lamports'])}, due in {left} slots"))
    return Facts(rows)


def _status_text(entry: EntryView | None) -> str:
    if entry is None:
        return "left"
    return "leaving" if entry.flags & EntryFlag.LEAVING else entry.status.name.lower()
