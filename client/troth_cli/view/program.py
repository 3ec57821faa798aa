"""A program on chain, and the plan of a deploy, for people and as JSON.

Owns: labels and order. Never: reads a chain. Next: `../commands/program.py`.
"""

from troth_cli.view.amounts import sol
from troth_cli.view.output import Facts, Json
from troth_cli.workflows.deploy_plan import DeployPlan
from troth_cli.workflows.deployed import DeployedProgram
from troth_coordinator.chain.loader import Buffer
from troth_coordinator.chain.program_image import code_hash, sbpf_version
from troth_coordinator.chain.rpc import Account

_DOES = {
    "deploy": "deploys a new program",
    "upgrade": "upgrades the program that is there; close its runs first, they may stand still",
    "same": "leaves the code, which is there already",
}


def plan_values(plan: DeployPlan) -> dict[str, Json]:
    """Return a plan for JSON."""
    return {
        "program_id": str(plan.program),
        "authority": str(plan.authority),
        "cluster": plan.cluster.name,
        "genesis_hash": plan.cluster.genesis_text,
        "kind": plan.kind,
        "sbpf": sbpf_version(plan.image),
        "image_bytes": len(plan.image),
        "image_sha256": code_hash(plan.image),
        "room_bytes": plan.max_code_bytes,
        "extension_bytes": plan.extension,
        "buffer": str(plan.buffer),
        "buffer_lamports": plan.buffer_lamports,
        "chunks_to_send": len(plan.missing),
        "buffer_rent_lamports": plan.buffer_rent,
        "program_rent_lamports": plan.program_rent,
        "data_rent_lamports": plan.data_rent,
        "fees_lamports": plan.fees,
        "peak_lamports": plan.peak_lamports,
        "spent_lamports": plan.spent_lamports,
        "balance_lamports": plan.balance,
        "short_lamports": plan.short_lamports,
    }


def without_id(values: dict[str, Json]) -> dict[str, Json]:
    """Return the values of a plan without those that follow from the key of the program."""
    return values | dict.fromkeys(("program_id", "image_sha256", "buffer"))


def plan_facts(plan: DeployPlan, *, has_id: bool = True) -> Facts:
    """Return a plan for people: what it does, what it costs, what comes back.

    `has_id`: else the deploy makes the program's key, and this plan was made for another one.
    """
    is_upgrade = plan.kind == "upgrade"
    rows: list[tuple[str, object]] = [
        ("cluster", f"{plan.cluster.name} (genesis {plan.cluster.genesis_text})"),
        ("program id", plan.program if has_id else "that of a key which the deploy makes"),
        ("payer and authority", plan.authority),
        ("this", _DOES[plan.kind]),
        ("image", f"{len(plan.image)} bytes, sBPF {sbpf_version(plan.image)}"),
        ("sha256", code_hash(plan.image)),
    ]
    if plan.kind != "same":
        room = f"{plan.max_code_bytes} bytes"
        grown = f", {plan.extension} more than now" if plan.extension else ""
        rent = "stays with the code" if not is_upgrade else "for the room that is added"
        rows += [
            ("room for code", room + grown),
            ("rent of the code", f"{sol(plan.data_rent)}, {rent}"),
            ("rent of the program", f"{sol(plan.program_rent)}, never comes back"),
            ("rent of the buffer", f"{sol(plan.buffer_rent)}, comes back at the end"),
            ("held by the buffer", f"{sol(plan.buffer_lamports)}, left by an earlier attempt"),
            ("buffer", plan.buffer),
        ]
        rows = [row for row in rows if not _is_idle(plan, row[0])]
    if not has_id:
        rows = [row for row in rows if row[0] not in ("sha256", "buffer")]
    rows += [
        ("fees", f"{sol(plan.fees)} for {plan.num_signatures} signatures"),
        ("needed meanwhile", sol(plan.peak_lamports)),
        ("spent at the end", f"{sol(plan.spent_lamports)}{_returns(plan)}"),
        ("balance", sol(plan.balance) + _short(plan)),
    ]
    return Facts(rows)


def program_values(found: DeployedProgram) -> dict[str, Json]:
    """Return a program on chain for JSON."""
    return {
        "program_id": str(found.address),
        "loader": str(found.loader),
        "authority": None if found.authority is None else str(found.authority),
        "data_address": None if found.data_address is None else str(found.data_address),
        "slot": found.slot,
        "code_bytes": found.num_code_bytes,
        "room_bytes": len(found.code),
        "sha256": code_hash(found.code),
        "lamports": found.lamports,
        "returned_by_close_lamports": 0 if found.authority is None else found.data_lamports,
    }


def program_facts(found: DeployedProgram) -> Facts:
    """Return a program on chain for people."""
    returned = 0 if found.authority is None else found.data_lamports
    rows: list[tuple[str, object]] = [
        ("program id", found.address),
        ("loader", found.loader),
        ("authority", who_may_change(found)),
        ("program data", found.data_address or "in the program's own account"),
        ("last deployed", "unknown" if found.slot is None else f"in slot {found.slot}"),
        ("code", f"{found.num_code_bytes} bytes, with room for {len(found.code)}"),
        ("sha256", f"{code_hash(found.code)} (as solana-verify counts)"),
        ("rent", f"{sol(found.lamports)}, of which closing returns {sol(returned)}"),
    ]
    return Facts(rows)


def who_may_change(found: DeployedProgram) -> str:
    """Say who could put other code at the id."""
    if found.authority is None:
        return "none: nobody can change the code"
    return f"{found.authority}, who can change the code at any time"


def buffer_values(address: str, buffer: Buffer, account: Account) -> dict[str, Json]:
    """Return a buffer for JSON."""
    return {
        "buffer": address,
        "authority": None if buffer.authority is None else str(buffer.authority),
        "code_bytes": len(buffer.code),
        "sha256": code_hash(buffer.code),
        "lamports": account.lamports,
    }


def _is_idle(plan: DeployPlan, label: str) -> bool:
    """Tell whether a line would only say that nothing is paid."""
    amounts = {
        "rent of the code": plan.data_rent,
        "rent of the program": plan.program_rent,
        "rent of the buffer": plan.kind == "upgrade",
        "held by the buffer": plan.buffer_lamports,
    }
    return label in amounts and not amounts[label]


def _returns(plan: DeployPlan) -> str:
    if plan.kind != "deploy":
        return ""
    return f"; `troth program close` would return {sol(plan.data_rent)} of it, and end the program"


def _short(plan: DeployPlan) -> str:
    return f", {sol(plan.short_lamports)} too little" if plan.short_lamports else ""
