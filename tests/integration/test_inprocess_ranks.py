"""A participant of two ranks in a whole run: one payload a round, judged like any other."""

from dataclasses import replace

import pytest
from support.ports import Wrapped
from support.ranks import Reports, helping, place, team
from support.reader import free_port
from support.runs import AUDITED, assert_finished, events_of, included, start_members

from troth_client.train.learner import DEFAULT
from troth_client.train.team import Leader, meet

ROUNDS = 4
DEATH_ROUND = 2


@pytest.mark.long(reason="a whole run, in which a process of its own computes")
async def test_its_payloads_are_included_and_cleared_also_after_a_rank_was_killed(
    run_factory, tmp_path
):
    """A rank that dies costs nothing: rank 0 computes the whole payload of that round itself."""
    port, lost = free_port(1), Reports()

    def with_ranks(honest):
        leader = Leader(DEFAULT, team(meet(place(0, port))), lost, is_member=False)
        leader.prepare(honest.model, honest.config, honest.device)
        work = replace(honest, learner=leader)

        def gradient(batch):
            assert len(batch) == 2
            if len(events_of(run, "dan", "trained")) == DEATH_ROUND:
                helper.kill()
                helper.wait()
            return work.gradient(batch)

        return Wrapped(work, gradient=gradient)

    run = await run_factory.create(ROUNDS, **AUDITED)
    run.wrap = lambda one, ports: replace(ports, trains=with_ranks) if one.name == "dan" else ports
    with helping(tmp_path, place(1, port)) as helper:
        await start_members(run, ["ada", "bob", "cyd", "dan"])
        await run.finish()
    await assert_finished(run)
    assert included(run, "ada") == {round_: [0, 1, 2, 3] for round_ in range(ROUNDS)}
    assert len(lost) == 1
    judged = [event for name in ("ada", "bob", "cyd") for event in events_of(run, name, "judged")]
    of_dan = {event["round"]: event["verdict"] for event in judged if event["target"] == 3}
    assert set(of_dan.values()) == {"OK"}
    assert min(of_dan) < DEATH_ROUND <= max(of_dan), of_dan
