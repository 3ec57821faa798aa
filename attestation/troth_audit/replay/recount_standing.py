"""The effect of a fault beside money (program: `round/penalties.rs`, `state/presence.rs`).

Owns: presence, strikes, jail, the end of a membership, probation.
Never: moves lamports, or decides about a fault.
Next: `recount_rounds.py`, `recount_audits.py` and `recount_cases.py`, which call it.
"""

from troth_audit.replay.recount_state import Books, Entry
from troth_coordinator.rules import outage, standing
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.standing import Misses
from troth_coordinator.rules.view import EntryFlag, Status

SEAT_FAULTS_TO_JAIL = 3
_MAY_BE_JAILED = (Status.PENDING, Status.ACTIVE, Status.INACTIVE)


def _shortest(params: ParamsView) -> int:
    return min(params.verdict_commit_slots, params.jury_commit_slots)


def act(books: Books, entry: Entry, slot: int) -> None:
    """Note an action: the participant is there."""
    entry.presence = outage.act(entry.presence, books.clock(slot), _shortest(books.params))
    entry.flags &= ~EntryFlag.SILENT


def miss(entry: Entry, ended: int) -> bool:
    """Note silence in a window that ended at `ended`; returns whether it costs a fine."""
    after, is_fined = outage.miss(entry.presence, ended)
    entry.presence = after
    if outage.is_silent_since(after, ended):
        entry.flags |= EntryFlag.SILENT
    return is_fined


def strike(books: Books, entry: Entry, round_: int) -> bool:
    """Give a strike; returns whether it jailed."""
    past = entry.past
    past.strikes = min(255, past.strikes + 1)
    entry.included_since_strike = 0
    past.strike_rounds, is_third = standing.add_strike(past.strike_rounds, round_)
    return is_third and jail(books, entry, round_)


def remove_strike(entry: Entry) -> None:
    """Take the newest strike back."""
    rounds = list(entry.past.strike_rounds)
    newest = max((one for one in rounds if one != NONE), default=None)
    if newest is not None:
        at = max(place for place, one in enumerate(rounds) if one == newest)
        rounds[at] = standing.NO_STRIKES[0]
    entry.past.strike_rounds = (rounds[0], rounds[1], rounds[2])


def jail(books: Books, entry: Entry, round_: int) -> bool:
    """Jail from the next open on; false for one that is going, gone or there already."""
    if entry.status not in _MAY_BE_JAILED or entry.is_leaving:
        return False
    entry.past.jailed_until_round = round_ + 1 + books.params.rounds_per_epoch
    entry.status, entry.ready = Status.JAILED, None
    return True


def end_membership(entry: Entry, status: Status, round_: int) -> None:
    """Left or barred: the index becomes free later."""
    entry.status, entry.ready = status, None
    entry.flags &= ~EntryFlag.LEAVING
    if entry.left_round == NONE:
        entry.left_round = round_


def make_inactive(books: Books, entry: Entry, round_: int, *, is_fined: bool) -> bool:
    """End a row of misses; returns whether the fee is due."""
    entry.misses = Misses()
    entry.status, entry.ready = Status.INACTIVE, None
    if not is_fined:
        return False
    past, epoch = entry.past, books.params.rounds_per_epoch
    past.return_round = standing.return_round(past.inactive_round, round_, epoch)
    past.inactive_round = round_
    return True


def begin_probation(entry: Entry) -> None:
    """Start a probation, or start it anew: the next payload is drawn."""
    entry.flags |= EntryFlag.PROBATION
    entry.probation_round = NONE


def end_probation(entry: Entry) -> None:
    """End a probation."""
    entry.flags &= ~EntryFlag.PROBATION
    entry.probation_round = NONE


def choose_probation(entry: Entry, number: int, ring: int) -> bool:
    """Choose the payload of this round for the audit that decides, unless one is chosen."""
    past = min(NONE, entry.probation_round + ring)
    is_given_up = past <= number and entry.targets == 0
    is_open = entry.probation_round == NONE or is_given_up
    fault = entry.past.refusals.decided_round
    is_due = entry.is_on_probation and is_open and number > fault
    if is_due:
        entry.probation_round = number
    return is_due


def is_tested_in(entry: Entry, number: int) -> bool:
    """Whether the audit of that round decides the probation."""
    is_it = entry.probation_round == number and entry.joined_round <= number
    return entry.is_on_probation and is_it


def redraw_probation(entry: Entry, number: int) -> None:
    """Free the probation of a payload that is not audited after all."""
    if is_tested_in(entry, number):
        entry.probation_round = NONE
