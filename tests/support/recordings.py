"""Archives of runs in one process: ledger, account and bytes in the layout that audits read.

Owns: writing one from a run that has ended, and the audit of it. Never: the product's archive.
Next: runs.py.
"""

import asyncio
import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from support.halts import halted_after_progress
from support.runs import NO_AUDITS, settings_of, start_members
from troth_audit.replay.report import Report
from troth_audit.replay.saved import Saved
from troth_cli.workflows.audit import audit
from troth_cli.workflows.audit_inputs import Asked, gather
from troth_cli.workflows.audit_point import POINT_FILE
from troth_cli.workflows.audit_replay import Plan
from troth_client.data.manifest import Manifest, load_manifest
from troth_client.data.shards import TokenData
from troth_client.storage.sealed import read_record
from troth_coordinator.ledger.file import LedgerFile, LedgerHead
from troth_coordinator.ledger.history import entries_after
from troth_coordinator.rules.view import RunView
from troth_simulation.in_process import InProcessRun

PLAN = Plan(num_threads=1)


async def record(run: InProcessRun, data: Path, folder: Path) -> Path:
    """Write the archive of a run whose members keep their blobs in folders."""
    folder.mkdir(parents=True)
    genesis = bytes(await run.rpc.genesis_hash()).hex()
    head = LedgerHead(str(run.client.program_id), str(run.at.run), genesis)
    with LedgerFile(folder / "ledger.jsonl", head) as ledger:
        ledger.append([entry async for entry in entries_after(run.client, run.at.run)])
    slot, (account,) = await run.rpc.get_accounts([run.at.run])
    assert account is not None
    told = {
        "slot": slot,
        "owner": str(account.owner),
        "lamports": account.lamports,
        "data": base64.b64encode(account.data).decode(),
    }
    (folder / "chain.json").write_text(json.dumps(told))
    for member in run.members:
        for path in member.folder.glob("blobs/*/*/*-*"):
            kind, _, key = path.name.partition("-")
            put(folder, kind, key, path.read_bytes())
    config = run.settings.config
    put(folder, "config", config.config_hash().hex(), config.canonical_json())
    manifest = load_manifest(data)
    put(folder, "manifest", manifest.hash.hex(), manifest.canonical)
    return folder


def play(data: tuple[Path, Manifest], folder: Path, rounds: int, names: Sequence[str]) -> Path:
    """Play a run without audits to its end; return its archive."""

    async def to_the_end() -> Path:
        chain = {"checkpoint_every": 2, **NO_AUDITS}
        settings = settings_of(data[1], rounds, **chain)  # type: ignore[arg-type]
        run = await InProcessRun.create(settings, TokenData(*data), folder / "run")
        run.has_blob_folders = True
        await start_members(run, names)
        await run.finish()
        return await record(run, data[0], folder / "archive")

    return asyncio.run(to_the_end())


def play_over_a_halt(data: tuple[Path, Manifest], folder: Path) -> Path:
    """Play a run that halts in round 9 and goes back to the root of round 4; return its archive."""

    async def to_the_end() -> Path:
        chain = {"checkpoint_every": 4, **NO_AUDITS}
        settings = settings_of(data[1], 16, **chain)  # type: ignore[arg-type]
        run = await InProcessRun.create(settings, TokenData(*data), folder / "run")
        run.has_blob_folders = True
        _halted, members = await halted_after_progress(run)
        for one in members[2:4]:
            await run.start(one)
        await run.finish()
        return await record(run, data[0], folder / "archive")

    return asyncio.run(to_the_end())


def put(folder: Path, kind: str, key: str, data: bytes) -> None:
    """Lay a blob into an archive."""
    (folder / kind).mkdir(exist_ok=True)
    (folder / kind / key).write_bytes(data)


def audit_of(
    folder: Path,
    *others: Path,
    plan: Plan = PLAN,
    on_round: Callable[[int], None] = lambda _: None,
) -> Report:
    """Audit an archive offline, in one thread beside the caller's; `others` have bytes as well."""
    asked = Asked(None, None, [], [str(one) for one in (folder, *others)], None, folder)
    return audit(gather(asked), plan, on_round).report


def account_of(folder: Path) -> RunView:
    """The Run account that an archive names."""
    (word,) = gather(Asked(None, None, [], [str(folder)], None, folder)).words
    return word.run


def point_of(state: Path) -> Saved:
    """The point that an audit kept in its folder."""
    kept = read_record(state / POINT_FILE).fields["point"]
    return Saved.model_validate_json(str(kept))
