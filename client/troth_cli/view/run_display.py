"""A run from the chain as a picture: `troth status --watch`.

Owns: how an observation looks on a terminal. Never: reads anything, or decides when to draw.
Next: `screen.py`; `../observe/record.py` for the numbers; `run_lines.py` for the same as lines.
"""

from collections.abc import Iterator
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from troth_cli.observe.record import Observation, ParticipantSeen
from troth_cli.observe.words import time_left_text, voices
from troth_cli.view.amounts import LAMPORTS_PER_SOL
from troth_cli.view.run_lines import case_line, slash_line
from troth_client.telemetry.parts import MICRO, clean, duration, head, loss_line, nats

NUM_EVENTS: Final = 3
"""So many cases, and so many slashes, are shown: the newest ones."""
OTHER_ROWS: Final = 20
"""Rows of a terminal that are not for participants."""
LEAST_PEOPLE: Final = 4
OWNER_LETTERS: Final = 8
STALE_SECONDS: Final = 15.0
"""From this age on, the age of what is shown is said."""
COLUMNS: Final = (
    ("#", "right"),
    ("owner", "left"),
    ("status", "left"),
    ("role", "left"),
    ("loss", "right"),
    ("included", "right"),
    ("strikes", "right"),
    ("offences", "right"),
    ("stake", "right"),
    ("earned", "right"),
)


def draw(seen: Observation, num_rows: int) -> RenderableType:
    """Return the picture of an observation for a terminal of so many rows."""
    losses = [one.mean_loss_micro / MICRO for one in seen.rounds if one.mean_loss_micro is not None]
    most = max(LEAST_PEOPLE, num_rows - OTHER_ROWS)
    return Group(
        *_warnings(seen),
        _head(seen),
        loss_line(losses, "training loss"),
        *_facts(seen),
        _people(seen, most),
        *_events(seen),
    )


def _warnings(seen: Observation) -> Iterator[Text]:
    if seen.is_gone:
        yield clean("the run's accounts are closed; this is how it last was", "yellow")
    elif seen.trouble:
        age = duration(seen.age_seconds)
        yield clean(f"no answer from the RPC node for {age}: {seen.trouble}", "red")
    elif seen.age_seconds >= STALE_SECONDS:
        yield clean(f"this is {duration(seen.age_seconds)} old", "yellow")
    for warning in seen.warnings:
        yield clean(f"warning: {warning}", "yellow")


def _head(seen: Observation) -> RenderableType:
    run, left = seen.run, seen.slots_left
    closed = min(run.round, run.max_rounds)
    phase = run.phase.replace("_", " ")
    ends = "" if left is None else f", {left} slots left"
    title = f"round {closed} of {run.max_rounds}   {phase}{ends}   slot {seen.slot}"
    return head(title, run.run, closed, run.max_rounds)


def _facts(seen: Observation) -> Iterator[Text]:
    newest, run = seen.newest, seen.run
    if newest is not None:
        chain = newest.chain
        end = "void" if chain.is_void else f"{chain.num_included} of {chain.num_trainers} included"
        loss = nats(newest.mean_loss_micro) or "not known"
        yield clean(f"round {chain.round}: {end}, loss {loss} ({voices(newest)})")
    yield clean(f"time left: {time_left_text(seen.time_left)}")
    pool, escrow = _sol(run.reward_pool_lamports), _sol(run.escrow_lamports)
    yield clean(
        f"acted {run.num_acted} of {run.num_required}, {run.num_eligible_witnesses} witnesses,"
        f" {run.num_audits} open audits, pool {pool} SOL, escrow {escrow} SOL",
        "dim",
    )


def _people(seen: Observation, most: int) -> RenderableType:
    table = Table(expand=True, box=SIMPLE_HEAD, padding=0)
    for name, justify in COLUMNS:
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    for one in seen.participants[:most]:
        table.add_row(*map(clean, _row(one)))
    more = len(seen.participants) - most
    if more <= 0:
        return table
    return Group(table, clean(f"and {more} more: troth status lists all", "dim"))


def _row(one: ParticipantSeen) -> list[object]:
    return [
        one.index,
        one.owner[:OWNER_LETTERS],
        f"{one.status}, leaving" if one.is_leaving else one.status,
        one.role,
        nats(one.last_loss_micro),
        one.num_included,
        one.strikes or "",
        one.offences or "",
        _sol(one.stake_lamports),
        _sol(one.claimable_lamports + one.unvested_lamports),
    ]


def _events(seen: Observation) -> Iterator[Text]:
    accused = [case for case in seen.cases if case.is_accused]
    for case in accused[-NUM_EVENTS:]:
        yield clean(case_line(case), "red")
    for slash in seen.slashes[-NUM_EVENTS:]:
        yield clean(slash_line(slash), "red")


def _sol(lamports: int) -> str:
    return f"{lamports / LAMPORTS_PER_SOL:.4g}"
