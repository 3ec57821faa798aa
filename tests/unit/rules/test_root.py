"""Votes and decisions: thresholds, copied votes, silent members, forced voids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.views import RUN_ADDRESS, entry, key, roster, round_view

from troth_coordinator.rules import root
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.root import Decision, Outcome, Turnout
from troth_coordinator.rules.view import BallotView, RoundFlag

ENTRIES = roster(*(entry(number) for number in range(1, 5)))
GOOD, BAD = key(50), key(51)
BITMAPS = st.integers(0, 2**64 - 1)


def ballot(owner, state_root, attest=0b1111):
    vote = root.root_vote(RUN_ADDRESS, 7, owner, state_root)
    return BallotView(key(60), vote, attest, NONE, 0, bytes(64))


def four(votes, attested=0b1111, **changes):
    ballots = {index: ballot(key(index + 1), vote) for index, vote in enumerate(votes)}
    return round_view(ballots, committed=2 ** len(votes) - 1, attested=attested, **changes)


def decide(view, candidate=GOOD):
    return root.decide_view(RUN_ADDRESS, view, ENTRIES, candidate)


def test_everybody_agrees():
    assert decide(four([GOOD] * 4)) == Decision(Outcome.CLOSED, 0b1111, 0)


def test_a_minority_root_is_left_out_and_its_candidate_refused():
    view = four([GOOD, GOOD, GOOD, BAD])
    assert decide(view) == Decision(Outcome.CLOSED, 0b0111, 0)
    assert decide(view, BAD).outcome is Outcome.NOT_CANONICAL


def test_half_of_the_commits_is_not_enough():
    assert decide(four([GOOD, GOOD, BAD, BAD])).outcome is Outcome.NOT_CANONICAL


def test_a_vote_copied_from_another_counts_for_nothing():
    view = four([GOOD] * 4)
    copied = view.ballots[0]
    ballots = {0: copied, 1: copied, 2: copied, 3: copied}
    view = round_view(ballots, committed=0b1111, attested=0b1111)
    assert root.votes_for(RUN_ADDRESS, view, ENTRIES, GOOD) == 0b0001


def test_half_of_the_members_silent_closes_and_more_is_void():
    assert decide(four([GOOD] * 4, attested=0b0011)).outcome is Outcome.CLOSED
    assert decide(four([GOOD] * 4, attested=0b0001)).outcome is Outcome.VOID


def test_a_withheld_payload_is_unavailable_not_included():
    ballots = {index: ballot(key(index + 1), GOOD, attest=0b0111) for index in range(4)}
    view = round_view(ballots, committed=0b1111, attested=0b1111)
    assert decide(view) == Decision(Outcome.CLOSED, 0b0111, 0b1000)


def test_a_round_forced_void_is_void_whatever_its_ballots_say():
    assert decide(four([GOOD] * 4, flags=RoundFlag.FORCED_VOID)) == Decision(Outcome.VOID)


def test_the_root_only_step_needs_no_attestation():
    view = four([GOOD] * 3, attested=0, flags=RoundFlag.ROOT_ONLY)
    assert decide(view) == Decision(Outcome.CLOSED)


def test_nobody_is_available_without_attestations():
    assert root.available([]) == 0
    assert root.decide(Turnout(0b1, 0, 0b1), 0b1, []) == Decision(Outcome.CLOSED, 0, 0b1)


def test_a_round_without_trainers_is_void():
    assert root.decide(Turnout(0, 0, 0), 0, []).outcome is Outcome.VOID


@pytest.mark.parametrize(
    ("committed", "votes", "outcome"),
    [
        (0b0000_0111, 0b0000_0111, Outcome.VOID),
        (0b0000_1111, 0b0000_0111, Outcome.NOT_CANONICAL),
        (0b0001_1111, 0b0000_0111, Outcome.NOT_CANONICAL),
        (0b0001_1111, 0b0000_1111, Outcome.CLOSED),
        (0b1111_1111, 0b0000_1111, Outcome.NOT_CANONICAL),
    ],
)
def test_half_of_the_trainers_must_vote_for_a_root(committed, votes, outcome):
    everybody = 0b1111_1111
    turnout = Turnout(everybody, everybody, committed)
    assert root.decide(turnout, votes, [everybody] * 8).outcome is outcome


@given(BITMAPS, BITMAPS, BITMAPS, BITMAPS, st.lists(BITMAPS, max_size=64))
def test_included_committed_for_the_canonical_root_and_are_vouched_for(
    trainers, members, commits, votes, attests
):
    committed = commits & trainers
    made = root.decide(Turnout(trainers, members, committed), votes, attests)
    assert made.included | made.unavailable == (
        committed & votes if made.outcome is Outcome.CLOSED else 0
    )
    assert made.included & made.unavailable == 0
    assert made.included & ~root.available(attests) == 0


@given(BITMAPS, BITMAPS, BITMAPS)
def test_two_disjoint_sets_of_voters_are_never_both_canonical(trainers, commits, votes):
    turnout = Turnout(trainers, trainers, commits & trainers)
    both = root.is_canonical(turnout, votes) and root.is_canonical(turnout, ~votes & (2**64 - 1))
    assert not both
