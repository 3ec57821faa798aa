"""Payloads that no decoder accepts and that were included all the same."""

from dataclasses import replace

import pytest
from integration.inprocess_support import (
    Chronicle,
    assert_conserved,
    assert_one_root_per_round,
    enter,
    events_of,
    included,
    member,
    until_round,
)
from integration.test_inprocess_faults import LIAR, LIE_ROUND, vouch_for_everything
from support.attacks.judges import (
    BOND,
    FEE,
    SIX,
    STAKE,
    UNSAMPLED,
    accuse,
    released,
    until_event,
)
from support.fields import assert_fields
from support.program.audits import INCINERATOR

from troth_attestation.verdict import VerdictKind
from troth_client.compression import codec
from troth_client.steps import produce
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.view import Status


def descending(votes) -> bytes:
    """Two indices of the first tile change places."""
    indices = votes.indices.clone()
    indices[0, 0], indices[0, 1] = votes.indices[0, 1], votes.indices[0, 0]
    return codec.encode(replace(votes, indices=indices))


def padded(votes) -> bytes:
    """The same votes in other bytes: a bit of the padding is set."""
    data = codec.encode(votes)
    return data[:-1] + bytes([data[-1] | 0x80])


@pytest.mark.parametrize("malformed", [descending, padded])
async def test_a_malformed_payload_that_was_included_costs_a_tenth_and_each_voucher_a_strike(
    theatre, monkeypatch, malformed
):
    """Dan sends bytes that are no payload, or a second encoding of one, and all vouch unseen.

    It is included and adds nothing anywhere, so that all hold the same weights; but dan was paid.
    A stranger points at it. Any five jurors see the same: a tenth of dan's stake (P2), and a strike
    for everybody who vouched, dan too. Threat T13, T14.
    """

    def payload(peer, proposal):
        is_lie = peer.index == LIAR and proposal.round == LIE_ROUND
        return malformed(proposal.sent) if is_lie else codec.encode(proposal.sent)

    monkeypatch.setattr(produce, "_payload", payload)
    vouch_for_everything(monkeypatch)
    run = await theatre.create(6, **UNSAMPLED)
    await enter(run, SIX)
    dan, tale = member(run, "dan"), Chronicle(run)
    await until_round(run, LIE_ROUND + 2)
    assert included(run, "ada")[LIE_ROUND] == list(range(6))
    for name in SIX:
        assert [e["index"] for e in events_of(run, name, "payload_malformed")] == [LIAR], name
    stranger, before = await accuse(run, LIE_ROUND, dan, AuditKind.PAYLOAD)
    settled = await until_event(run, tale, "CaseSettled", target=dan.index)
    assert [v.verdict for v in tale.named("VoteRevealed")] == [VerdictKind.MISMATCH] * 5
    assert_fields(
        settled,
        outcome=1,
        fault=2,
        stake=STAKE // 10,
        vouchers=0b111111,
        unvested=0,
        bond_spent=5 * FEE,
        bond_returned=BOND - 5 * FEE,
    )
    closed = await released(run, tale, settled)
    bounty = STAKE // 10 * 5 // 100
    assert_fields(closed, challenger=bounty, treasury=9 * bounty)
    assert closed.burned == STAKE // 10 - 10 * bounty == run.balance(INCINERATOR)
    assert run.balance(stranger.pubkey()) == before - 5_000 - 5 * FEE + bounty
    for one in run.members:
        entry = (await run.view()).entries[one.index]
        assert entry.strikes == 1, one.name
        assert entry.stake == STAKE - (STAKE // 10 if one is dan else 0), one.name
    assert (await run.view()).entries[dan.index].status == Status.INACTIVE
    assert_one_root_per_round(run)
    await assert_conserved(run)
