"""Votes about the state root and what a round decides by them (protocol section 4).

Owns: the root vote, the canonical decision, inclusion, void rounds, strikes for unavailability.
Never: says which weights are right; replay does, votes decide who is included.
Next: `chain_hash.py`, which commits to the decision; `standing.py` for what follows from strikes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.hashing import H, b32, u64
from troth_coordinator.rules.ids import NOBODY, Bitmap, Digest
from troth_coordinator.rules.view import EntryView, RoundFlag, RoundView


class Outcome(Enum):
    """The ways in which a round may close for a candidate root."""

    VOID = "void"
    NOT_CANONICAL = "not_canonical"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Turnout:
    """Bitmaps of a round: members that should act (fixed at the open) and that have acted."""

    trainers: int
    members: int
    committed: int


@dataclass(frozen=True, slots=True)
class Decision:
    """The effect of closing with a candidate root.

    `included` are the payloads that everyone applies; `unavailable` voted for the canonical root
    but too few vouched for their payload.
    """

    outcome: Outcome
    included: Bitmap = NOBODY
    unavailable: Bitmap = NOBODY


def root_vote(run: bytes, round_: int, owner: bytes, state_root: bytes) -> Digest:
    """Return H("troth:root", run, round, owner, state root): a vote that nobody can copy."""
    fields = (b32(run, "run"), u64(round_), b32(owner, "owner"), b32(state_root, "state root"))
    return H("troth:root", *fields)


def votes_for(
    run: bytes, round_: RoundView, entries: Sequence[EntryView], candidate: bytes
) -> Bitmap:
    """Return the committed trainers whose vote opens to the candidate root."""
    return bitmap.from_indices(
        index
        for index in bitmap.indices_of(round_.committed)
        if round_.ballots[index].root_vote
        == root_vote(run, round_.round, entries[index].owner, candidate)
    )


def is_canonical(turnout: Turnout, votes: int) -> bool:
    """Tell whether more than half of the commits, and half of the trainers, voted for a root."""
    num_votes = bitmap.count(votes & turnout.committed)
    is_majority = 2 * num_votes > bitmap.count(turnout.committed)
    return is_majority and 2 * num_votes >= bitmap.count(turnout.trainers)


def available(attest_bitmaps: Sequence[int]) -> Bitmap:
    """Return those for whom 3 * yes >= 2 * attestations received; nobody if none was received."""
    if not attest_bitmaps:
        return NOBODY
    everyone = 0
    for vouched in attest_bitmaps:
        everyone |= vouched
    return bitmap.from_indices(
        index
        for index in bitmap.indices_of(everyone)
        if 3 * sum(vouched >> index & 1 for vouched in attest_bitmaps) >= 2 * len(attest_bitmaps)
    )


def decide(turnout: Turnout, votes: int, attest_bitmaps: Sequence[int]) -> Decision:
    """Decide a round; `votes` are those for the candidate, one bitmap per attestation received."""
    if _too_few_committed(turnout) or 2 * len(attest_bitmaps) < bitmap.count(turnout.members):
        return Decision(Outcome.VOID)
    if not is_canonical(turnout, votes):
        return Decision(Outcome.NOT_CANONICAL)
    canonical = turnout.committed & votes
    included = canonical & available(attest_bitmaps)
    return Decision(Outcome.CLOSED, Bitmap(included), Bitmap(canonical & ~included))


def decide_root_only(turnout: Turnout, votes: int) -> Decision:
    """Decide the root-only step of Cooldown: the same majorities, nothing to include."""
    if _too_few_committed(turnout):
        return Decision(Outcome.VOID)
    is_closed = is_canonical(turnout, votes)
    return Decision(Outcome.CLOSED if is_closed else Outcome.NOT_CANONICAL)


def decide_view(
    run: bytes, round_: RoundView, entries: Sequence[EntryView], candidate: bytes
) -> Decision:
    """Decide an open round as the chain shows it, for the candidate root.

    A round that a report of missing payloads has forced void is void whatever its ballots say.
    """
    if round_.flags & RoundFlag.FORCED_VOID:
        return Decision(Outcome.VOID)
    turnout = Turnout(round_.trainers, round_.members, round_.committed)
    votes = votes_for(run, round_, entries, candidate)
    if round_.flags & RoundFlag.ROOT_ONLY:
        return decide_root_only(turnout, votes)
    attested = [round_.ballots[i].attest_bitmap for i in bitmap.indices_of(round_.attested)]
    return decide(turnout, votes, attested)


def unavailable_strikes(committed: int, included: int, unavailable: int) -> Bitmap:
    """Return who takes the strike P4: the unavailable, if half of the commits were included."""
    if 2 * bitmap.count(included) >= bitmap.count(committed):
        return Bitmap(unavailable)
    return NOBODY


def _too_few_committed(turnout: Turnout) -> bool:
    # A round without any commit is void even where no trainer was due.
    num_commits = bitmap.count(turnout.committed)
    return num_commits == 0 or 2 * num_commits < bitmap.count(turnout.trainers)
