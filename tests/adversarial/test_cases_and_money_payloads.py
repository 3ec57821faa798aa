"""Payloads that no decoder accepts and that were included all the same."""

from dataclasses import replace

import pytest
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
from support.ports import LIAR, LIE_ROUND, encoding, vouch_for_everything
from support.program.audits import INCINERATOR
from support.runs import (
    Chronicle,
    assert_conserved,
    assert_one_root_per_round,
    events_of,
    included,
    member,
    start_members,
    until_round,
)

from troth_attestation.verdict import VerdictKind
from troth_client.compression import codec
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.view import Status


def descending(signs) -> bytes:
    """Two indices of the first tile change places."""
    indices = signs.indices.copy()
    indices[0, 0], indices[0, 1] = signs.indices[0, 1], signs.indices[0, 0]
    return codec.encode(replace(signs, indices=indices))


def padded(signs) -> bytes:
    """The same signs in other bytes: a bit of the padding is set."""
    data = codec.encode(signs)
    return data[:-1] + bytes([data[-1] | 0x80])


OTHER = pytest.mark.long(reason="other malformed bytes in a second whole run")


@pytest.mark.parametrize("malformed", [descending, pytest.param(padded, marks=OTHER)])
async def test_a_malformed_payload_that_was_included_costs_a_tenth_and_each_voucher_a_strike(
    run_factory, monkeypatch, malformed
):
    """Dan sends bytes that are no payload, or a second encoding of one, and all vouch unseen.

    It is included and adds nothing anywhere, so that all hold the same weights; but dan was paid.
    A stranger points at it. Any five jurors see the same: a tenth of dan's stake (P2), and a strike
    for everybody who vouched, dan too. Threat T13, T14.
    """

    def payload(proposal):
        encode = malformed if proposal.round == LIE_ROUND else codec.encode
        return encode(proposal.sent)

    vouch_for_everything(monkeypatch)
    run = await run_factory.create(6, **UNSAMPLED)
    run.wrap = lambda one, ports: encoding(ports, payload) if one.name == "dan" else ports
    await start_members(run, SIX)
    dan, tale = member(run, "dan"), Chronicle(run)
    await until_round(run, LIE_ROUND + 2)
    assert included(run, "ada")[LIE_ROUND] == list(range(6))
    for name in SIX:
        assert [e["index"] for e in events_of(run, name, "payload_malformed")] == [LIAR], name
    stranger, before = await accuse(run, LIE_ROUND, dan, AuditKind.PAYLOAD)
    settled = await until_event(run, tale, "CaseSettled", target=dan.index)
    assert [v.verdict for v in tale.named("JurorVoteRevealed")] == [VerdictKind.MISMATCH] * 5
    assert_fields(
        settled,
        outcome=1,
        fault=2,
        stake=STAKE // 10,
        vouchers=0b111111,
        unvested=0,
        juror_fees=5 * FEE,
        bond_returned=BOND,
    )
    closed = await released(run, tale, settled)
    bounty = STAKE // 10 * 5 // 100
    assert_fields(closed, challenger=bounty, pool=0)
    assert closed.burned == STAKE // 10 - bounty - 5 * FEE == run.balance(INCINERATOR)
    assert run.balance(stranger.pubkey()) == before - 5_000 + bounty
    for one in run.members:
        entry = (await run.view()).entries[one.index]
        assert entry.strikes == 1, one.name
        assert entry.stake == STAKE - (STAKE // 10 if one is dan else 0), one.name
    assert (await run.view()).entries[dan.index].status == Status.PENDING
    assert_one_root_per_round(run)
    await assert_conserved(run)
