"""A Run account for people and for JSON: `troth run show`, and the result of `troth run create`.

Owns: names and units of the printed fields. Never: reads the chain.
Next: `commands/run.py`, which prints it.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from troth_cli.slot_time import SlotTime
from troth_cli.view.amounts import sol
from troth_cli.view.chain import key_text
from troth_cli.view.output import Facts, Json
from troth_cli.view.terms import losses_block, losses_values
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.units import in_units
from troth_coordinator.rules.view import RunFlag, RunView

if TYPE_CHECKING:
    from troth_cli.workflows.create import Created, Plan

_MONEY = (
    "total_stake",
    "total_unbonding",
    "total_unvested",
    "total_claimable",
    "total_bonds",
    "total_escrow",
    "total_withheld",
    "reward_pool",
)


def run_values(view: RunView, program: object) -> dict[str, Json]:
    """Return all fields of a Run account, hashes in hex, addresses in base58."""
    values: dict[str, Json] = {
        "run": key_text(view.address),
        "program": str(program),
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


def run_blocks(view: RunView, program: object, slot: SlotTime) -> Sequence[Facts]:
    """Return the same for people; the parameters in units, windows with their times."""
    values = run_values(view, program)
    money = [(name.replace("_", " "), sol(int(getattr(view, name)))) for name in _MONEY]
    plain = [
        (name.replace("_", " "), value)
        for name, value in values.items()
        if name not in ("params", "run_id") and not name.endswith("_lamports")
    ]
    params = asdict(view.params) | {"admission": view.params.admission.name.lower()}
    others = {name: value for name, value in params.items() if not name.endswith("_slots")}
    chosen = [(name.replace("_", " "), value) for name, value in in_units(others).items()]
    windows = windows_block(view.params, slot)
    return [Facts(plain), Facts(money, "money"), Facts(chosen, "parameters"), windows]


def windows_block(params: ParamsView, slot: SlotTime) -> Facts:
    """Return the windows of a run as times that people know."""
    names = [name for name in asdict(params) if name.endswith("_slots")]
    rows = [
        (name.removesuffix("_slots").replace("_", " "), slot.window(int(getattr(params, name))))
        for name in names
    ]
    return Facts(rows, "windows")


def created_values(created: "Created", settings: RunSettings, out: Path) -> dict[str, Json]:
    """Return the accounts and the file of a creation, for JSON."""
    view = created.view
    return {
        "run": key_text(view.address),
        "is_new": created.is_new,
        "config_file": str(out),
        "config_hash": view.config_hash.hex(),
        "manifest_hash": view.manifest_hash.hex(),
        "genesis_root": view.genesis_root.hex(),
        "reward_pool_lamports": view.reward_pool,
        "min_stake_lamports": view.params.min_stake_lamports,
        "losses_lamports": losses_values(view.params, view.params.min_stake_lamports),
        "fee_lamports": sum(one.fee_lamports for one in created.transactions),
        "num_transactions": len(created.transactions),
        "settings": settings.model_dump(mode="json"),
    }


def created_blocks(created: "Created", out: Path) -> list[Facts | str]:
    """Return the same for people."""
    view = created.view
    rows = [
        ("run", key_text(view.address)),
        ("run file", out),
        ("config hash", view.config_hash.hex()),
        ("manifest hash", view.manifest_hash.hex()),
        ("genesis root", view.genesis_root.hex()),
        ("reward pool", sol(view.reward_pool)),
        ("stake to join", sol(view.params.min_stake_lamports)),
        ("fees", sol(sum(one.fee_lamports for one in created.transactions))),
    ]
    is_new = "Created." if created.is_new else "It existed already; nothing was created twice."
    params = view.params
    next_step = f"{is_new} Hand out {out}. Join with: troth join {out} --key FILE"
    return [Facts(rows), losses_block(params, params.min_stake_lamports), next_step]


def planned_values(planned: "Plan", fund_lamports: int) -> dict[str, Json]:
    """Return what a creation would make and cost, for JSON."""
    params = planned.terms.params
    return {
        "run": str(planned.run),
        "is_created": False,
        "config_hash": planned.terms.config_hash.hex(),
        "manifest_hash": planned.terms.manifest_hash.hex(),
        "genesis_root": planned.terms.genesis_root.hex(),
        "rent_and_fees_lamports": planned.price,
        "fund_lamports": fund_lamports,
        "min_stake_lamports": params.min_stake_lamports,
        "losses_lamports": losses_values(params, params.min_stake_lamports),
        "settings": planned.settings.model_dump(mode="json"),
    }


def planned_blocks(planned: "Plan", fund_lamports: int, slot: SlotTime) -> list[Facts | str]:
    """Return the same for people, with the windows of the run."""
    params = planned.terms.params
    rows = [
        ("run", planned.run),
        ("config hash", planned.terms.config_hash.hex()),
        ("rent and fees", f"about {sol(planned.price)}; `troth run close` gives the rent back"),
        ("reward pool", sol(fund_lamports)),
        ("reward", f"{sol(params.reward_per_payload)} for an included payload"),
        ("witness pay", f"{sol(params.witness_fee)} for a verdict"),
        ("stake to join", sol(params.min_stake_lamports)),
    ]
    losses = losses_block(params, params.min_stake_lamports)
    return [Facts(rows), windows_block(params, slot), losses, "Nothing was sent."]
