"""A sampled trainer: shows what the seed draws, once, again after a fork, and never too late."""

from dataclasses import replace
from unittest.mock import AsyncMock

import pytest
from support import opened
from support.audit_driver import (
    AUDIT,
    FROZEN_AT,
    INDEX,
    ROUND,
    AuditDriver,
    Holders,
    closed_round,
    settle,
    view_at,
)
from support.audit_views import audit_view
from support.ports import Wrapped
from support.views import PARAMS

from troth_attestation import openings
from troth_attestation.header import encode
from troth_client.audit.drawn import sampled_payload
from troth_client.audit.show_openings import rounds_to_open, show_openings
from troth_client.runtime.files import DiskFullError
from troth_client.state.audit_tracker import FORK_SLOTS
from troth_client.steps.collect import closure_of
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import SeedStatus


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path)
    one.propose()
    yield one
    await one.close()


async def look(driver, **about):
    view = view_at(**about)
    await driver.see(view)
    parts = (driver.chain, driver.state, driver.audits)
    for round_ in list(rounds_to_open(*parts, view)):
        await show_openings(driver.submissions, driver.audits, driver.work, round_)


def posted_root(driver):
    return driver.last_data()[-32:]


async def test_the_drawn_tiles_are_in_the_store_before_their_root_is_on_chain(driver):
    await look(driver)
    assert posted_root(driver) == AUDIT.root
    assert driver.audits.openings.shown(AUDIT.root) == AUDIT.data
    assert len(driver.named("openings_posted")) == 1


async def test_nothing_is_posted_twice_once_the_chain_shows_the_root(driver):
    await look(driver)
    driver.node.audits = [audit_view(openings_root=AUDIT.root)]
    await look(driver, slot=FROZEN_AT + 2, sequence=2)
    assert len(driver.node.sent) == 1


async def test_a_posted_set_that_is_lost_is_made_again_and_not_posted_again(driver):
    """A restored disk lacks it, and a jury may ask for it long after the time to post is over."""
    await look(driver)
    driver.audits.openings.settle(ROUND, INDEX)
    driver.node.audits = [audit_view(openings_root=AUDIT.root)]
    await look(driver, slot=FROZEN_AT + PARAMS.openings_slots + 1, sequence=2)
    assert driver.audits.openings.shown(AUDIT.root) == AUDIT.data
    assert len(driver.node.sent) == 1


async def test_an_audit_that_came_and_went_asks_for_nothing(driver):
    driver.node.rounds[ROUND] = closed_round(audited=1 << INDEX)
    await look(driver)
    assert driver.node.sent == []


@pytest.mark.parametrize(
    "changes",
    [
        {"sampled": 0},
        {"included": 0b011111},
        {"seed_status": SeedStatus.LOST, "freeze_clock": NONE},
        {"seed_status": SeedStatus.PENDING, "freeze_clock": NONE},
    ],
)
async def test_nothing_is_opened_that_no_frozen_seed_asks_for(driver, changes):
    driver.node.rounds[ROUND] = closed_round(**changes)
    await look(driver)
    assert driver.node.sent == []
    assert driver.audits.openings.held == []


async def test_openings_are_not_sent_when_their_time_is_over(driver):
    await look(driver, slot=FROZEN_AT + PARAMS.openings_slots + 1)
    assert driver.node.sent == []


async def test_a_request_in_advance_is_answered_as_a_sample_is(driver):
    driver.node.rounds[ROUND] = closed_round(sampled=0, requested=1 << INDEX)
    driver.node.audits = [audit_view(AuditStage.REQUESTED)]
    await look(driver)
    assert posted_root(driver) == AUDIT.root


async def test_a_fork_that_draws_the_seed_anew_gets_the_tiles_that_it_draws(driver):
    """The first post landed on a fork that lost: other tiles are asked for, or P5."""
    await look(driver)
    driver.node.audits = [audit_view(openings_root=AUDIT.root)]
    await look(driver, slot=FROZEN_AT + 2, sequence=2)
    other = b"t" * 32
    driver.node.rounds[ROUND] = closed_round(seed=other)
    driver.node.audits = []
    await look(driver, slot=FROZEN_AT + 3, sequence=3)
    drawn = sampled_payload(other, AUDIT.header, opened.NUM_TILES, opened.NUM_DRAWN)
    expected = openings.openings_root(openings.encode(drawn, AUDIT.after, AUDIT.before))
    assert posted_root(driver) == expected != AUDIT.root
    assert driver.audits.openings.shown(AUDIT.root) is None, (
        "two sets would show more than was drawn"
    )


async def test_a_fork_that_takes_the_post_back_gets_it_again(driver):
    await look(driver)
    driver.node.audits = [audit_view(openings_root=AUDIT.root)]
    await look(driver, slot=FROZEN_AT + 2, sequence=2)
    driver.node.audits = [audit_view(AuditStage.OPENINGS)]
    await look(driver, slot=FROZEN_AT + 3, sequence=3)
    assert len(driver.node.sent) == 2
    assert posted_root(driver) == AUDIT.root


