"""Where a run stands, for people and for JSON: `troth status`.

Owns: names and units of the printed fields. Never: reads the chain.
Next: `participants.py` and `slashes.py` for its parts, `commands/status.py`, which prints it.
"""

from collections.abc import Mapping, Sequence

from troth_audit.cases import CaseFile
from troth_cli.view.amounts import number_or_none, sol
from troth_cli.view.cases import case_values
from troth_cli.view.chain import key_text
from troth_cli.view.output import Facts, Grid, Json
from troth_cli.view.participants import entry_values, taken_entries, whole
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.oversight import Oversight
from troth_coordinator.rules.progress import attendance, is_transition_due
from troth_coordinator.rules.view import NetworkView, ParticipantView, RunFlag


def status_values(
    view: NetworkView,
    seen: Oversight,
    participants: Mapping[int, ParticipantView | None],
    cases: Sequence[CaseFile] = (),
    slashes: Sequence[Mapping[str, Json]] = (),
) -> dict[str, Json]:
    """Return the state of a run, its participants, its open audits and its slashes.

    `seen` tells how well it is audited, `participants` is by index; `slashes` are rows of
    `slashes.py`.
    """
    run = view.run
    attending = attendance(view)
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
        "escrow_lamports": run.total_escrow,
        "bonds_lamports": run.total_bonds,
        "num_audits": run.num_audits,
        "num_eligible_witnesses": seen.num_eligible,
        "num_sampled": seen.num_sampled,
        "num_auditable": seen.num_auditable,
        "accusations": [case_values(case) for case in cases if case.is_accused],
        "slashes": list(slashes),
        "capacity": run.params.capacity,
        "min_members": run.params.min_members,
        "num_required": bitmap.count(attending.required),
        "num_acted": bitmap.count(attending.acted),
        "participants": [
            entry_values(index, entry, view, participants.get(index))
            for index, entry in taken_entries(view)
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
            ("reward pool", sol(whole(values["reward_pool_lamports"]))),
            ("in escrow", sol(whole(values["escrow_lamports"]))),
            ("open audits", values["num_audits"]),
            ("eligible witnesses", values["num_eligible_witnesses"]),
            ("could be audited", f"{values['num_auditable']} of {values['num_sampled']} sampled"),
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
            sol(whole(row["stake_lamports"])),
            sol(whole(row["claimable_lamports"]) + whole(row["unvested_lamports"])),
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
        )
        for case in (cases if isinstance(cases, list) else [])
    ]
    columns = ("round", "accused", "stage", "outcome", "taken", "to burn")
    return [Grid(columns, rows, "open accusations")] if rows else []
