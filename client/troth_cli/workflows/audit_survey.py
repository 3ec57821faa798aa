"""A first reading of a ledger: what an audit must know before it begins.

Owns: the run's creation, the checkpoint from which a replay may begin, the draw of payloads.
Never: folds or checks: the audit reads everything again. A ledger that cannot be read ends here
quietly, since the audit says why.
Next: `audit.py`.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from troth_audit.replay.draw import Draw, Drawn, Place
from troth_client.state.audited import AuditedWeights
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.chain.event_types_rounds import CheckpointStored
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import Ledger

MOST_CHECKPOINTS: Final = 64
"""Of the checkpoints before a round, so many are looked for in the sources, newest first."""


def created_by(ledger: Ledger) -> RunCreated | None:
    """Return the first event of a ledger; None where it is not the run's creation."""
    first = next(_events(ledger), None)
    return first if isinstance(first, RunCreated) else None


def start_before(ledger: Ledger, round_: int, weights: AuditedWeights) -> int:
    """Return the newest round up to `round_` whose stored weights a source has; else genesis.

    The weights are those of that round then.
    """
    if round_ == 0:
        return 0
    stored: deque[CheckpointStored] = deque(maxlen=MOST_CHECKPOINTS)
    for event in _events(ledger):
        if not isinstance(event, CheckpointStored):
            continue
        if event.round > round_:  # checkpoints are stored in the order of their rounds
            break
        if event.round > 0:
            stored.append(event)
    for event in reversed(stored):
        is_there = weights.take_up(event.round, event.cursor, event.root)
        if is_there and weights.root() == event.root:
            return event.round
    return 0


def drawn_from(ledger: Ledger, num: int, key: str, span: range) -> Mapping[Place, Drawn]:
    """Draw so many included payloads of these rounds."""
    draw = Draw(num, key, span)
    for event in _events(ledger):
        draw.take(event)
    return draw.chosen()


def _events(ledger: Ledger) -> Iterator[Event]:
    reader = ledger.head.reader()
    try:
        for entry in ledger.entries():
            yield from reader.events(entry)
    except LedgerError:
        return
