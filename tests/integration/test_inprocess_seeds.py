"""Seeds of closed rounds when slots pass without a block, or without anybody who freezes them."""

from support.runs import (
    assert_finished,
    member,
    time_stopped,
    until,
    until_round,
)
from support.turns import never

from troth_client.participant import housekeeping
from troth_client.participant.housekeeping import settle_seeds, try_send
from troth_client.steps.transitions import due_transition, pending_seeds
from troth_coordinator.chain import instructions
from troth_coordinator.rules.view import SeedStatus

NAMED = 3
GAP_SLOTS = 600


async def with_a_gap(run_factory, jump):
    """Let time jump when the seed of a round is named; return its account and the slots after."""
    run = await run_factory.start(6, names="ada bob cyd", keep_rounds=2)
    with time_stopped(run):
        await until(run, lambda view: NAMED in pending_seeds(view), is_stopped=True)
        jump(run.chain)
        after = run.chain.slot
    await run.finish()
    view = await assert_finished(run)
    (round_,) = await run.client.read_rounds(run.at.run, [NAMED])
    return round_, view.run.finished_slot - after


async def test_a_seed_older_than_the_list_is_long_is_frozen_while_slots_are_skipped(run_factory):
    round_, num_slots = await with_a_gap(run_factory, lambda chain: chain.skip(GAP_SLOTS))
    assert round_.seed_status == SeedStatus.FROZEN
    # Nobody waited for the list to move on, which takes another 512 blocks.
    assert num_slots < 200


async def test_a_seed_that_nobody_froze_in_time_is_retargeted(run_factory):
    round_, num_slots = await with_a_gap(run_factory, lambda chain: chain.advance(GAP_SLOTS))
    assert round_.seed_status == SeedStatus.FROZEN
    assert round_.seed_slot > GAP_SLOTS
    assert num_slots < 200


async def test_a_refused_seed_does_not_hold_up_the_transition(run_factory, monkeypatch):
    """Another peer freezes the seed between our look and our crank."""
    run = await run_factory.start(6, names="ada bob cyd dan eve")
    ada = member(run, "ada")
    await until_round(run, 1)
    monkeypatch.setattr(housekeeping, "is_our_turn", never)  # nobody cranks by itself

    def due(view):
        return due_transition(ada.here.chain, ada.here.state.replica.known_root, view)

    def holds(view):
        return bool(pending_seeds(view) and due(view))

    with time_stopped(run):
        await run.stop(member(run, "eve"))  # the others act before the phase ends: nobody cranks
        view = await until(run, holds, is_stopped=True)
        (frozen,) = pending_seeds(view)
        freeze = instructions.freeze_seed(run.at, ada.session.pubkey(), frozen)
        await run.client.send([freeze], [ada.session])
        ada.events.events.clear()
        await settle_seeds(ada.here.chain, view)
        assert await try_send(ada.here.chain, view, due(view))
        said = [one for one in ada.events.events if one["event"].startswith("crank")]
        refused, cranked = said
        assert refused["event"] == "crank_refused"
        assert refused["name"] == "SeedNotPending"
        assert cranked["event"] == "cranked"
        assert (await run.view()).run.phase != view.run.phase
