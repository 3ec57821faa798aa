"""Attacks on whole runs, with the real client of everybody else."""

from dataclasses import replace

import pytest
from support.ports import vouch_for_everything, withhold
from support.runs import (
    assert_finished,
    events_of,
    included,
    member,
    start_members,
)

from troth_client.steps import commit as commit_step
from troth_client.steps import produce
from troth_coordinator.rules.root import root_vote

pytestmark = pytest.mark.long(reason="runs that outlast the ring")

LIAR = 3


async def test_a_payload_withheld_in_the_last_round_is_struck_before_the_final_vote(
    run_factory, monkeypatch
):
    """Colluders include a payload of the last round that nobody else can get.

    No round follows in whose Commit it could be reported. If it is not reported during the
    root-only step, nobody honest knows the final weights and the run ends at an old checkpoint.
    Threat T43.
    """
    vouch_for_everything(monkeypatch)
    run = await run_factory.create(4)
    withhold(run, 3, "dan", "fay")
    await start_members(run, ["ada", "bob", "cyd", "dan", "eve", "fay"])
    await run.finish()
    view = await assert_finished(run)
    assert view.run.root_round == 4
    assert included(run, "ada")[3] == [0, 1, 2, 4, 5]


async def test_a_forged_residual_is_refused_however_long_its_maker_was_not_included(
    run_factory, monkeypatch
):
    """The liar votes for a false root until the others have forgotten its last included header.

    That costs it neither a miss nor a strike. Then it votes honestly again and declares a momentum
    of its own choice as the residual before. Its last included round is still in the same residual
    period, so every member must still know which residual that round ended with. Threat T39.
    """
    silent = range(2, 11)  # one more than the ring holds
    honest_header = produce.header_of

    def header(state, chain, plan, made):
        found = honest_header(state, chain, plan, made)
        if chain.index == LIAR and plan.round == silent.stop:
            found = replace(found, previous_included=1, residual_before=b"f" * 32)
        return found

    def vote(run_, round_, owner, state_root):
        is_liar = owner == member(run, "dan").here.chain.identity.owner_address
        is_false = is_liar and round_ in silent
        return root_vote(run_, round_, owner, b"x" * 32 if is_false else state_root)

    monkeypatch.setattr(produce, "header_of", header)
    monkeypatch.setattr(commit_step, "root_vote", vote)
    run = await run_factory.start(silent.stop + 2, names="ada bob cyd dan", ring=8)
    await run.finish()
    await assert_finished(run)
    assert [round_ for round_, held in included(run, "ada").items() if LIAR not in held] == [
        *silent,
        silent.stop,
    ]
    for name in ("ada", "bob", "cyd"):
        refused = [one for one in events_of(run, name, "header_refused") if one["index"] == LIAR]
        assert refused[-1]["field"] == "residual_before"
