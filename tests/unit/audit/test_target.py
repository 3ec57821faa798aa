"""A sampled trainer: shows what the seed draws, once, again after a fork, and never too late."""

from dataclasses import replace

import pytest
from support import opened

from troth_attestation import openings
from troth_client.audit.drawn import sampled_payload
from troth_client.audit.target import show_openings
from troth_client.audit.tracker import FORK_SLOTS
from troth_client.runtime.files import DiskFullError
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import SeedStatus

from ..rules.builders import PARAMS
from .scene import AUDIT, FROZEN_AT, INDEX, ROUND, Scene, audit_view, closed_round, view_at


@pytest.fixture
def scene(tmp_path):
    one = Scene(tmp_path)
    one.propose()
    yield one
    one.close()


async def look(scene, **about):
    view = view_at(**about)
    await scene.peer.tracker.refresh(view)
    await show_openings(scene.peer, view)


def posted_root(scene):
    (instruction,) = scene.node.sent[-1]
    return bytes(instruction.data)[-32:]


async def test_the_drawn_tiles_are_on_the_desk_before_their_root_is_on_chain(scene):
    await look(scene)
    assert posted_root(scene) == AUDIT.root
    assert scene.peer.desk.shown(AUDIT.root) == AUDIT.data
    assert len(scene.named("openings_posted")) == 1


async def test_nothing_is_posted_twice_once_the_chain_shows_the_root(scene):
    await look(scene)
    scene.node.audits = [audit_view(openings_root=AUDIT.root)]
    await look(scene, slot=FROZEN_AT + 2, sequence=2)
    assert len(scene.node.sent) == 1


async def test_an_audit_that_came_and_went_asks_for_nothing(scene):
    scene.node.rounds[ROUND] = closed_round(audited=1 << INDEX)
    await look(scene)
    assert scene.node.sent == []


@pytest.mark.parametrize(
    "changes",
    [
        {"sampled": 0},
        {"included": 0b011111},
        {"seed_status": SeedStatus.LOST, "freeze_clock": NONE},
        {"seed_status": SeedStatus.PENDING, "freeze_clock": NONE},
    ],
)
async def test_nothing_is_opened_that_no_frozen_seed_asks_for(scene, changes):
    scene.node.rounds[ROUND] = closed_round(**changes)
    await look(scene)
    assert scene.node.sent == []
    assert scene.peer.desk.held == []


async def test_openings_are_not_sent_when_their_time_is_over(scene):
    await look(scene, slot=FROZEN_AT + PARAMS.openings_slots + 1)
    assert scene.node.sent == []


async def test_a_request_in_advance_is_answered_as_a_sample_is(scene):
    scene.node.rounds[ROUND] = closed_round(sampled=0, requested=1 << INDEX)
    scene.node.audits = [audit_view(AuditStage.REQUESTED)]
    await look(scene)
    assert posted_root(scene) == AUDIT.root


async def test_a_fork_that_draws_the_seed_anew_gets_the_tiles_that_it_draws(scene):
    """The first post landed on a fork that lost: other tiles are asked for, or P5."""
    await look(scene)
    scene.node.audits = [audit_view(openings_root=AUDIT.root)]
    await look(scene, slot=FROZEN_AT + 2, sequence=2)
    other = b"t" * 32
    scene.node.rounds[ROUND] = closed_round(seed=other)
    scene.node.audits = []
    await look(scene, slot=FROZEN_AT + 3, sequence=3)
    drawn = sampled_payload(other, AUDIT.header, opened.NUM_TILES)
    expected = openings.openings_root(openings.encode(drawn, AUDIT.after, AUDIT.before))
    assert posted_root(scene) == expected != AUDIT.root
    assert scene.peer.desk.shown(AUDIT.root) is None, "two sets would show more than was drawn"


