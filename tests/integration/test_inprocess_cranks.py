"""A phase in which everybody has acted ends at once, though no act has carried the transition."""

from functools import partial

import pytest
from support.runs import AUDITED, NO_AUDITS, assert_finished, events_of, until_round
from support.turns import never

from troth_client.participant import housekeeping
from troth_client.participant.turns import is_our_turn
from troth_coordinator.rules.phase import IN_ROUND, Phase


async def alone(client, first, carried, signers, watch=None):
    """Send an act without the transition that it would carry, as two who act at once do."""
    del carried
    return await client.send(first, signers, watch)


async def test_who_sees_that_all_have_acted_ends_the_phase_out_of_turn(run_factory, monkeypatch):
    run = await run_factory.start(2, names="ada bob cyd", **NO_AUDITS)
    await until_round(run, 0, Phase.COMMIT)
    for one in run.members:
        client = one.here.chain.client
        client.send_carrying = partial(alone, client)
    monkeypatch.setattr(housekeeping, "is_our_turn", never)
    view = await until_round(run, 1)
    cranked = [event for one in run.members for event in events_of(run, one.name, "cranked")]
    assert view.run.round == 1
    assert {event["phase"] for event in cranked} >= {phase.name for phase in IN_ROUND}


STEPS = ("audit_opened", "audit_heard", "escrow_released")


@pytest.mark.long(reason="a count over a whole run with audits")
async def test_few_steps_of_audits_are_sent_twice(run_factory):
    """The next slot's sender may not have seen yet what was sent in this one."""
    run = await run_factory.start(5, names="ada bob cyd dan eve", **AUDITED)
    await run.finish()

    def count(kinds):
        return sum(len(events_of(run, one.name, kind)) for one in run.members for kind in kinds)

    num_sent = count(STEPS)
    assert num_sent > 15
    assert count([f"{step}_refused" for step in STEPS]) < num_sent / 3


async def test_one_member_that_sends_is_enough(run_factory, monkeypatch):
    def turn_of_ada(index, view, step):
        return index == 0 and is_our_turn(index, view, step)

    monkeypatch.setattr(housekeeping, "is_our_turn", turn_of_ada)
    run = await run_factory.start(4, names="ada bob cyd dan eve", **AUDITED)
    await run.finish()
    await assert_finished(run)
    openers = [one.name for one in run.members if events_of(run, one.name, "audit_opened")]
    assert openers == ["ada"]
