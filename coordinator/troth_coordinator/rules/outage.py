"""One outage is one fine (protocol section 8): which silences of a judge belong together.

Owns: the newest outage of one participant, in moments of the run clock. An outage is a gap between
two of its actions that is longer than the shortest window in which a judge commits, or any gap that
is still running.
Never: prices a fine. Next: `troth_attestation/slashing.py` for the price.
"""

from dataclasses import dataclass, replace
from enum import Enum

from troth_coordinator.rules.ids import NONE

REPEAT_ROUNDS = 500
"""A second hidden verdict within so many rounds costs more."""


class Hidden(Enum):
    """The kinds of a verdict or vote that was committed and never shown."""

    FIRST = "the first one for a long time"
    AGAIN = "of a round opened before the last one was decided: part of the same silence"
    SECOND = "of a round opened after that, within 500 rounds"


@dataclass(frozen=True, slots=True)
class Presence:
    """The known actions of one participant; moments of the run clock.

    `last_action` is 0 before the first action. `outage_start` and `outage_end` are the actions
    around the newest outage that ended, `fined_outage` the start of the last one that cost a fine;
    each is NONE where there is none.
    """

    last_action: int
    outage_start: int = NONE
    outage_end: int = NONE
    fined_outage: int = NONE


def act(before: Presence, now: int, shortest: int) -> Presence:
    """Return the presence after an action: a gap longer than `shortest` before it was an outage."""
    if now - before.last_action > shortest:
        return Presence(now, before.last_action, now, before.fined_outage)
    return replace(before, last_action=now)


def outage_of(presence: Presence, ended: int) -> int | None:
    """Return the start of the outage in which a window ended at `ended`, None outside any."""
    if is_silent_since(presence, ended):
        return presence.last_action
    if presence.outage_start == NONE:
        return None
    is_in = presence.outage_start < ended <= presence.outage_end
    return presence.outage_start if is_in else None


def miss(presence: Presence, ended: int) -> tuple[Presence, bool]:
    """Note silence in a window that ended at `ended`; returns whether it is fined.

    Every one outside an outage is, and the first one of each outage.
    """
    start = outage_of(presence, ended)
    if start is None:
        return presence, True
    return replace(presence, fined_outage=start), start != presence.fined_outage


def is_silent_since(presence: Presence, ended: int) -> bool:
    """Tell whether the participant has not acted since the moment `ended`."""
    return presence.last_action < ended


def hidden_verdict(round_: int, decided_round: int) -> Hidden:
    """Classify a hidden verdict about a round.

    `decided_round` is the round under way when the last one was counted, or NONE.
    """
    if decided_round == NONE or round_ - decided_round > REPEAT_ROUNDS:
        return Hidden.FIRST
    return Hidden.AGAIN if round_ <= decided_round else Hidden.SECOND
