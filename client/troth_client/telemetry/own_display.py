"""Draw one participant and its run: the live view of `troth join` and `troth witness`.

Owns: how an own board looks. Never: counts, reads or decides.
Next: `own_board.py` for the numbers, `parts.py` for what other displays share.
"""

from collections.abc import Iterator
from decimal import Decimal

from rich.console import Group, RenderableType
from rich.table import Table

from troth_client.telemetry.display import audit_text, dense_share
from troth_client.telemetry.events import int_of
from troth_client.telemetry.own_board import MICRO, OwnBoard
from troth_client.telemetry.parts import clean, duration, head, loss_line, nats

SOL = 10**9
NUM_AUDITS = 4
_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def draw_own(own: OwnBoard, num_parameters: int) -> RenderableType:
    """Return the view of one participant for a model of `num_parameters` parameters."""
    board = own.board
    phase = board.phase.lower().replace("_", " ")
    title = f"round {own.num_closed} of {own.num_rounds}   {phase}   slot {board.slot}"
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(own, num_parameters):
        facts.add_row(clean(name, "dim"), clean(value))
    audits = [clean(audit_text(board, one), "red") for one in board.notable_audits()[-NUM_AUDITS:]]
    return Group(
        head(title, own.run, own.num_closed, own.num_rounds),
        loss_line([loss / MICRO for loss in own.losses.values()], "training loss"),
        *_validation(own),
        facts,
        *audits,
    )


def _validation(own: OwnBoard) -> list[RenderableType]:
    losses = [loss / MICRO for loss in own.validation.values()]
    return [loss_line(losses, "validation loss")] if losses else []


def _facts(own: OwnBoard, num_parameters: int) -> Iterator[tuple[str, str]]:
    line, tally = own.line, own.tally
    yield "we", ", ".join(_work(own, num_parameters))
    yield "time left", _time_left(own)
    if tally:
        members, void = int_of(tally, "members"), own.num_void
        words = f"{members} members, {int_of(tally, 'audits')} open audits"
        yield "run", f"{words}, {void} void rounds" if void else words
        sent, received = (_size(int_of(tally, f"{way}_bytes")) for way in ("sent", "received"))
        yield "bytes", f"{sent} sent, {received} received"
    yield "audits", _judged(own)
    fees = f"fees {_sol(line.fees)}"
    if "stake" not in tally:
        yield "money", fees
        return
    stake, ready, rest = (int_of(tally, name) for name in ("stake", "claimable", "unvested"))
    yield "money", f"stake {_sol(stake)}, earned {_sol(ready + rest)} ({_sol(ready)} ready), {fees}"
    faults = [f"{int_of(tally, name)} {name}" for name in ("strikes", "offences")]
    if any(int_of(tally, name) for name in ("strikes", "offences")):
        yield "faults", ", ".join(faults)


def _time_left(own: OwnBoard) -> str:
    if own.num_closed >= own.num_rounds:
        return "none: the last round has closed"
    left = own.seconds_left()
    if left is None:
        return "too few rounds so far"
    span = f"{duration(left.low)} to {duration(left.high)}"
    return f"about {duration(left.middle)}, {span}, without halts"


def _work(own: OwnBoard, num_parameters: int) -> Iterator[str]:
    line = own.line
    if line.index >= 0:
        yield f"participant {line.index}"
    yield line.failure or line.state
    if line.loss_micro is not None:
        yield f"our loss {nats(line.loss_micro)}"
    if line.payload_bytes:
        share = dense_share(line.payload_bytes, num_parameters)
        yield f"payload {_size(line.payload_bytes)} ({share} of dense)"
    if line.num_included:
        yield f"{line.num_included} included"


def _judged(own: OwnBoard) -> str:
    verdicts = own.duties.verdicts + own.duties.votes
    if not verdicts:
        return "none judged"
    kinds = ", ".join(f"{count} {name.lower()}" for name, count in sorted(verdicts.items()))
    return f"{verdicts.total()} judged ({kinds}) in {own.duties.judging_seconds:.0f} s"


def _size(num_bytes: int) -> str:
    for unit, name in _UNITS:
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes} B"


def _sol(amount: int) -> str:
    return f"{Decimal(amount) / SOL:f} SOL"
