"""Trainers whose work is right and who play with when, and to whom, they show it."""

import pytest
from support.attacks.cheating_ports import at_the_last_second, starving
from support.attacks.cheats import (
    CHEAT,
    FIRST_LIE,
    MAL,
    assert_honest_untouched,
    play_out,
    stage,
)
from support.runs import events_of, included

from troth_client.steps import attest as attest_step
from troth_client.transport.base import BlobKind

pytestmark = pytest.mark.long(reason="whole runs in which work is right and only late")

ADA = 0
EVERYBODY = list(range(MAL + 1))


async def test_a_vote_in_the_last_second_changes_nothing(run_factory):
    """It commits in the last slot that counts, so that nobody can answer what it votes for.

    There is nothing to answer: attestations come after all commits, with a phase of their own, and
    payloads are served only then. It is included like the others, and all that it gains is that
    every round waits for the grace that follows a quorum. Threat T53.
    """
    run, books = await stage(run_factory, at_the_last_second)
    await play_out(run)
    rounds = FIRST_LIE + 1
    assert included(run, "ada") == dict.fromkeys(range(rounds), EVERYBODY)
    late = {event["round"]: event["slot"] for event in events_of(run, CHEAT, "committed")}
    soon = {event["round"]: event["slot"] for event in events_of(run, "ada", "committed")}
    chain = run.settings.chain
    waits = [late[round_] - soon[round_] for round_ in range(rounds)]
    assert chain.close_grace_slots < min(waits) and max(waits) < chain.commit_slots, waits
    assert books.losses == []
    await assert_honest_untouched(run, books)


async def test_who_serves_all_but_one_is_served_on_by_the_others(run_factory):
    """It gives its payload to as many as it takes to be included, and never to dan.

    Dan would hold other weights, or lag until he is out. But whoever fetched it serves it, so that
    dan gets the same bytes from another holder and vouches for them as well. Threat T17.
    """
    refused = []
    run, books = await stage(run_factory, starving("dan", refused))
    await play_out(run)
    assert {blob.round for blob in refused if blob.kind is BlobKind.PAYLOAD} == set(
        range(FIRST_LIE + 1)
    ), "dan was turned away in every round"
    assert included(run, "dan") == dict.fromkeys(range(FIRST_LIE + 1), EVERYBODY)
    assert not events_of(run, "dan", "lagging") and not events_of(run, "dan", "reported_missing")
    assert books.losses == []
    await assert_honest_untouched(run, books)


async def test_one_who_says_that_a_payload_is_unavailable_excludes_nobody(run_factory, monkeypatch):
    """It has ada's payload and attests without it, round after round, to keep her from her reward.

    Two thirds of the attestations include a payload: one of five that lack it decides nothing.
    Nobody can prove that it lied, so it loses nothing either. Threat T19.
    """
    honest_vouched, honest_proof = attest_step.vouched, attest_step.possession
    is_lying = False

    def possession(run_, round_, owner, payloads):
        nonlocal is_lying
        is_lying = owner == bytes(run.members[MAL].owner.pubkey())
        proof = bytearray(honest_proof(run_, round_, owner, payloads))
        proof[ADA] = 0 if is_lying else proof[ADA]
        return bytes(proof)

    def vouched(payloads):
        bits = honest_vouched(payloads)
        return bits & ~(1 << ADA) if is_lying else bits

    monkeypatch.setattr(attest_step, "possession", possession)
    monkeypatch.setattr(attest_step, "vouched", vouched)
    run, books = await stage(run_factory, lambda _one, ports: ports)
    await play_out(run)
    assert included(run, "ada") == dict.fromkeys(range(FIRST_LIE + 1), EVERYBODY)
    (account,) = await run.client.read_rounds(run.at.run, [FIRST_LIE])
    assert not account.ballots[MAL].attest_bitmap >> ADA & 1, "it did lie"
    assert (await run.view()).entries[ADA].strikes == 0
    assert books.losses == []
    await assert_honest_untouched(run, books)
