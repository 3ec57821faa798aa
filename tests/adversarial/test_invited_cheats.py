"""Cheats that the rules of version 2 could invite, played by real clients on the shipped program.

Each is a cheat of the catalogue, `troth demo --cheat`; the tests say what it gains and loses.
"""

import pytest
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
    FEE,
    JUDGED,
    REWARD,
    SIX,
    STAKE,
    accuse,
    assert_only_paid,
    until_event,
)
from support.fields import assert_fields
from support.program.losses import fined_lamports
from support.runs import Chronicle, member, start_members

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.verdict import Reason, VerdictKind
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKind
from troth_simulation.cheats.catalogue import CHEATS
from troth_simulation.cheats.ports import cheating


async def wealth(run, index: int) -> int:
    """Stake and rewards of one participant, vested or not."""
    entry = (await run.view()).entries[index]
    return entry.stake + entry.unbonding + entry.claimable + sum(entry.bucket_amount)


@pytest.mark.long(reason="a variant of a cheat")
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


@pytest.mark.long(reason="a whole run")
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


def cast_as(run, **kinds: str):
    """Let members play cheats of the catalogue, by name."""

    def wrap(one, ports):
        return cheating(CHEATS[kinds[one.name]], ports) if one.name in kinds else ports

    run.wrap = wrap


@pytest.mark.long(reason="on a jury; make test has a framing witness on a committee")
async def test_a_juror_that_always_says_mismatch_judges_for_nothing_where_that_is_false(
    run_factory,
):
    """Fay convicts whoever comes before it. Its friend accuses an honest trainer, for a bond.

    Fay recomputes as it should, so that its sketch is true, and says mismatch. The four others say
    ok and are paid; fay is not. It has computed for nothing, and its friend's bond is lost. The
    accused loses nothing. Threat T20.
    """
    run = await run_factory.create(20, **JUDGED)
    cast_as(run, fay="mismatch-juror")
    tale = Chronicle(run)
    await start_members(run, SIX)
    ada, fay = member(run, "ada"), member(run, "fay")
    cleared = await until_event(run, tale, "AuditSettled", target=ada.index)
    assert cleared.outcome == AuditOutcome.CLEARED
    await accuse(run, cleared.round, ada, AuditKind.WORK)
    settled = await until_event(run, tale, "CaseSettled", target=ada.index)
    said = {one.index: one.verdict for one in tale.named("JurorVoteRevealed", target=ada.index)}
    honest = said.keys() - {fay.index}
    assert said == {fay.index: VerdictKind.MISMATCH, **dict.fromkeys(honest, VerdictKind.OK)}
    assert len(honest) == 4
    seated = tale.named("VerdictRevealed", index=fay.index)
    assert {one.verdict for one in seated} == {VerdictKind.OK}, "from a seat it tells the truth"
    assert_fields(settled, outcome=CaseOutcome.ACQUITTED, stake=0, bond_returned=0)
    assert_fields(settled, paid=bitmap.from_indices(honest), fee=FEE)
    await assert_only_paid(run, tale, [])


@pytest.mark.long(reason="the same juror in a second whole run")
async def test_it_is_paid_like_every_other_juror_where_the_accused_is_guilty(run_factory):
    """The same juror, and bob computes nothing. Its word is true by chance, and worth one fee.

    So the lie never earns more than the truth. Threat T20.
    """
    run = await run_factory.create(20, **JUDGED)
    cast_as(run, fay="mismatch-juror", bob="free-rider")
    tale = Chronicle(run)
    await start_members(run, SIX)
    bob, fay = member(run, "bob"), member(run, "fay")
    settled = await until_event(run, tale, "CaseSettled", target=bob.index)
    votes = tale.named("JurorVoteRevealed", target=bob.index)
    jurors = bitmap.from_indices([one.index for one in votes])
    assert bitmap.has(jurors, fay.index)
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, paid=jurors, fee=FEE)
    await assert_only_paid(run, tale, [bob])