async def test_a_fork_that_takes_the_post_back_gets_it_again(scene):
    await look(scene)
    scene.node.audits = [audit_view(openings_root=AUDIT.root)]
    await look(scene, slot=FROZEN_AT + 2, sequence=2)
    scene.node.audits = [audit_view(AuditStage.OPENINGS)]
    await look(scene, slot=FROZEN_AT + 3, sequence=3)
    assert len(scene.node.sent) == 2
    assert posted_root(scene) == AUDIT.root


async def test_u_is_kept_until_the_seed_is_final_and_then_released(scene):
    await look(scene)
    assert scene.peer.archive.waiting() == [ROUND]
    await look(scene, slot=FROZEN_AT + FORK_SLOTS)
    assert scene.peer.archive.waiting() == [ROUND]
    await look(scene, slot=FROZEN_AT + FORK_SLOTS + 1, sequence=2)
    assert scene.peer.archive.waiting() == []


async def test_who_was_away_when_the_seed_became_final_shows_its_tiles_all_the_same(scene):
    """A machine that came back after 26 seconds, with minutes to go, paid ten rewards (P5)."""
    patient = replace(PARAMS, openings_slots=750)
    for slot, sequence in ((FROZEN_AT + FORK_SLOTS + 1, 1), (FROZEN_AT + 750, 2)):
        scene.node.sent.clear()
        await look(scene, slot=slot, sequence=sequence, params=patient)
        assert posted_root(scene) == AUDIT.root
    await look(scene, slot=FROZEN_AT + 751, sequence=3, params=patient)
    assert scene.peer.archive.waiting() == []


async def test_a_round_whose_seed_was_lost_is_released_when_the_ring_drops_it(scene):
    scene.node.rounds[ROUND] = closed_round(seed_status=SeedStatus.LOST, freeze_clock=NONE)
    await look(scene, slot=10**9)
    assert scene.peer.archive.waiting() == [ROUND]
    await look(scene, slot=10**9 + 1, round_=ROUND + PARAMS.ring, sequence=2)
    assert scene.peer.archive.waiting() == []


async def test_a_restarted_trainer_posts_what_it_had_made(scene):
    await look(scene)
    scene.restart()
    await look(scene)
    assert posted_root(scene) == AUDIT.root
    assert len(scene.node.sent) == 2


async def test_a_lost_u_is_told_once_and_ends_nothing(scene):
    scene.store.drop_residuals({ROUND})
    scene.restart()
    await look(scene)
    await look(scene, slot=FROZEN_AT + 2, sequence=2)
    (told,) = scene.named("openings_lost")
    assert told["round"] == ROUND
    assert scene.node.sent == []


async def test_a_lost_submission_is_told_once(scene, tmp_path):
    for path in tmp_path.rglob("*"):
        if path.is_file() and "submission" in str(path):
            path.unlink()
    await look(scene)
    (told,) = scene.named("openings_lost")
    assert "submission" in told["reason"]


async def test_a_lagging_node_that_does_not_show_the_round_is_asked_again(scene):
    shown = scene.node.rounds.pop(ROUND)
    await look(scene)
    scene.node.rounds[ROUND] = shown
    await look(scene, slot=FROZEN_AT + 2)
    assert scene.node.sent == [], "nothing seems to have changed"
    await look(scene, slot=FROZEN_AT + 20)
    assert posted_root(scene) == AUDIT.root


async def test_a_round_still_open_to_a_lagging_node_waits(scene):
    scene.node.rounds[ROUND] = replace(closed_round(), flags=0)
    await look(scene)
    assert scene.node.sent == []
    assert scene.peer.archive.waiting() == [ROUND]


async def test_a_full_disk_is_an_error_that_names_itself(scene, monkeypatch):
    def full(*_args, **_kwargs):
        raise DiskFullError("room for 1 MiB", "no space left", "Free some.")

    monkeypatch.setattr("troth_client.state.openings_store.atomic_write", full)
    with pytest.raises(DiskFullError):
        await look(scene)
