"""Checkpoints for people and for JSON.

Owns: names and units of the printed fields. Never: reads the chain or a file.
Next: `commands/checkpoint.py`, which prints them.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from troth_cli.view.chain import key_text
from troth_cli.view.output import Facts, Grid, Json
from troth_coordinator.rules.view import CheckpointView, ParticipantView

if TYPE_CHECKING:
    from troth_cli.workflows.checkpoint import Checkpoints
    from troth_client.checkpoint.exporting import Origin

SHORT = 12
"""Hexadecimal digits of a root in a table; --json and `show` have all of them."""


def list_values(found: "Checkpoints") -> dict[str, Json]:
    """Return all checkpoints of a run, oldest first."""
    newest = found.accounts[-1].round if found.accounts else None
    rows: list[Json] = [
        {
            **_account_values(one, found.view.slot),
            "num_announcers": len(found.announcers(one.round)),
            "is_newest": one.round == newest,
        }
        for one in found.accounts
    ]
    run = found.view.run
    return {
        "run": key_text(run.address),
        "round": run.round,
        "slot": found.view.slot,
        "checkpoints": rows,
    }


def list_blocks(found: "Checkpoints") -> list[Grid | str]:
    """Return the same for people."""
    if not found.accounts:
        return ["This run has stored no checkpoint yet."]
    columns = ("round", "epoch", "root", "slot", "slots ago", "announced by", "")
    newest = found.accounts[-1]
    rows = [
        (
            one.round,
            one.epoch,
            one.root.hex()[:SHORT],
            one.slot,
            found.view.slot - one.slot,
            len(found.announcers(one.round)),
            "newest" if one is newest else "",
        )
        for one in found.accounts
    ]
    return [Grid(columns, rows)]


def show_values(
    found: "Checkpoints", one: CheckpointView, program: str, num_bytes: int | None
) -> dict[str, Json]:
    """Return one checkpoint and who announced it; bytes are None without the config."""
    announcers = found.announcers(one.round)
    hashes = {announcer.manifest_hash for announcer in announcers}
    return {
        "run": key_text(one.run),
        "program": program,
        **_account_values(one, found.view.slot),
        "num_bytes": num_bytes,
        "do_manifests_agree": len(hashes) == 1 if announcers else None,
        "announcers": [_announcer_values(announcer) for announcer in announcers],
    }


def show_blocks(
    values: dict[str, Json], announcers: list[ParticipantView]
) -> list[Facts | Grid | str]:
    """Return the same for people."""
    plain: list[tuple[str, object]] = [
        (name.replace("_", " "), value)
        for name, value in values.items()
        if name not in ("announcers", "do_manifests_agree") and value is not None
    ]
    if not announcers:
        return [Facts(plain), "Nobody has announced it. Members may still have it."]
    columns = ("index", "owner", "endpoint", "manifest")
    rows = [
        (one.index, key_text(one.owner), one.endpoint, one.manifest_hash.hex()[:SHORT])
        for one in announcers
    ]
    agree = "All of them announced the same manifest."
    differ = "Their manifests differ, so some are wrong: `fetch` finds out which bytes are right."
    return [
        Facts(plain),
        Grid(columns, rows, "announced by"),
        agree if values["do_manifests_agree"] else differ,
    ]


def origin_values(origin: "Origin", path: Path) -> dict[str, Json]:
    """Return where weights at a path come from."""
    return {
        "path": str(path),
        "program": origin.program,
        "run": origin.run,
        "round": origin.round,
        "cursor": origin.cursor,
        "root": origin.root,
        "config_hash": origin.config.config_hash().hex(),
    }


def _account_values(one: CheckpointView, slot: int) -> dict[str, Json]:
    return {
        "round": one.round,
        "cursor": one.cursor,
        "epoch": one.epoch,
        "root": one.root.hex(),
        "slot": one.slot,
        "age_slots": slot - one.slot,
    }


def _announcer_values(one: ParticipantView) -> Json:
    return {
        "index": one.index,
        "owner": key_text(one.owner),
        "endpoint": one.endpoint,
        "manifest_hash": one.manifest_hash.hex(),
    }
