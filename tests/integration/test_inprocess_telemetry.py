"""The events of one participant show the run's curve, and what it moved and earned."""

from statistics import mean

from support.runs import NO_AUDITS, events_of

from troth_client.telemetry.events import int_of


async def test_each_closed_round_has_the_mean_loss_of_its_included_payloads(run_factory):
    run = await run_factory.start(4, names="ada bob cyd", **NO_AUDITS)
    await run.finish()
    trained = {
        (event["round"], one.index): event["loss_micro"]
        for one in run.members
        for event in one.events.named("trained")
    }
    for name in ("ada", "bob", "cyd"):
        closed = events_of(run, name, "round_closed")
        assert [event["round"] for event in closed] == [0, 1, 2, 3]
        for event in closed:
            losses = [trained[event["round"], index] for index in event["included"]]
            assert event["mean_loss_micro"] == round(mean(losses))
            assert event["num_losses"] == len(event["included"]) == 3


async def test_after_each_round_a_participant_tallies_bytes_and_money(run_factory):
    run = await run_factory.start(4, names="ada bob", **NO_AUDITS)
    view = (await run.finish())[0]
    tallied = events_of(run, "ada", "tallied")
    assert [event["round"] for event in tallied] == [0, 1, 2, 3]
    assert {event["rounds"] for event in tallied} == {4}
    assert {event["members"] for event in tallied} == {2}
    entry = view.entries[run.members[0].index]
    assert tallied[-1]["stake"] == entry.stake
    earned = [int_of(event, "claimable") + int_of(event, "unvested") for event in tallied]
    assert 0 < earned[0] < earned[-1]
    moved = [int_of(event, "received_bytes") + int_of(event, "sent_bytes") for event in tallied]
    assert moved == sorted(moved)
    payload = int_of(events_of(run, "ada", "encoded")[0], "payload_bytes")
    assert moved[-1] >= 4 * payload, "each other payload came or went at least once"
