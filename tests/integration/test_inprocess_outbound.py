"""Half of a run accepts no connection at all: it pushes, fetches, and loses nothing."""

import sys
from collections import Counter
from dataclasses import replace

import pytest
from support.runs import WINDOWS, Chronicle, assert_conserved, included, member, until_round
from support.stores import BUCKET, FIXTURES, aim_at

from troth_attestation.quorum import AuditOutcome
from troth_simulation.hub import SimulatedHub

(s3,) = FIXTURES
REACHED = ("anna", "bob", "carl")
OUTBOUND = ("dora", "emma", "fred")
HUB = "hub"
HALF = {**WINDOWS, "p_new_ppm": 500_000, "p_base_ppm": 500_000, "audit_cap": 8}


async def run_outbound(run_factory, rounds, listening=REACHED):
    """Play a run of six without a hub, of whom some listen; return it and its events."""
    run = await run_factory.create(rounds, **HALF)
    chronicle = Chronicle(run)
    for name in (*REACHED, *OUTBOUND):
        await run.add(name, listens=name in listening)
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
    outbound = {member(run, name).index for name in OUTBOUND}
    settled = [event for event in chronicle.named("AuditSettled") if event.target in outbound]
    assert {event.outcome for event in settled} == {AuditOutcome.CLEARED}
    for name in OUTBOUND:
        assert run_events(run, name, "judged"), f"{name} judges others too"
    await assert_conserved(run)


def run_events(run, name, event):
    return member(run, name).events.named(event)


@pytest.mark.long(reason="a second whole run of six; the one with a hub stays")
async def test_three_of_six_accept_no_connection_and_nobody_loses_anything(run_factory):
    run, chronicle = await run_outbound(run_factory, 12)
    await assert_nobody_lost(run, chronicle, 12)
    endpoints = [
        one.endpoint
        for one in await run.client.read_participants(
            run.at.run, [member(run, name).owner.pubkey() for name in OUTBOUND]
        )
    ]
    assert endpoints == ["", "", ""]


async def start_with(run_factory, rounds, listening, **relays):
    """A run whose members know these hubs or stores; only `listening` is reached otherwise."""
    run = await run_factory.create(rounds, **HALF)
    run.wrap = lambda _member, ports: replace(ports, **relays)
    chronicle = Chronicle(run)
    for name in (*REACHED, *OUTBOUND):
        await run.add(name, listens=name in listening)
    return run, chronicle


async def start_with_hub(run_factory, tmp_path, rounds, listening):
    run, chronicle = await start_with(run_factory, rounds, listening, hubs=(HUB,))
    hub = SimulatedHub(run, HUB, tmp_path / "hub")
    hub.start()
    for one in run.members:
        await run.start(one)
    return run, chronicle, hub


@pytest.mark.long(reason="a whole run over a hub")
async def test_nobody_accepts_a_connection_and_a_hub_is_enough(run_factory, tmp_path):
    run, chronicle, hub = await start_with_hub(run_factory, tmp_path, 8, listening=())
    await run.finish()
    await hub.stop()
    await assert_nobody_lost(run, chronicle, 8)


async def play_over_store(run_factory, store):
    run, chronicle = await start_with(run_factory, 8, listening=(), stores=(store,))
    for one in run.members:
        await run.start(one)
    await run.finish()
    await assert_nobody_lost(run, chronicle, 8)


@pytest.mark.long(reason="a third whole run of six; the one with a hub stays")
async def test_nobody_accepts_a_connection_and_a_store_is_enough(run_factory, tmp_path):
    await play_over_store(run_factory, f"file://{tmp_path}/store")
    kinds = {path.name for path in (tmp_path / "store").iterdir()}
    assert kinds >= {"header", "payload", "openings"}


@pytest.mark.long(reason="the same with an S3 server that is another program")
async def test_nobody_accepts_a_connection_and_a_bucket_is_enough(run_factory, s3, monkeypatch):
    aim_at(monkeypatch, s3)
    await play_over_store(run_factory, f"{BUCKET}/run")


@pytest.mark.long(reason="a second whole run with a hub")
async def test_a_hub_that_dies_and_comes_back_costs_nobody_anything(run_factory, tmp_path):
    """Killed in round 3, back in round 6, with what lay in its folder."""
    run, chronicle, hub = await start_with_hub(run_factory, tmp_path, 10, listening=REACHED)
    await until_round(run, 3)
    kept = hub.cache
    await hub.stop()
    await until_round(run, 6)
    hub.start()
    assert hub.cache is not kept
    await run.finish()
    await hub.stop()
    await assert_nobody_lost(run, chronicle, 10)


@pytest.mark.long(reason="a third whole run with a hub")
@pytest.mark.parametrize("lie", [lambda data: bytes(len(data)), lambda data: data[:-1]])
async def test_a_hub_that_lies_is_asked_last_and_changes_nothing(run_factory, tmp_path, lie):
    run, chronicle, hub = await start_with_hub(run_factory, tmp_path, 6, listening=REACHED)
    honest = hub.cache.served

    def served(address):
        data = honest(address)
        return None if data is None else lie(data)

    hub.cache.served = served
    await run.finish()
    await hub.stop()
    await assert_nobody_lost(run, chronicle, 6)
    scores = [one.here.submissions.transport.scores for one in run.members]
    assert all(one.faults(HUB) > max(map(one.faults, REACHED)) for one in scores)


def print_figures(run, chronicle, rounds):
    """Write a row for docs/results.md; pytest shows it with -s."""
    outcomes = Counter(AuditOutcome(one.outcome).name for one in chronicle.named("AuditSettled"))
    missed = sum(6 - len(taken) for taken in included(run, "anna").values())
    fined = sum(one.stake + one.claimable for one in chronicle.named("Penalised"))
    row = f"{rounds} rounds, audits {dict(outcomes)}, {fined} lamports fined, {missed} missed"
    sys.stdout.write(f"\n{row}\n")


@pytest.mark.nightly(reason="sixty rounds of six, three times, half of all payloads audited")
@pytest.mark.parametrize(
    ("has_hub", "listening"), [(True, REACHED), (False, REACHED[:2]), (True, ())]
)
async def test_nobody_loses_stake_in_sixty_rounds(run_factory, tmp_path, has_hub, listening):
    """Three of six with a hub, two of six without one, and none of six with a hub."""
    if has_hub:
        run, chronicle, hub = await start_with_hub(run_factory, tmp_path, 60, listening)
        await run.finish()
        await hub.stop()
    else:
        run, chronicle = await run_outbound(run_factory, 60, listening)
    print_figures(run, chronicle, 60)
    assert chronicle.named("Penalised") == []
    await assert_nobody_lost(run, chronicle, 60)
