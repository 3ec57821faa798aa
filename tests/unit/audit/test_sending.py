"""What is sent for audits: a failure is an event and a pause, never the end of a participant."""

import pytest

from troth_client.audit.sending import Purpose, send
from troth_client.state.audit_tracker import PATIENCE_SLOTS
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    InsufficientFundsError,
    RpcTimeoutError,
)

from .scene import FROZEN_AT, INDEX, ROUND, Scene, view_at

PURPOSE = Purpose("verdict_committed", (ROUND, INDEX, 0))


@pytest.fixture
def scene(tmp_path):
    one = Scene(tmp_path)
    yield one
    one.close()


async def test_what_lands_is_told_with_its_fee(scene):
    await send(scene.peer, view_at(), "step", PURPOSE)
    (told,) = scene.named("verdict_committed")
    assert (told["round"], told["target"], told["fee"]) == (ROUND, INDEX, 5_000)


@pytest.mark.parametrize(
    "failure", [InsufficientFundsError("purse", "1 lamport"), BlockhashExpiredError(3)]
)
async def test_a_failure_is_an_event_and_not_sent_again_at_once(scene, failure):
    scene.node.failure = failure
    await send(scene.peer, view_at(), "step", PURPOSE)
    (told,) = scene.named("verdict_committed_refused")
    assert told["name"] == type(failure).__name__
    for later in range(PATIENCE_SLOTS):
        await send(scene.peer, view_at(FROZEN_AT + 1 + later), "step", PURPOSE)
    assert len(scene.node.sent) == 1
    scene.node.failure = None
    await send(scene.peer, view_at(FROZEN_AT + 1 + PATIENCE_SLOTS), "step", PURPOSE)
    assert len(scene.node.sent) == 2
    assert len(scene.named("verdict_committed")) == 1


async def test_one_audit_that_fails_holds_up_no_other(scene):
    scene.node.failure = InsufficientFundsError("purse", "1 lamport")
    await send(scene.peer, view_at(), "step", PURPOSE)
    scene.node.failure = None
    await send(scene.peer, view_at(), "step", Purpose("verdict_committed", (ROUND, 1, 0)))
    await send(scene.peer, view_at(), "step", Purpose("verdict_revealed", PURPOSE.key))
    assert len(scene.node.sent) == 3


async def test_a_node_that_is_silent_is_the_supervisors_matter(scene):
    scene.node.failure = RpcTimeoutError("http://node", "nothing")
    with pytest.raises(RpcTimeoutError):
        await send(scene.peer, view_at(), "step", PURPOSE)
    assert scene.peer.tracker.may_try(PURPOSE.key, PURPOSE.event, view_at())
