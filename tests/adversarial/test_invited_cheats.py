"""Cheats that the rules of version 2 could invite, played by real clients on the shipped program.

Each is a cheat of the catalogue, `troth demo --cheat`; the tests say what it gains and loses.
"""

from support.attacks.cheats import (
    FIRST_LIE,
    MAL,
    assert_convicted_of_work,
    assert_found,
    assert_honest_untouched,
    assert_split_at_once,
    play_out,
    stage,
    work_cheat,
)
from support.attacks.judges import (
    REWARD,
    STAKE,
)
from support.fields import assert_fields
from support.program.losses import fined_lamports

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.verdict import Reason, VerdictKind
from troth_coordinator.rules import bitmap


async def wealth(run, index: int) -> int:
    """Stake and rewards of one participant, vested or not."""
    entry = (await run.view()).entries[index]
    return entry.stake + entry.unbonding + entry.claimable + sum(entry.bucket_amount)


async def test_hiding_only_what_was_forged_costs_far_more_than_it_saves(run_factory):
    """It computes nothing for every third payload, and opens whatever else it is asked for.

    Its honest payloads are cleared and paid, so that it looks like a machine that fails now and
    then. Each forged one that is sampled costs the reward and twelve more, for 0.8 of a reward that
    it saved. The two here are one outage; later ones cost twice as much each time. Threat T36.
    """
    run, books = await stage(run_factory, work_cheat("hides-when-forged"), num_lies=4)
    await play_out(run)
    forged = (FIRST_LIE, FIRST_LIE + 3)
    ends = {event.round: event.outcome for event in books.named("AuditSettled", target=MAL)}
    hidden = [round_ for round_, end in ends.items() if end == AuditOutcome.NO_OPENINGS]
    assert sorted(hidden) == list(forged)
    assert [ends[round_] for round_ in ends.keys() - forged] == [AuditOutcome.CLEARED] * 5
    for round_, loss in zip(forged, books.of(MAL), strict=True):
        assert_fields(loss.event, fault=5, round=round_)
        assert loss.undone == REWARD
        assert fined_lamports(loss.event) == 12 * REWARD
        assert_split_at_once(loss)
    assert await wealth(run, MAL) == STAKE + 7 * REWARD - 2 * 13 * REWARD
    await assert_honest_untouched(run, books)


async def starved(run_factory, kind: str):
    """A run in which no seat is served the openings of one payload, and the jury is."""
    run, books = await stage(run_factory, work_cheat(kind))
    await play_out(run)
    (audit,) = books.settled(FIRST_LIE)
    assert_fields(audit, outcome=AuditOutcome.UNAVAILABLE, reward_undone=0)
    assert_found(run, FIRST_LIE, VerdictKind.UNAVAILABLE, Reason.NOT_SERVED)
    (case,) = books.named("CaseSettled", target=MAL)
    assert case.round == FIRST_LIE
    return run, books, case


async def test_openings_for_jurors_only_are_no_cheaper_refusal(run_factory):
    """It computed nothing, and hopes that starving the seats ends as a refusal, for 13 rewards.

    It serves its openings only once a jury is drawn. The jury judges the work itself: half of the
    stake and all that has not vested. Threat T45.
    """
    run, books, case = await starved(run_factory, "serves-jurors-only")
    assert case.outcome == CaseOutcome.CONVICTED
    (loss,) = books.of(MAL)
    assert_convicted_of_work(books, loss)
    assert await wealth(run, MAL) == STAKE // 2
    await assert_honest_untouched(run, books)


async def test_starving_the_seats_gains_nothing_and_costs_them_their_fee(run_factory):
    """Its work is right. It serves its openings to the jury only, so that the seats earn nothing.

    The jury clears it, and it has what honest work has, not a lamport more. The seats that said
    `unavailable` are not paid, and no stake moves. Threat T45.
    """
    run, books, case = await starved(run_factory, "starves-seats")
    assert_fields(case, outcome=CaseOutcome.ACQUITTED, seats_paid=0, reward_undone=0)
    jurors = books.named("JurorVoteRevealed", target=MAL)
    assert [vote.verdict for vote in jurors] == [VerdictKind.OK] * len(jurors)
    assert case.paid == bitmap.from_indices([vote.index for vote in jurors])
    assert books.losses == []
    assert await wealth(run, MAL) == STAKE + (FIRST_LIE + 1) * REWARD
    await assert_honest_untouched(run, books)
