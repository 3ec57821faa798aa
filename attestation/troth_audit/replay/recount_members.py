"""Memberships in the recount: who may return, who is ready, and who goes.

Owns: `post_ready` and `activate`, the end of a Warmup, requests that wait for an open.
Never: takes stakes; `recount_life.py` does.
Next: `recount_rounds.py` for the rounds and their sets.
"""

from dataclasses import dataclass

from troth_audit.replay import recount_money as money
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_script import Expected, Script
from troth_audit.replay.recount_state import NO_MISSES, Books, Entry
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_types_audits import ProbationsEnded
from troth_coordinator.rules.bitmap import count
from troth_coordinator.rules.ids import NONE, ZERO_DIGEST
from troth_coordinator.rules.lateness import VOID_ROUNDS_TO_HALT
from troth_coordinator.rules.params import epoch_of
from troth_coordinator.rules.phase import IN_ROUND, Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.standing import is_short
from troth_coordinator.rules.view import Role, Status

_WAITING = (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP)


def ready(books: Books, event: of_rounds.ReadyPosted) -> Script:
    """Take in that a participant holds the weights of a round, if it may come back."""
    entry, is_running = books.entry(event.index), books.phase in IN_ROUND
    past, round_ = entry.past, books.round
    is_out = is_running and (
        (entry.status in (Status.PENDING, Status.INACTIVE) and past.return_round > round_)
        or (entry.status in (Status.PENDING, Status.JAILED) and past.jailed_until_round > round_)
    )
    may_act = entry.is_present and entry.status != Status.ACTIVE and not is_out
    is_phase = is_running or books.phase in _WAITING
    if not may_act or not is_phase or is_short(entry, books.params):
        raise MisfitError(Rule.ROUND_SETS, "somebody who may come back", entry.status.name.lower())
    stored, root = books.stored_root
    standing.act(books, entry, event.slot)
    fields: dict[str, object] = {"round": round_ if is_running else stored}
    if not is_running:
        fields["vote"] = root_vote(books.run, stored, entry.owner, root)
        entry.status = Status.PENDING
    yield Expected(of_rounds.ReadyPosted, Rule.ROOT_VOTE, fields)
    entry.ready = event.round, event.vote


def membership_changed(books: Books, event: of_rounds.MembershipChanged) -> Script:
    """Let requests take effect; before a root-only step leavers and the short stay on."""
    left = sum(one for one, entry in books.members() if entry.is_leaving)
    short = sum(
        one
        for one, entry in books.members()
        if entry.status == Status.ACTIVE and not entry.is_leaving and is_short(entry, books.params)
    )
    rotated = sum(one for one, entry in books.members() if entry.has_next_session)
    ways = ({"left": left, "short": short}, {"left": 0, "short": 0})
    fields = {"round": books.round, "rotated": rotated}
    yield Expected(of_rounds.MembershipChanged, Rule.ROUND_SETS, fields, ways)
    books.expected = books.expected.without(event.left & left | event.short & short)
    for one, entry in books.members():
        entry.has_next_session = False
        if event.left & left & one:
            standing.end_membership(entry, Status.LEFT, books.round)
        elif event.short & short & one:
            entry.status, entry.ready = Status.INACTIVE, None


def probations_ended(books: Books, _: ProbationsEnded) -> Script:
    """Probations end because memberships do, or the run: what waited goes to the pool."""
    on = [pair for pair in books.members() if pair[1].is_on_probation and pair[1].is_present]
    going = [pair for pair in on if pair[1].is_leaving] or on
    fields = end_probations(books, going)
    yield Expected(ProbationsEnded, Rule.REWARD, fields)


def end_probations(books: Books, entries: list[tuple[int, Entry]]) -> dict[str, object]:
    """Return what waits for these participants to the pool, and the fields that tell so."""
    ended = [pair for pair in entries if pair[1].is_on_probation and pair[1].is_present]
    returned = sum(money.return_withheld(books, entry) for _, entry in ended)
    return {"ended": sum(one for one, _ in ended), "returned": returned}