async def test_a_view_that_steps_back_over_the_round_takes_no_set_that_was_posted(driver):
    """A node that lags for long shows it open again; the set is asked for on the true fork."""
    await look(driver)
    replica, residual = driver.state.replica, driver.state.residual
    replica.applied = lambda: [closure_of(closed_round())]
    replica.rewind = residual.rewind = lambda _round: None
    replay, back = driver.member.replay, view_at(FROZEN_AT + 2, round_=ROUND, sequence=2)
    behind = Wrapped(replay.chain, look=AsyncMock(return_value=back))
    await replace(replay, chain=behind).follow_corrections(back)
    assert len(driver.named("round_corrected")) == 1
    assert driver.audits.openings.shown(AUDIT.root) == AUDIT.data


async def test_u_is_kept_until_the_seed_is_final_and_then_released(driver):
    brief = replace(PARAMS, openings_slots=60)
    await look(driver, params=brief)
    assert driver.state.archive.waiting() == [ROUND]
    await look(driver, slot=FROZEN_AT + FORK_SLOTS, params=brief)
    assert driver.state.archive.waiting() == [ROUND]
    await look(driver, slot=FROZEN_AT + FORK_SLOTS + 1, sequence=2, params=brief)
    assert driver.state.archive.waiting() == []


async def test_who_was_away_when_the_seed_became_final_shows_its_tiles_all_the_same(driver):
    """A machine that came back after 26 seconds, with minutes to go, paid for a refusal (P5)."""
    patient = replace(PARAMS, openings_slots=750)
    for slot, sequence in ((FROZEN_AT + FORK_SLOTS + 1, 1), (FROZEN_AT + 750, 2)):
        driver.node.sent.clear()
        await look(driver, slot=slot, sequence=sequence, params=patient)
        assert posted_root(driver) == AUDIT.root
    await look(driver, slot=FROZEN_AT + 751, sequence=3, params=patient)
    assert driver.state.archive.waiting() == []


async def test_a_round_whose_seed_was_lost_is_released_when_the_ring_drops_it(driver):
    driver.node.rounds[ROUND] = closed_round(seed_status=SeedStatus.LOST, freeze_clock=NONE)
    await look(driver, slot=10**9)
    assert driver.state.archive.waiting() == [ROUND]
    await look(driver, slot=10**9 + 1, round_=ROUND + PARAMS.ring, sequence=2)
    assert driver.state.archive.waiting() == []


async def test_a_restarted_trainer_posts_what_it_had_made(driver):
    await look(driver)
    await driver.restart()
    await look(driver)
    assert posted_root(driver) == AUDIT.root
    assert len(driver.node.sent) == 2


async def test_a_lost_u_is_reported_once_and_ends_nothing(driver):
    driver.store.drop_residuals({ROUND})
    await driver.restart()
    await look(driver)
    await look(driver, slot=FROZEN_AT + 2, sequence=2)
    (reported,) = driver.named("openings_lost")
    assert reported["round"] == ROUND
    assert driver.node.sent == []


async def test_a_lost_header_is_had_from_others(driver):
    """The chain names it and all hold it: u alone is needed to show the tiles."""
    for path in driver.folder.rglob("*submission*"):
        path.unlink()
    driver.holders = Holders(None, None, None, encode(AUDIT.header) + bytes(64))
    looking = driver.start(look(driver))
    await settle()
    slots = 0
    while not looking.done():
        await driver.pass_slot()
        slots += 1
    assert slots == (1 + 2 + 4) + 1, "it asks ever more seldom, and then sends"
    assert len(driver.named("openings_delayed")) == 3
    assert posted_root(driver) == AUDIT.root
    assert driver.named("openings_lost") == []


async def test_a_lagging_node_that_does_not_show_the_round_is_asked_again(driver):
    shown = driver.node.rounds.pop(ROUND)
    await look(driver)
    driver.node.rounds[ROUND] = shown
    await look(driver, slot=FROZEN_AT + 2)
    assert driver.node.sent == [], "nothing seems to have changed"
    await look(driver, slot=FROZEN_AT + 20)
    assert posted_root(driver) == AUDIT.root


async def test_a_round_still_open_to_a_lagging_node_waits(driver):
    driver.node.rounds[ROUND] = replace(closed_round(), flags=0)
    await look(driver)
    assert driver.node.sent == []
    assert driver.state.archive.waiting() == [ROUND]


async def test_a_full_disk_is_an_error_that_names_itself(driver, monkeypatch):
    def full(*_args, **_kwargs):
        raise DiskFullError("room for 1 MiB", "no space left", "Free some.")

    monkeypatch.setattr("troth_client.state.openings_store.atomic_write", full)
    with pytest.raises(DiskFullError):
        await look(driver)
