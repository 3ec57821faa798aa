"""Seats that clear a partner, and a partner that nobody clears, among clients who recompute."""

from dataclasses import replace

import pytest
from solders.keypair import Keypair
from support.attacks.judges import (
    FEE,
    RECOMPUTE,
    STAKE,
    UNSAMPLED,
    accuse,
    assert_only_paid,
    entry_of,
    released,
    saying,
    until_event,
)
from support.fields import assert_fields
from support.ports import refused_by, withheld_by
from support.program.losses import fined_lamports
from support.runs import Chronicle, member, start_members, until_round

from troth_attestation.verdict import VerdictKind
from troth_client.transport.base import BlobKind
from troth_coordinator.chain.audit_instructions import request_audit
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.phase import Phase
from troth_simulation.cheats.catalogue import CHEATS
from troth_simulation.cheats.ports import cheating

NINE = ("ada", "bob", "cyd", "dan", "eve", "fay", "gil", "hal", "mal")
ELEVEN = ("ada", "bob", "cyd", "dan", "eve", "fay", "gil", "hal", "ian", "joy", "mal")
FIRST_LIE = 3


@pytest.mark.long(reason="a whole run of eleven, five of whom are partners")
async def test_seats_that_clear_a_partner_are_convicted_with_it(run_factory):
    """Mal computes nothing after three honest rounds. All seats of its audit are its friends.

    All three recompute, see an error of 1, and say ok: cleared, and paid. A stranger who recomputed
    too had paid for the audit, and now posts a bond. Five others, drawn afterwards, recompute in
    reference mode and convict. Mal loses half of its stake and all that has not vested (P3), each
    friend ten recomputations (P7); the stranger has its bond but the fees, and 5 %.
    Threat T22, T01.
    """
    run = await run_factory.create(10, **UNSAMPLED)
    tale = Chronicle(run)

    def befriended(evidence, _honest):
        is_over = bool(tale.named("CaseOpened"))
        return VerdictKind.OK if evidence.header.index == mal.index and not is_over else None

    def wrap(one, ports):
        if one.name == "mal":
            return cheating(CHEATS["free-rider"], ports)
        return replace(ports, judges=saying(befriended))

    run.wrap = wrap
    await start_members(run, NINE)
    mal = member(run, "mal")
    await buy_audit(run, mal)
    cleared = await until_event(run, tale, "AuditSettled", target=mal.index)
    assert_fields(cleared, round=FIRST_LIE, outcome=1, fee=FEE)
    friends = [one for one in run.members if cleared.paid >> one.index & 1]
    assert len(friends) == 3 and mal not in friends

    stranger, before = await accuse(run, FIRST_LIE, mal, AuditKind.WORK)
    unvested = sum((await entry_of(run, mal)).bucket_amount)
    settled = await until_event(run, tale, "CaseSettled", target=mal.index)
    jurors = tale.named("JurorVoteRevealed", target=mal.index)
    assert [vote.verdict for vote in jurors] == [VerdictKind.MISMATCH] * 5
    assert not {vote.index for vote in jurors} & {one.index for one in friends}
    assert_fields(settled, outcome=1, fault=3, stake=STAKE // 2)
    assert settled.unvested >= unvested > 0
    paid = [(event.index, event.fault, fined_lamports(event)) for event in tale.named("Penalised")]
    assert sorted(paid) == sorted((one.index, 7, 10 * RECOMPUTE) for one in friends)
    closed = await released(run, tale, settled)
    taken = settled.stake + settled.unvested
    burned = taken - taken * 5 // 100 - settled.juror_fees
    assert_fields(closed, challenger=taken * 5 // 100, burned=burned)
    assert run.balance(stranger.pubkey()) == before - 5_000 + closed.challenger
    assert_fields(await entry_of(run, mal), stake=STAKE // 2, work_faults=1)
    await assert_only_paid(run, tale, [mal, *friends])


@pytest.mark.long(reason="a second whole run with partners")
async def test_who_goes_dark_once_it_is_accused_is_convicted_from_the_seats_copies(run_factory):
    """Mal computes nothing, opens what three seats ask for, and is accused. From then on it serves
    its openings to nobody, so that the jury has nothing to judge by.

    The seats have them, checked against the root on chain, and serve them to whoever is drawn: five
    who never saw them before convict. Half of the stake and all that has not vested (P3), of which
    the challenger's part burns too: nobody posted a bond. Threat T36, T01.
    """
    run = await run_factory.create(10, **UNSAMPLED)
    tale, given = Chronicle(run), set()

    def is_dark(blob):
        return blob.kind is BlobKind.OPENINGS and tale.named("AuditSettled", outcome=3)

    def keeps_to_itself(holder, blob):
        if blob.kind is BlobKind.OPENINGS and not is_dark(blob):
            given.add(holder)
        return is_dark(blob)

    def wrap(one, ports):
        if one.name == "mal":
            return cheating(CHEATS["free-rider"], withheld_by(ports, keeps_to_itself))
        return refused_by(ports, lambda holder, blob: holder == "mal" and is_dark(blob))

    run.wrap = wrap
    await start_members(run, ELEVEN)
    mal = member(run, "mal")
    await buy_audit(run, mal)
    settled = await until_event(run, tale, "CaseSettled", target=mal.index)
    jurors = {vote.index for vote in tale.named("JurorVoteRevealed", target=mal.index)}
    seats = {said.index for said in tale.named("VerdictRevealed", target=mal.index)}
    assert len(seats) == 5
    assert len(jurors) == 5
    assert jurors & seats == set()
    assert given, "the seats had it from mal"
    assert {run.members[index].name for index in jurors} - given, "some had it from seats alone"
    assert_fields(settled, outcome=1, fault=3, stake=STAKE // 2)
    closed = await released(run, tale, settled)
    taken = settled.stake + settled.unvested
    assert closed.challenger == 0
    assert_fields(closed, challenger=0, burned=taken - settled.juror_fees)
    assert not tale.named("Penalised")
    await assert_only_paid(run, tale, [mal])


async def buy_audit(run, target) -> None:
    """A stranger pays in advance for an audit of the first round that is not honest."""
    await until_round(run, FIRST_LIE, Phase.ATTEST)
    buyer = Keypair.from_seed(b"buyer".ljust(32, b"."))
    run.chain.airdrop(buyer.pubkey(), 10**9)
    asked = request_audit(run.at, buyer.pubkey(), FIRST_LIE, target.index)
    await run.client.send([asked], [buyer])
