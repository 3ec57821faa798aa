"""A phase in which everybody has acted ends at once, though no act has carried the transition."""

from functools import partial

from support.runs import NO_AUDITS, events_of, until_round
from support.turns import never

from troth_client.participant import housekeeping
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
