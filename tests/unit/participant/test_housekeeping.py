"""Housekeeping: one send for each purpose, none of which holds up another; lost races; tidying."""

import asyncio
import gc
from collections import Counter
from dataclasses import replace

import pytest
from support.audit_driver import AUDIT, INDEX, AuditDriver, closed_round, complaints, settle
from support.audit_node import FROZEN_AT, ROUND, view_at
from support.audit_views import audit_view
from support.turns import always, never
from support.views import PARAMS, RUN_ADDRESS, round_view

from troth_attestation.verdict import Statement, VerdictKind
from troth_client.participant import housekeeping
from troth_client.participant.audits import run_audits
from troth_client.participant.housekeeping import keep_house, tidy
from troth_client.participant.staying import is_needed
from troth_client.participant.turns import is_our_turn
from troth_client.runtime.base import end
from troth_client.state.audit_tracker import RELIST_SLOTS
from troth_client.state.unneeded import NUM_VIEWS
from troth_client.state.verdict_store import Duty
from troth_coordinator.chain.errors import (
    MissingSignerError,
    ProgramRefusedError,
    RpcTimeoutError,
    TransactionRejectedError,
)
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.seeds import SLOT_HASHES_LISTED

LATE = 2_000
"""A slot at which the Commit phase of the views is over: a tick is due."""
AWAY = RpcTimeoutError("http://node", "nothing")
TOO_LATE = ProgramRefusedError(
    "WrongPhase",
    6_001,
    "wrong phase",
    "Look again.",
    TransactionFailure("InstructionError", 0, "Custom", 6_001),
)
SEEDS = 1 << ROUND


@pytest.fixture
async def driver(tmp_path, monkeypatch):
    monkeypatch.setattr(housekeeping, "is_our_turn", always)
    one = AuditDriver(tmp_path)
    one.node.rounds = {}
    yield one
    await one.close()


async def begin(driver):
    """Start housekeeping; it acts on looks from now on."""
    task = driver.start(keep_house(driver.member))
    await settle()
    return task


async def see(driver, view, *audits):
    """Show a look at the chain, and the audits as read after it; let everybody act on both."""
    if audits:
        driver.node.audits = list(audits)
    driver.node.view = view
    await driver.chain.watch.look()
    await driver.tracker.refresh(view)
    await settle()


def due(target=INDEX, **changes):
    """An audit that anyone may end: its escrow is due for release."""
    return audit_view(AuditStage.SETTLED, target=target, **changes)


async def test_what_is_due_is_sent_once_while_it_is_under_way(driver):
    driver.node.hangs = asyncio.Event()
    await begin(driver)
    for slot in range(LATE, LATE + 4):
        await see(driver, view_at(slot, phase=Phase.COMMIT), due())
    assert len(driver.node.sent) == 2, "a tick and a release"
    driver.node.hangs.set()
    await settle()
    assert len(driver.named("cranked")) == 1
    assert len(driver.named("escrow_released")) == 1


async def test_a_send_that_hangs_holds_up_no_other(driver):
    driver.node.hangs = asyncio.Event()
    await begin(driver)
    await see(driver, view_at(LATE, phase=Phase.COMMIT))
    assert len(driver.node.sent) == 1
    driver.node.hangs = None
    await see(driver, view_at(LATE + 1, sequence=2), due(2), due(3))
    assert len(driver.named("escrow_released")) == 2
    assert driver.named("cranked") == []


async def test_what_was_done_and_is_due_again_is_sent_again(driver):
    """A fork took it back, or the round after asks for the same."""
    await begin(driver)
    for slot in (LATE, LATE + 1):
        await see(driver, view_at(slot, phase=Phase.COMMIT))
    assert len(driver.named("cranked")) == 2


