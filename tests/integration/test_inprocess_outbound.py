"""Half of a run accepts no connection at all: it pushes, fetches, and loses nothing."""

import pytest
from support.runs import WINDOWS, Chronicle, assert_conserved, included, member

from troth_attestation.quorum import AuditOutcome

REACHED = ("anna", "bob", "carl")
OUTBOUND = ("dora", "emma", "fred")
HALF = {**WINDOWS, "p_new_ppm": 500_000, "p_base_ppm": 500_000, "audit_cap": 8}


async def run_half_outbound(run_factory, rounds):
    """Play a run of three members that listen and three that do not; return it and its events."""
    run = await run_factory.create(rounds, **HALF)
    chronicle = Chronicle(run)
    for name in (*REACHED, *OUTBOUND):
        await run.add(name, listens=name in REACHED)
    for one in run.members:
        await run.start(one)
    await run.finish()
    return run, chronicle


async def assert_nobody_lost(run, chronicle, rounds):
    view = await run.view()
    stake = run.settings.chain.min_stake_lamports
    assert [entry.stake for entry in view.entries[:6]] == [stake] * 6
    assert sum(entry.seat_faults + entry.strikes for entry in view.entries) == 0
    taken = included(run, "anna")
    everybody = list(range(6))
    assert sum(taken[round_] == everybody for round_ in taken) >= 0.95 * rounds
    assert len({member(run, one.name).here.state.replica.root() for one in run.members}) == 1
    settled = {
        one.name: [e.outcome for e in chronicle.named("AuditSettled", target=one.index)]
        for one in run.members
    }
    for name in OUTBOUND:
        assert set(settled[name]) == {AuditOutcome.CLEARED}, name
        judged = run_events(run, name, "judged")
        assert judged, f"{name} judges others too"
    await assert_conserved(run)


def run_events(run, name, event):
    return member(run, name).events.named(event)


async def test_three_of_six_accept_no_connection_and_nobody_loses_anything(run_factory):
    run, chronicle = await run_half_outbound(run_factory, 12)
    await assert_nobody_lost(run, chronicle, 12)
    endpoints = [
        one.endpoint
        for one in await run.client.read_participants(
            run.at.run, [member(run, name).owner.pubkey() for name in OUTBOUND]
        )
    ]
    assert endpoints == ["", "", ""]


@pytest.mark.long(reason="sixty rounds with an audit of every second payload")
async def test_three_of_six_accept_no_connection_for_sixty_rounds(run_factory):
    run, chronicle = await run_half_outbound(run_factory, 60)
    await assert_nobody_lost(run, chronicle, 60)
