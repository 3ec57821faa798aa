"""Where a run stands, for people: `troth status`.

Owns: labels and units of the printed fields. Never: reads the chain.
Next: `../observe/record.py` for the JSON, `slashes.py`, `commands/status.py`, which prints it.
"""

from collections.abc import Sequence

from troth_audit.cases import CaseFile
from troth_cli.observe.record import Observation, ParticipantSeen, RunSeen
from troth_cli.observe.words import loss_text, time_left_text
from troth_cli.view.amounts import sol
from troth_cli.view.cases import case_values
from troth_cli.view.output import Facts, Grid


def status_blocks(seen: Observation) -> Sequence[Facts | Grid]:
    """Return what was seen of a run, for people."""
    run, left = seen.run, seen.slots_left
    head = Facts(
        [
            ("run", run.run),
            ("phase", run.phase + ("" if left is None else f" ({left} slots left)")),
            ("round", f"{run.round} of {run.max_rounds}"),
            ("training loss", loss_text(seen)),
            ("time left", time_left_text(seen.time_left)),
            ("acted", f"{run.num_acted} of {run.num_required}"),
            ("reward pool", sol(run.reward_pool_lamports)),
            ("in escrow", sol(run.escrow_lamports)),
            ("open audits", run.num_audits),
            ("eligible witnesses", run.num_eligible_witnesses),
            ("could be audited", f"{run.num_auditable} of {run.num_sampled} sampled"),
            *_roots(run),
        ]
    )
    columns = (
        "#",
        "owner",
        "status",
        "role",
        "stake",
        "rewards",
        "included",
        "strikes",
        "offences",
        "endpoint",
    )
    rows = [_row(one) for one in seen.participants]
    return [head, Grid(columns, rows), *_accusations(seen.cases)]


def _roots(run: RunSeen) -> list[tuple[str, object]]:
    """Return the newest root, and the stored one where that is another."""
    stored = f"{run.root} (after {run.root_round} rounds)"
    if run.newest_root in (None, run.root):
        return [("root", stored)]
    newest = f"{run.newest_root} (after {run.newest_root_round} rounds, by the members' votes)"
    every = f"the program stores one every {run.checkpoint_every} rounds"
    return [("newest root", newest), ("stored root", f"{stored}: {every}")]


def _row(one: ParticipantSeen) -> tuple[object, ...]:
    return (
        one.index,
        one.owner,
        one.status,
        one.role,
        sol(one.stake_lamports),
        sol(one.claimable_lamports + one.unvested_lamports),
        "" if one.last_included_round is None else one.last_included_round,
        one.strikes,
        one.offences,
        one.endpoint or "",
    )


def _accusations(cases: Sequence[CaseFile]) -> list[Grid]:
    rows = [
        (
            case.key[0],
            case.key[1],
            case.stage.lower(),
            case_values(case)["case_outcome"] or "",
            sol(case.money.taken),
            sol(case.money.burned),
        )
        for case in cases
        if case.is_accused
    ]
    columns = ("round", "accused", "stage", "outcome", "taken", "to burn")
    return [Grid(columns, rows, "open accusations")] if rows else []