async def test_a_lost_race_is_an_event_and_no_error(driver):
    driver.node.failure = TOO_LATE
    running = await begin(driver)
    await see(driver, view_at(LATE, phase=Phase.COMMIT), due())
    (refused,) = driver.named("crank_refused")
    assert refused["name"] == "WrongPhase"
    (released,) = driver.named("escrow_released_refused")
    assert released["name"] == "WrongPhase"
    await see(driver, view_at(LATE + 1, phase=Phase.COMMIT))
    assert not running.done()
    assert len(driver.named("crank_refused")) == 2
    assert len(driver.named("escrow_released_refused")) == 1, "an audit's step has patience"


async def test_a_transition_whose_units_run_out_is_tried_again(driver):
    """Else the first state that costs too much would end one participant after the other."""
    out_of_units = TransactionFailure("InstructionError", 0, "ProgramFailedToComplete")
    driver.node.failure = TransactionRejectedError(out_of_units)
    running = await begin(driver)
    for slot in (LATE, LATE + 1):
        await see(driver, view_at(slot, phase=Phase.COMMIT))
    assert not running.done()
    names = [one["name"] for one in driver.named("crank_refused")]
    assert names == ["TransactionRejectedError"] * 2


async def test_a_node_that_is_away_is_reported_and_the_send_repeated(driver):
    driver.node.failure = AWAY
    running = await begin(driver)
    await see(driver, view_at(LATE, phase=Phase.COMMIT))
    driver.node.failure = None
    await see(driver, view_at(LATE + 1, phase=Phase.COMMIT))
    assert driver.named("chain_unreachable")
    assert len(driver.named("cranked")) == 1
    assert not running.done()


async def test_an_error_that_is_none_of_the_nodes_ends_housekeeping(driver):
    """A bug cannot be endured: the participant ends and says so."""
    driver.node.failure = MissingSignerError(["session"])
    running = await begin(driver)
    await see(driver, view_at(LATE, phase=Phase.COMMIT))
    assert running.done(), "at once, not at the next look"
    with pytest.raises(MissingSignerError):
        await running


async def test_what_is_not_our_turn_is_left_to_others(driver, monkeypatch):
    monkeypatch.setattr(housekeeping, "is_our_turn", never)
    await begin(driver)
    await see(driver, view_at(LATE, phase=Phase.COMMIT), due())
    assert driver.node.sent == []


async def test_an_audit_that_nobody_has_opened_is_opened(driver):
    driver.node.rounds = {ROUND: closed_round()}
    await begin(driver)
    await see(driver, view_at())
    assert len(driver.named("audit_opened")) == 1


async def test_an_opened_audit_that_landed_is_not_opened_again_at_an_older_look(driver):
    driver.node.rounds = {ROUND: closed_round()}
    await begin(driver)
    driver.node.view = view_at(FROZEN_AT + 3)
    for slot in (FROZEN_AT + 1, FROZEN_AT + 2):
        await driver.tracker.refresh(view_at(slot))
        await settle()
    assert len(driver.node.sent) == 1
    await driver.tracker.refresh(view_at(FROZEN_AT + 4))
    await settle()
    assert len(driver.node.sent) == 2, "a later look without it: a fork took it back"


async def test_only_the_first_look_in_a_slot_counts(driver):
    """A later one need not show yet what the first has led to."""
    await begin(driver)
    for _ in range(3):
        await see(driver, view_at(LATE, phase=Phase.COMMIT), due())
    assert len(driver.named("cranked")) == 1
    assert len(driver.named("escrow_released")) == 1
    await see(driver, view_at(LATE + 1, phase=Phase.COMMIT))
    assert len(driver.named("cranked")) == 2


async def test_members_take_turns_with_each_step(driver, monkeypatch):
    monkeypatch.setattr(housekeeping, "is_our_turn", is_our_turn)
    await begin(driver)
    turns = Counter()
    for slot in range(LATE, LATE + 40):
        view = view_at(slot, phase=Phase.COMMIT)
        moment = view.run.round, view.run.phase
        turns["cranked"] += is_our_turn(driver.chain.index, view, moment)
        turns["escrow_released"] += is_our_turn(driver.chain.index, view, due().key)
        await see(driver, view, due())
    assert {name: len(driver.named(name)) for name in turns} == turns
    assert 0 < turns["cranked"] < 20


