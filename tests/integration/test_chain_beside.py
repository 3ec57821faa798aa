"""Older rounds and audits that a look brings along, from the real program."""

from dataclasses import replace

from support.chain import World

from troth_coordinator.rules.view import Beside, BesideView


async def test_a_snapshot_brings_rounds_and_audits_along():
    running = await World().start(3)
    client, run = running.world.client, running.at.run
    wanted = Beside([0, 7], [(0, 1, 0)])
    alone = await client.snapshot(run)
    both = await client.snapshot(run, beside=wanted)
    assert alone.beside is None
    assert both == alone, "the rest is as without them"
    assert alone.round is not None
    assert both.beside == BesideView({0: alone.round, 7: None}, {(0, 1, 0): None})
    view, read = await client.read_audited(run, wanted)
    assert view == both.run
    assert read == both.beside


async def test_what_is_too_much_for_one_call_is_left_out():
    running = await World().start(3)
    client, run = running.world.client, running.at.run
    most, more = (Beside([0] * num) for num in (96, 97))
    assert (await client.snapshot(run, beside=most)).beside is not None
    assert (await client.snapshot(run, beside=more)).beside is None
    _run, read = await client.read_audited(run, replace(more, audits=[(9, 0, 0)] * 300))
    assert set(read.rounds) == {0}
    assert read.audits == {(9, 0, 0): None}