@dataclass(slots=True)
class Attendance:
    """Those who are there while no round is open; all of these but `present` are pending."""

    pending: int = 0
    trainers: int = 0
    ready: int = 0
    present: int = 0


def attendance(books: Books) -> Attendance:
    """Return the participants of a run in which no round is open."""
    found, (stored, _) = Attendance(present=books.present()), books.stored_root
    for one, entry in books.members():
        if entry.status != Status.PENDING:
            continue
        found.pending |= one
        found.trainers |= one if entry.roles & Role.TRAINER else 0
        is_ready = entry.ready is not None and entry.ready[0] == stored
        found.ready |= one if is_ready and not is_short(entry, books.params) else 0
    return found


def warmup_ended(books: Books, event: of_rounds.WarmupEnded) -> Script:
    """Make the ready active if they suffice, the absent inactive."""
    found = attendance(books)
    pending, ready_ = found.pending, found.ready
    least = books.expected.least_to_begin(books.params.min_members)
    suffices = count(ready_) >= least and bool(ready_ & found.trainers)
    fields = {
        "round": books.round,
        "ready": ready_ if suffices else 0,
        "absent": pending & ~ready_,
    }
    yield Expected(of_rounds.WarmupEnded, Rule.ROUND_SETS, fields)
    for one, entry in books.members():
        if pending & ~ready_ & one:
            entry.status, entry.ready = Status.INACTIVE, None
        elif suffices and ready_ & one:
            activate(entry, books.round)
    if suffices:
        books.base_round = NONE


def activated(books: Books, event: of_rounds.Activated) -> Script:
    """Let a joiner be a member from the next open, if its weights were those of the round."""
    entry = books.entry(event.index)
    is_between = books.phase == Phase.PAUSED and books.resume_phase == Phase.COMMIT
    from_ = books.round if is_between else books.round + 1
    shown = entry.ready
    may_act = entry.is_present and entry.status != Status.ACTIVE
    if shown is None or not may_act or is_short(entry, books.params):
        raise MisfitError(Rule.ROUND_SETS, "a joiner that is ready", entry.status.name.lower())
    round_ = books.round_of(shown[0], Rule.ROUND_SETS)
    vote = root_vote(books.run, round_.number, entry.owner, round_.canonical_root)
    if not round_.is_closed or round_.canonical_root == ZERO_DIGEST or vote != shown[1]:
        raise MisfitError(Rule.ROOT_VOTE, vote.hex(), shown[1].hex())
    fields = {"ready_round": shown[0], "active_round": from_}
    yield Expected(of_rounds.Activated, Rule.ROUND_SETS, fields)
    activate(entry, from_)


def activate(entry: Entry, round_: int) -> None:
    """Begin a membership with a zero residual."""
    entry.status, entry.active_round, entry.last_included = Status.ACTIVE, round_, NONE
    entry.misses, entry.ready = NO_MISSES, None


def phase_started(books: Books, event: of_rounds.PhaseStarted) -> None:
    """Between stretches of rounds nobody is active."""
    is_after_warmup = books.phase == Phase.WARMUP
    if event.phase == Phase.WARMUP:
        there = attendance(books).pending
        if not books.expected.is_half(count(there)):  # the authority has begun with fewer
            books.expected = books.expected.only(there)
    if event.phase == Phase.HALTED:
        books.base_round = NONE
        if books.void_streak < VOID_ROUNDS_TO_HALT:
            books.epoch = epoch_of(books.round, books.params.rounds_per_epoch)
    if event.phase in (Phase.WAITING_FOR_MEMBERS, Phase.FINISHED):
        books.void_streak, books.base_round = 0, NONE
        for _, entry in books.members():
            if entry.status == Status.ACTIVE:
                entry.status = Status.PENDING
            if not is_after_warmup:
                entry.ready = None
    books.phase = event.phase