async def test_a_look_at_a_slot_that_a_node_made_up_ends_no_housekeeping(driver):
    await begin(driver)
    await see(driver, view_at(10**18, phase=Phase.COMMIT))
    await see(driver, view_at(LATE, phase=Phase.COMMIT))
    assert len(driver.named("cranked")) == 2


async def test_the_run_is_moved_on_although_no_audit_can_be_read(driver):
    """A node that refuses only the long read of audits must not stop the rounds."""
    audits = driver.start(run_audits(driver.member))
    running = await begin(driver)

    async def away(*_about):
        raise AWAY

    driver.node.read_audited = away
    for slot in (LATE, LATE + 1):
        await driver.look(view_at(slot, phase=Phase.COMMIT))
    assert len(driver.named("cranked")) == 2
    assert len(driver.named("chain_unreachable")) == 2
    assert not running.done()
    assert not audits.done()


def discriminators(driver):
    return [bytes(instruction.data)[:8] for (instruction,) in driver.node.sent]


def pending(driver, slot):
    """A look at which the seed of round 9 is due and nothing else is."""
    driver.node.rounds = {ROUND: round_view(round=ROUND, seed_slot=1_000)}
    return view_at(slot, seeds_pending=SEEDS, phase=Phase.FINISHED)


async def test_a_seed_is_frozen_once_its_slot_is_over(driver):
    await begin(driver)
    await see(driver, pending(driver, 1_000))
    assert driver.node.sent == []
    await see(driver, pending(driver, 1_001))
    assert len(driver.named("cranked")) == 1


async def test_a_seed_whose_slot_has_left_the_list_is_retargeted(driver):
    driver.node.failure = TOO_LATE
    await begin(driver)
    await see(driver, pending(driver, 1_000 + SLOT_HASHES_LISTED))
    assert len(driver.node.sent) == 1, "it may still be frozen"
    await see(driver, pending(driver, 1_001 + SLOT_HASHES_LISTED))
    freeze, again, retarget = discriminators(driver)
    assert freeze == again
    assert retarget != freeze


async def test_a_seed_that_waits_for_a_slow_node_holds_up_no_transition(driver):
    await begin(driver)

    async def never(_run, _numbers):
        await asyncio.Event().wait()

    driver.node.read_rounds = never
    await driver.look(view_at(LATE, seeds_pending=SEEDS))
    assert len(driver.named("cranked")) == 1, "the tick"
    assert len(driver.node.sent) == 1


