"""The members of a round (protocol section 3): the sets that its open fixes.

Owns: members, trainers, eligible witnesses and the class sampled as new, read from the roster.
Never: changes them during a round; joins, leaves and key changes wait for the next open.
Next: `assignment.py` for the work of the trainers, `root.py` for their votes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from troth_coordinator.rules import bitmap, eligibility, standing
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.ids import NONE, Bitmap, ParticipantIndex, RoundIndex
from troth_coordinator.rules.params_checks import jury_duty_slots, longest_settlement_slots
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.view import (
    EntryFlag,
    EntryView,
    NetworkView,
    ParticipantView,
    Role,
    RunView,
    Status,
)

NEW_ROUNDS = 20
"""Included rounds in which it could have been audited, since joining or the last strike, after
which a participant is no longer new."""


class Member(standing.Staker, Protocol):
    """The record of a participant that an open reads: an entry of the roster, or of a recount."""

    @property
    def status(self) -> Status:
        """Its standing."""

    @property
    def roles(self) -> int:
        """The bits of `Role`."""

    @property
    def flags(self) -> int:
        """The bits of `EntryFlag`."""

    @property
    def joined_round(self) -> int:
        """The round in which it joined."""

    @property
    def active_round(self) -> int:
        """The round from which on it is a member."""

    @property
    def rounds_served(self) -> int:
        """Rounds in which it attested."""

    @property
    def included_since_strike(self) -> int:
        """Included rounds in which it could have been audited, since joining or a strike."""


@dataclass(frozen=True, slots=True)
class RoundSets:
    """The sets that the open of a round fixes."""

    members: Bitmap
    trainers: Bitmap
    eligible: Bitmap
    is_new: Bitmap


def is_going(entry: Member, params: ParamsView) -> bool:
    """Tell whether a member stays for the root-only step at most: it leaves, or is short."""
    return bool(entry.flags & EntryFlag.LEAVING) or standing.is_short(entry, params)


def is_silent(entry: Member) -> bool:
    """Tell whether a witness was silent on a seat and has not acted since: it is not seated."""
    return bool(entry.flags & EntryFlag.SILENT)


def sets_at_open(entries: Sequence[EntryView], round_: int, params: ParamsView) -> RoundSets:
    """Return the sets of a round opened now with this roster.

    Where too few stay, or all rounds are done, the root-only step opens, in which whoever is
    leaving or short of stake still votes.
    """
    of_index = dict(enumerate(entries))
    keeps_going = is_root_only(of_index, round_, params)
    return sets_of(of_index, round_, params, keeps_going=keeps_going)


def is_root_only(entries: Mapping[int, Member], round_: int, params: ParamsView) -> bool:
    """Tell whether the root-only step opens now, in place of another round; entries by index."""
    staying = sets_of(entries, round_, params, keeps_going=False)
    are_few = bitmap.count(staying.members) < params.min_members
    return round_ >= params.max_rounds or not staying.trainers or are_few


def sets_of(
    entries: Mapping[int, Member], round_: int, params: ParamsView, *, keeps_going: bool
) -> RoundSets:
    """Return the sets of a round opened now with these entries, by index.

    `keeps_going` says whether whoever is leaving or short of stake is a member.
    """
    members = {
        index: entry
        for index, entry in entries.items()
        if entry.status == Status.ACTIVE
        and entry.active_round <= round_
        and (keeps_going or not is_going(entry, params))
    }

    def those(test: Callable[[Member], bool]) -> Bitmap:
        return bitmap.from_indices(index for index, entry in members.items() if test(entry))

    def has_earned_seat(entry: Member) -> bool:
        after = params.seat_after_rounds
        return eligibility.has_earned_seat(entry.rounds_served, entry.joined_round, after)

    return RoundSets(
        members=those(lambda entry: True),
        trainers=those(lambda entry: bool(entry.roles & Role.TRAINER)),
        eligible=eligibility.fill_bench(
            those(has_earned_seat),
            those(lambda entry: bool(entry.roles & Role.WITNESS) and not is_silent(entry)),
            lambda index: entries[index].rounds_served,
        ),
        is_new=those(lambda entry: entry.included_since_strike < NEW_ROUNDS),
    )


def index_of_owner(entries: Sequence[EntryView], owner: bytes) -> ParticipantIndex | None:
    """Return the index at which an owner takes part (joined and not left), or None."""
    for index, entry in enumerate(entries):
        if entry.owner == owner and entry.status not in (Status.EMPTY, Status.LEFT):
            return ParticipantIndex(index)
    return None


def index_left(view: NetworkView, participant: ParticipantView | None) -> ParticipantIndex | None:
    """Return the index that an owner had before it left, while nobody else has it; else None."""
    if participant is None or participant.index >= len(view.entries):
        return None
    entry = view.entries[participant.index]
    is_ours = entry.owner == participant.owner and entry.status == Status.LEFT
    return participant.index if is_ours else None


def index_to_serve(
    view: NetworkView, participant: ParticipantView | None
) -> ParticipantIndex | None:
    """Return the index of an owner that has left, while audits may ask it for something.

    That is until the program lets it join again; None otherwise.
    """
    index = index_left(view, participant)
    if index is None or participant is None:
        return None
    is_past = may_join_again(view.entries[index], participant, view.run, view.slot)
    return None if is_past else index


def may_join_again(entry: EntryView, participant: ParticipantView, run: RunView, slot: int) -> bool:
    """Tell whether no case can be opened any more about the membership of one that has left.

    Its tickets tell when it left.
    """
    if entry.audits:
        return False
    longest, clock = longest_settlement_slots(run.params), run_clock(run, slot)
    opened = (
        max(0, ticket.matures_clock - run.params.unbond_slots)
        for ticket in participant.tickets
        if ticket.lamports
    )
    return is_free(entry, run.round, run.params.ring) or all(
        since + longest < clock for since in opened
    )


def is_free(entry: EntryView, round_: int, ring: int) -> bool:
    """Tell whether an index may be given to a new participant in a round."""
    if entry.status == Status.EMPTY:
        return True
    return (
        entry.status in (Status.LEFT, Status.BARRED)
        and entry.stake == 0
        and entry.audits == 0
        # No round and no audit names an owner that never was a member: others need not wait.
        and (entry.active_round == NONE or entry.left_round + ring <= round_)
    )


def is_past_juries(entry: EntryView, params: ParamsView, clock: int) -> bool:
    """Tell whether one that has left owes no jury: its index is not given away before.

    No case about a round that was open at its last action is judged any more.
    """
    has_none = entry.status in (Status.EMPTY, Status.BARRED) or entry.active_round == NONE
    return has_none or clock > entry.last_action + jury_duty_slots(params)


def free_indices(view: NetworkView) -> list[ParticipantIndex]:
    """Return the indices that a newcomer may ask for, lowest first.

    The program refuses one whose former owner still has rewards that have not vested: ask for the
    next one then.
    """
    run, params, clock = view.run, view.run.params, run_clock(view.run, view.slot)
    return [
        ParticipantIndex(index)
        for index, entry in enumerate(view.entries[: params.capacity])
        if is_free(entry, run.round, params.ring) and is_past_juries(entry, params, clock)
    ]


def previous_included(last_included: int, round_: int, residual_rounds: int) -> RoundIndex:
    """Return the last included round if it lies in the residual period of `round_`, else NONE.

    The period of a round is round // residual_rounds; residuals are zeroed between periods.
    """
    if last_included == NONE or last_included // residual_rounds != round_ // residual_rounds:
        return RoundIndex(NONE)
    return RoundIndex(last_included)
