"""Cases before honest clients: a jury that replays, recomputes and looks at bytes."""

import pytest
from solders.keypair import Keypair
from support.attacks.judges import (
    BOND,
    FEE,
    JUDGED,
    SIX,
    STAKE,
    UNSAMPLED,
    accuse,
    assert_only_paid,
    entry_of,
    released,
    until_event,
)
from support.fields import assert_fields
from support.runs import Chronicle, included, member, start_members, until_round

from troth_attestation.verdict import VerdictKind
from troth_client.steps import attest as attest_step
from troth_client.steps import commit as commit_step
from troth_coordinator.chain.case_instructions import NO_SUBJECT, Claim, open_case
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import Status

pytestmark = pytest.mark.long(reason="cases with clients; test_cases_and_money.py has the rules")

LIE_ROUND = 1
EXACT = (AuditKind.PAYLOAD, AuditKind.ROOT, AuditKind.POSSESSION)


@pytest.mark.parametrize("kind", EXACT)
async def test_a_griefer_loses_its_bond_to_whom_it_accused(run_factory, kind):
    """A stranger accuses ada of what she did not do, so that her money waits and others work.

    Five jurors look, find nothing, and acquit. Their fees come out of the bond; half of what is
    left goes to ada, the other half burns (P9). Her stake never moved. Threat T24.
    """
    run = await run_factory.create(6, **JUDGED)
    await start_members(run, SIX)
    ada, tale = member(run, "ada"), Chronicle(run)
    await until_round(run, 3)
    subject = 1 if kind == AuditKind.POSSESSION else None
    stranger, before = await accuse(run, 1, ada, kind, subject)
    assert (await entry_of(run, ada)).frozen == 1, "nothing is paid out meanwhile"
    settled = await until_event(run, tale, "CaseSettled", target=ada.index, audit_kind=int(kind))
    jurors = tale.named("JurorVoteRevealed", audit_kind=int(kind))
    assert [vote.verdict for vote in jurors] == [VerdictKind.OK] * 5
    rest = BOND - 5 * FEE
    assert_fields(
        settled,
        outcome=2,
        stake=0,
        bond_spent=5 * FEE,
        bond_acquitted=rest // 2,
        bond_burned=rest // 2,
    )
    entry = await entry_of(run, ada)
    assert_fields(entry, claimable=rest // 2, frozen=0)
    closed = await released(run, tale, settled)
    assert_fields(closed, returned=0, challenger=0)
    fees = 5_000
    assert run.balance(stranger.pubkey()) == before - BOND - fees, "only its rent came back"
    await assert_only_paid(run, tale, [])


@pytest.mark.parametrize("is_copied", [False, True])
async def test_a_false_root_costs_a_quarter_once_somebody_points_at_it(
    run_factory, monkeypatch, is_copied
):
    """Dan votes for a root that he did not compute: for an invented one, or with ada's very vote.

    A vote hides the root and names its owner, so a copy is as false as an invention. He is in the
    minority and earns nothing. Anybody may hold his vote against the replay: each juror has the
    weights of that round on its disk. A quarter of his stake is taken, of which the challenger gets
    5 % (P8). Threat T51, T52.
    """

    def vote(run_, round_, owner, state_root):
        is_liar = owner == dan.here.chain.identity.owner_address and round_ == LIE_ROUND
        if is_liar and is_copied:
            return root_vote(run_, round_, ada.here.chain.identity.owner_address, state_root)
        return root_vote(run_, round_, owner, b"x" * 32 if is_liar else state_root)

    monkeypatch.setattr(commit_step, "root_vote", vote)
    run = await run_factory.create(6, **JUDGED)
    await start_members(run, SIX)
    ada, dan, tale = member(run, "ada"), member(run, "dan"), Chronicle(run)
    await until_round(run, LIE_ROUND + 2)
    assert dan.index not in included(run, "ada")[LIE_ROUND]
    stranger, before = await accuse(run, LIE_ROUND, dan, AuditKind.ROOT)
    settled = await until_event(run, tale, "CaseSettled", audit_kind=int(AuditKind.ROOT))
    votes = tale.named("JurorVoteRevealed", audit_kind=int(AuditKind.ROOT))
    assert [one.verdict for one in votes] == [VerdictKind.MISMATCH] * 5
    await assert_convicted(run, tale, settled, (8, 25))
    bounty = STAKE // 4 * 5 // 100
    assert run.balance(stranger.pubkey()) == before - 5_000 + bounty
    await assert_only_paid(run, tale, [dan])


@pytest.mark.parametrize("is_copied", [False, True])
async def test_blind_vouching_costs_two_percent_and_a_strike(run_factory, monkeypatch, is_copied):
    """Dan attests with all ones and invents the bytes that should prove that he holds them.

    The proof is a hash over payload and owner: whoever holds the payload sees that it is wrong, and
    ada's bytes, which dan copies in the second story, prove nothing for dan. A challenger names
    one payload; the jurors compare one byte (P10). Threat T41, T42.
    """
    honest = attest_step.possession

    def possession(run_, round_, owner, payloads):
        if owner != dan.here.chain.identity.owner_address or round_ != LIE_ROUND:
            return honest(run_, round_, owner, payloads)
        if is_copied:
            return honest(run_, round_, ada.here.chain.identity.owner_address, payloads)
        proof = honest(run_, round_, owner, payloads)
        return bytes(255 - byte if i in payloads else 0 for i, byte in enumerate(proof))

    monkeypatch.setattr(attest_step, "possession", possession)
    run = await run_factory.create(6, **JUDGED)
    await start_members(run, SIX)
    ada, dan, tale = member(run, "ada"), member(run, "dan"), Chronicle(run)
    await until_round(run, LIE_ROUND + 2)
    await accuse(run, LIE_ROUND, dan, AuditKind.POSSESSION, 1)
    settled = await until_event(run, tale, "CaseSettled", audit_kind=int(AuditKind.POSSESSION))
    await assert_convicted(run, tale, settled, (10, 2))
    assert (await entry_of(run, dan)).strikes == 1
    await assert_only_paid(run, tale, [dan])


async def test_cleared_work_stands_before_a_jury_too(run_factory):
    """A stranger contests work that three seats have cleared, in the hope of 5 % of half a stake.

    Five jurors recompute it in reference mode, on one thread, from the openings that the target
    still serves, and acquit: the bond pays them, the target and the fire (P9). Threat T24.
    """
    run = await run_factory.create(12, **JUDGED)
    await start_members(run, SIX)
    tale = Chronicle(run)
    cleared = await until_event(run, tale, "AuditSettled", outcome=1)
    target = run.members[cleared.target]
    await accuse(run, cleared.round, target, AuditKind.WORK)
    about = {"round": cleared.round, "target": cleared.target}
    settled = await until_event(run, tale, "CaseSettled", **about)
    votes = tale.named("JurorVoteRevealed", **about)
    assert [one.verdict for one in votes] == [VerdictKind.OK] * 5
    rest = BOND - 5 * FEE
    assert_fields(
        settled,
        outcome=2,
        stake=0,
        reward_undone=0,
        bond_acquitted=rest // 2,
        bond_burned=rest // 2,
    )
    assert (await entry_of(run, target)).claimable == rest // 2
    await assert_only_paid(run, tale, [])


async def test_a_flood_of_cases_stops_no_round_and_finds_no_juror_silent(run_factory):
    """A griefer accuses five members of four things each, in one slot, to drown the jurors in work.

    It hopes that the run stands still, or that some juror misses its window and pays. Rounds go on,
    every vote of every committee comes in time, everybody is acquitted, and the bonds pay for it.
    Threat T24.
    """
    run = await run_factory.create(8, **UNSAMPLED)
    await start_members(run, SIX)
    tale = Chronicle(run)
    await until_round(run, 3)
    griefer = Keypair.from_seed(b"griefer".ljust(32, b"."))
    run.chain.airdrop(griefer.pubkey(), 10**9)
    claims = [
        Claim(
            round_, target, kind, (target + 1) % 6 if kind is AuditKind.POSSESSION else NO_SUBJECT
        )
        for target in range(5)
        for round_, kind in ((1, EXACT[0]), (1, EXACT[1]), (1, EXACT[2]), (2, EXACT[1]))
    ]
    cases = [open_case(run.at, griefer.pubkey(), claim) for claim in claims]
    for first in range(0, len(cases), 2):
        await run.client.send(cases[first : first + 2], [griefer])
    await until_round(run, 7)
    for claim in claims:
        about = {"round": claim.round, "target": claim.target, "audit_kind": int(claim.kind)}
        settled = await until_event(run, tale, "CaseSettled", **about)
        assert settled.outcome == 2, claim
        assert settled.paid.bit_count() == 5, claim
    assert all(included(run, "ada")[round_] == list(range(6)) for round_ in range(6))
    assert not tale.named("Penalised")
    rest = BOND - 5 * FEE
    for index in range(5):
        assert (await run.view()).entries[index].claimable >= 4 * rest // 2
    await assert_only_paid(run, tale, [])


async def assert_convicted(run, tale, settled, penalty) -> None:
    """A conviction takes so many percent of the stake and splits them with a burn."""
    fault, percent = penalty
    taken = STAKE * percent // 100
    assert_fields(settled, outcome=1, fault=fault, stake=taken, unbonding=0, unvested=0)
    closed = await released(run, tale, settled)
    bounty = taken * 5 // 100
    assert settled.juror_fees > 0
    assert_fields(closed, challenger=bounty, burned=taken - bounty - settled.juror_fees)
    entry = (await run.view()).entries[settled.target]
    assert_fields(entry, "enough is left to stay", stake=STAKE - taken, status=Status.PENDING)