def names():
    """Return the names of the tasks that are under way beside the test's."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    return sorted(task.get_name() for task in tasks)


async def test_closing_leaves_only_sends_which_are_reported_when_they_land(driver):
    driver.node.hangs = asyncio.Event()
    running = await begin(driver)
    with complaints() as found:
        await see(driver, view_at(LATE, phase=Phase.COMMIT), due())
        await end(running)
        assert names() == ["send", "send"]
        driver.node.hangs.set()
        await settle()
        assert names() == []
        gc.collect()
        await settle()
    assert found == []
    assert [one["fee"] for one in driver.named("cranked")] == [5_000]
    assert [one["fee"] for one in driver.named("escrow_released")] == [5_000]


async def test_a_cleared_trainer_serves_its_openings_while_anybody_may_contest_that(
    driver, monkeypatch
):
    """Somebody waits for an honest member's process to end, opens a bonded case, and has it fined.

    A jury that is served nothing says so, and that is a refusal. So members stay, with the opening
    set in their store, until no case may follow. Threat T22.
    """
    monkeypatch.setattr(housekeeping, "is_our_turn", never)
    driver.node.rounds = {ROUND: closed_round()}
    driver.propose()
    await begin(driver)
    driver.start(run_audits(driver.member))
    await settle()
    await driver.look(view_at())
    held = driver.audits.openings
    assert held.find(ROUND, INDEX) == AUDIT.root
    cleared = audit_view(AuditStage.SETTLED, openings_root=AUDIT.root, stage_end=5_000)
    await driver.look(view_at(5_000, sequence=2), cleared)
    assert await is_needed(driver.member, view_at(5_000, sequence=3))
    assert held.shown(AUDIT.root) is not None
    case = replace(cleared, stage=AuditStage.CASE_COMMIT, stage_end=6_000)
    await driver.look(view_at(5_100, sequence=4), case)
    assert await is_needed(driver.member, view_at(5_100, sequence=5))
    assert held.shown(AUDIT.root) is not None
    driver.node.audits = []
    await driver.look(view_at(6_200, sequence=6))
    assert not await is_needed(driver.member, view_at(6_200, sequence=7))
    for slot in range(6_200, 6_200 + NUM_VIEWS):
        assert held.shown(AUDIT.root) is not None
        await driver.look(view_at(slot + 1, sequence=7))
    assert held.held == []


async def test_a_list_that_is_too_short_costs_no_opening_set(driver):
    """It was removed for good at one such list, and a jury that is served nothing fines."""
    driver.node.rounds = {ROUND: closed_round()}
    driver.audits.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    audit = audit_view(AuditStage.SETTLED, openings_root=AUDIT.root, stage_end=10**6)
    await driver.see(view_at(), audit)
    whole = driver.node.find_audits

    async def short(_run):
        return []

    driver.node.find_audits = short
    late = FROZEN_AT + 2 + RELIST_SLOTS
    for slot in range(late, late + 2 * NUM_VIEWS):
        view = view_at(slot, sequence=2)
        await driver.see(view)
        tidy(driver.audits, view)
    driver.node.find_audits = whole
    await driver.see(view_at(late + 200, sequence=3))
    assert driver.tracker.find(ROUND, INDEX) is not None
    assert driver.audits.openings.shown(AUDIT.root) == AUDIT.data


async def test_an_audit_that_one_answer_hides_costs_neither_set_nor_verdict(driver):
    """No view alone removes what we owe."""
    driver.node.rounds = {ROUND: closed_round()}
    driver.audits.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    duty = seal(driver)
    for sequence in range(2):
        view = view_at(10**5 + sequence, sequence, round_=ROUND + PARAMS.ring + 1, num_audits=0)
        await driver.see(view)
        tidy(driver.audits, view)
    assert driver.audits.openings.shown(AUDIT.root) == AUDIT.data
    assert driver.audits.verdicts.duties() == [duty]


def seal(driver):
    about = (RUN_ADDRESS, ROUND, 2, INDEX, VerdictKind.OK, AUDIT.root, bytes(32))
    driver.audits.verdicts.seal_verdict(Statement(*about), (0,) * 64)
    return Duty(ROUND, 2, 0)


async def tidy_long(driver, view):
    for slot in range(view.slot, view.slot + NUM_VIEWS + 1):
        await driver.tracker.refresh(replace(view, slot=slot))
        tidy(driver.audits, replace(view, slot=slot))


async def test_a_verdict_is_kept_while_its_round_may_be_asked_for(driver):
    duty = seal(driver)
    for round_, is_kept in ((ROUND + PARAMS.ring, True), (ROUND + PARAMS.ring + 1, False)):
        view = view_at(round_=round_)
        await tidy_long(driver, view)
        assert (duty in driver.audits.verdicts.duties()) is is_kept, f"round {round_}"


@pytest.mark.parametrize(("stage", "is_kept"), [("REVEAL", True), ("SETTLED", False)])
async def test_a_verdict_of_an_open_audit_is_kept_however_old(driver, stage, is_kept):
    duty = seal(driver)
    driver.node.audits = [audit_view(AuditStage[stage], target=2)]
    view = view_at(round_=ROUND + PARAMS.ring + 1)
    await tidy_long(driver, view)
    assert (duty in driver.audits.verdicts.duties()) is is_kept
