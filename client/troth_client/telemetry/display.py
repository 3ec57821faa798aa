"""Draw a board: the live display of a run, fed by events only.

Owns: how a board looks. Never: reads a file, counts, or decides.
Next: `board.py` for the numbers.
"""

from decimal import Decimal

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from troth_client.telemetry.audit_line import AuditLine
from troth_client.telemetry.board import Board, ParticipantLine
from troth_client.telemetry.parts import clean, head, loss_line

MICRO = 10**6
SOL = 10**9
DENSE_BYTES_PER_PARAMETER = 2
"""Bytes per parameter of a bf16 gradient: the baseline that payloads are compared with."""
NUM_REASON_LETTERS = 40
NUM_AUDITS = 4
"""How many of the notable audits are shown: the newest ones."""
COLUMNS = (
    "participant",
    "state",
    "round",
    "loss",
    "payload",
    "of dense",
    "included",
    "judged",
    "fees SOL",
)


def draw(board: Board, num_parameters: int) -> RenderableType:
    """Return the display of a board for a model of `num_parameters` parameters."""
    parts = [_head(board), loss_line(board.mean_losses()), _participants(board, num_parameters)]
    return Group(*parts, *_audits(board), _foot(board))


def headline(board: Board, num_parameters: int) -> str:
    """Return the board in one line, for a log or a pipe; it changes when a round closes."""
    if not board.run:
        return "setting up: chain, data, run"
    losses = board.mean_losses()
    if not losses:
        return f"run {board.run}: waiting for {board.num_rounds} rounds to begin"
    payload = max((line.payload_bytes for line in board.participants.values()), default=0)
    return (
        f"round {board.num_closed} of {board.num_rounds}: training loss {losses[-1]:.3f},"
        f" payload {payload:,} bytes ({dense_share(payload, num_parameters)} of dense),"
        f" {len(board.participants)} participants"
    )


def _head(board: Board) -> RenderableType:
    if not board.run:
        title = "setting up"
        if board.data_total:
            done, total = board.data_done / 1e6, board.data_total / 1e6
            title = f"preparing data: {done:.1f} of {total:.1f} MB"
        return Panel(ProgressBar(board.data_total or 1, board.data_done), title=title)
    phase = board.phase.lower().replace("_", " ")
    title = f"round {board.num_closed} of {board.num_rounds}   {phase}   slot {board.slot}"
    return head(title, board.run, board.num_closed, board.num_rounds)


def _participants(board: Board, num_parameters: int) -> RenderableType:
    table = Table(expand=True)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("participant", "state") else "right")
    for name in sorted(board.participants):
        table.add_row(*map(clean, _row(board.participants[name], num_parameters)))
    return table


def _row(line: ParticipantLine, num_parameters: int) -> list[str]:
    loss = "" if line.loss_micro is None else f"{line.loss_micro / MICRO:.3f}"
    payload = f"{line.payload_bytes / 1000:.1f} kB" if line.payload_bytes else ""
    return [
        line.name,
        line.failure[:NUM_REASON_LETTERS] or line.state,
        str(max(line.round, 0)),
        loss,
        payload,
        dense_share(line.payload_bytes, num_parameters),
        str(line.num_included),
        str(line.num_judged) if line.num_judged else "",
        f"{line.fees / SOL:.6f}",
    ]


def audit_text(board: Board, audit: AuditLine) -> str:
    """Return one audit in one line: findings, decision, destination of the money."""
    subject = f"round {audit.round}, {board.name_of(audit.target)}"
    text = " → ".join([subject, *audit.steps()])
    if not audit.is_conviction:
        return text
    if not audit.taken:
        return f"{text} → nothing left to take"
    text = f"{text} → {_sol(audit.taken)} taken →"
    if audit.juror_fees >= audit.taken:
        return f"{text} all of it paid the jurors"
    end = "burned" if audit.is_closed else "burns when the appeal window ends"
    return f"{text} jurors paid, rest {end}"


def _sol(amount: int) -> str:
    return f"{Decimal(amount) / SOL:f} SOL"


def _audits(board: Board) -> list[RenderableType]:
    shown = board.notable_audits()[-NUM_AUDITS:]
    return [clean(audit_text(board, audit), "red") for audit in shown]


def dense_share(payload_bytes: int, num_parameters: int) -> str:
    """Return a payload as a part of a dense bf16 gradient: `1/142`; nothing for no payload."""
    if not payload_bytes:
        return ""
    return f"1/{DENSE_BYTES_PER_PARAMETER * num_parameters // payload_bytes}"


def _foot(board: Board) -> RenderableType:
    text = f"{len(board.participants)} participants, fees {board.fees / SOL:.6f} SOL"
    share = board.judging_share
    if share is not None and any(line.num_judged for line in board.participants.values()):
        judged = sum(line.num_judged for line in board.participants.values())
        text += f", {judged} verdicts in {share:.0%} of the time of training"
    return Text(text, style="dim")
