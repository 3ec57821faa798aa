"""Trainers that compute nothing and serve what proves nothing, so that nobody can show it.

Nobody is convicted of what cannot be shown. But who was sampled must open, and pays if it does not.
"""

import pytest
from support.attacks.cheats import (
    CHEAT,
    FIRST_LIE,
    MAL,
    assert_found,
    assert_honest_untouched,
    assert_slashed,
    assert_split_at_once,
    play_out,
    stage,
    work_cheat,
)
from support.fields import assert_fields
from support.runs import events_of, included

from troth_attestation import slashing
from troth_attestation.quorum import AuditOutcome
from troth_attestation.verdict import Reason, VerdictKind
from troth_coordinator.rules.view import Status


async def assert_pays_for_silence(run_factory, kind: str, seen_by: AuditOutcome):
    """The reward and twelve more (P5), split at once; the audit ends there."""
    run, books = await stage(run_factory, work_cheat(kind))
    await play_out(run)
    (settled,) = books.settled(FIRST_LIE)
    assert settled.outcome == seen_by
    (loss,) = books.of(MAL)
    assert_fields(loss.event, fault=5, round=FIRST_LIE)
    reward = run.settings.chain.reward_per_payload
    assert loss.undone == reward
    assert_slashed(loss, slashing.no_openings(loss.funds, 12 * reward, 0))
    assert_split_at_once(loss)
    await assert_honest_untouched(run, books)
    return run


async def test_deleting_what_an_audit_needs_costs_more_than_it_saves(run_factory):
    """It computes nothing, and deletes its residuals as soon as they are signed for.

    "My disk broke" cannot be refuted, and need not be: the sampled open, or pay. No seat is asked
    for anything, the program itself sees that no root was posted in time. Threat T18, T36.
    """
    run = await assert_pays_for_silence(run_factory, "deletes-residuals", AuditOutcome.NO_OPENINGS)
    assert events_of(run, CHEAT, "openings_lost")[0]["round"] == FIRST_LIE


@pytest.mark.long(reason="openings that prove nothing end the same, and make test has those")
async def test_a_root_without_its_openings_costs_as_much(run_factory):
    """It posts the root of its openings in time, and then serves them to nobody.

    The program cannot see that; the seats can. Three of them got nothing until late in their
    window and accuse it. The jury gets nothing either: a refusal like the missing root. Threat T36.
    """
    run = await assert_pays_for_silence(run_factory, "hides-openings", AuditOutcome.UNAVAILABLE)
    assert_found(run, FIRST_LIE, VerdictKind.UNAVAILABLE, Reason.NOT_SERVED)


WRONG = {
    "openings-of-another-round": Reason.OPENINGS_FIELD,
    "openings-of-another-run": Reason.OPENINGS_FIELD,
    "wrong-path": Reason.OPENINGS_PATH,
    "swapped-tiles": Reason.OPENINGS_PATH,
    "truncated-openings": Reason.NOT_SERVED,
    "junk-root": Reason.OPENINGS_FIELD,
}


PROVED_WRONG = "wrong-path"
OTHERS = pytest.mark.long(reason="other sets that prove nothing; make test has one")


@pytest.mark.parametrize(
    "kind",
    [PROVED_WRONG, *(pytest.param(kind, marks=OTHERS) for kind in WRONG if kind != PROVED_WRONG)],
)
async def test_openings_that_prove_nothing_are_none(run_factory, kind):
    """It opens something that is no opening, so that there is nothing to compare.

    The set is of another round or run, has a changed sibling, has the tiles of two rounds
    exchanged, is zeros, or is one byte short. Each seat names the error and counts the set as not
    served. A set that is too short is not even taken, and no receiver keeps one that opens nothing,
    although its root is on chain. Threat T44.
    """
    run = await assert_pays_for_silence(run_factory, kind, AuditOutcome.UNAVAILABLE)
    assert_found(run, FIRST_LIE, VerdictKind.UNAVAILABLE, WRONG[kind])


@pytest.mark.long(reason="a whole run until the third strike; tests/program has the jail")
async def test_who_commits_and_never_serves_is_jailed_and_keeps_its_stake(run_factory):
    """It commits to something, so that everybody waits for it, and serves nothing.

    It hopes that they all miss something meanwhile; but whoever waits goes on with its audits. It
    is not included, earns nothing, and takes a strike each round (P4); at the third it is jailed
    for an epoch. No stake is taken for what a broken line may have done. Threat T16.
    """
    run, books = await stage(run_factory, work_cheat("hides-payloads"), num_lies=3)
    await play_out(run)
    honest = list(range(MAL))
    for round_ in range(FIRST_LIE, FIRST_LIE + 3):
        assert included(run, "ada")[round_] == honest
    entry = (await run.view()).entries[MAL]
    assert_fields(entry, status=Status.JAILED, stake=run.settings.chain.min_stake_lamports)
    assert books.of(MAL) == []
    await assert_honest_untouched(run, books)


@pytest.mark.long(reason="three rounds of hidden openings")
async def test_hiding_in_many_rounds_silences_no_honest_seat(run_factory):
    """It posts root after root and serves none, so that its seats wait for many things at once.

    They speak in the last slots of a window of twelve, each about several audits at a time. It
    hopes that they come too late and pay for their silence. None does, and it pays each time.
    Threat T36.
    """
    short = {"verdict_commit_slots": 12, "verdict_reveal_slots": 10, "openings_slots": 10}
    run, books = await stage(run_factory, work_cheat("hides-openings"), num_lies=6, **short)
    await play_out(run)
    await assert_honest_untouched(run, books)
    assert {loss.event.fault for loss in books.of(MAL)} == {5}
    assert len(books.of(MAL)) >= 3
