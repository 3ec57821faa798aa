"""A juror: votes on what it could fetch, and says in time that it could not."""

import asyncio

import pytest

from troth_attestation.cases import Vote
from troth_attestation.verdict import VerdictKind
from troth_client.audit.juror import serve
from troth_client.audit.weights import KeptWeights
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, SeatFlag
from troth_coordinator.rules.root import root_vote

from ..rules.builders import PARAMS, RUN_ADDRESS
from .scene import FROZEN_AT, INDEX, ROUND, Scene, audit_view, juror, view_at

JUROR = 2
END = FROZEN_AT + PARAMS.committee_commit_slots
EARLY, LATE = FROZEN_AT + 1, END - PARAMS.committee_commit_slots // 3
KINDS = (AuditKind.WORK, AuditKind.PAYLOAD, AuditKind.POSSESSION)


@pytest.fixture
def scene(tmp_path):
    one = Scene(tmp_path, index=JUROR)
    one.node.rounds = {}
    one.peer.kept = KeptWeights(one.store, b"c" * 32)
    yield one
    one.close()


def case(kind, stage=AuditStage.CASE_COMMIT, flags=0, **changes):
    jurors = (juror(1), juror(JUROR, flags), juror(3))
    about = {"stage_end": END, "jurors": jurors, "num_jurors": 3, "subject": INDEX}
    return audit_view(stage, kind=kind, **(about | changes))


async def sit_for(scene, audit, slot, times=2):
    for _ in range(times):
        await serve(scene.peer, view_at(slot), audit)
        for _ in range(5):
            await asyncio.sleep(0)


def vote(kind, verdict, evidence=bytes(32)):
    return Vote(RUN_ADDRESS, ROUND, INDEX, kind, JUROR, verdict, evidence)


@pytest.mark.parametrize("kind", KINDS)
async def test_evidence_that_may_still_come_is_waited_for(scene, kind):
    await sit_for(scene, case(kind), EARLY)
    assert scene.node.sent == []
    assert scene.peer.verdicts.duties() == []


@pytest.mark.parametrize("kind", KINDS)
async def test_who_got_nothing_to_judge_says_so_and_is_not_fined_for_silence(scene, kind):
    """The accused hid its tiles from the second committee: each honest juror paid two fees."""
    await sit_for(scene, case(kind), LATE)
    (judged,) = scene.named("judged_case")
    assert judged["verdict"] == "UNAVAILABLE"
    (instruction,) = scene.node.sent[-1]
    (duty,) = scene.peer.verdicts.duties()
    said = scene.peer.verdicts.find(duty)
    assert said.commit() == vote(kind, VerdictKind.UNAVAILABLE).commit(said.salt)
    assert said.commit() in bytes(instruction.data)


async def test_a_vote_survives_a_restart_and_is_revealed(scene):
    await sit_for(scene, case(AuditKind.PAYLOAD), LATE)
    scene.restart()
    revealing = case(AuditKind.PAYLOAD, AuditStage.CASE_REVEAL, SeatFlag.COMMITTED)
    await sit_for(scene, revealing, EARLY, times=1)
    assert len(scene.named("vote_revealed")) == 1


async def test_a_root_vote_is_compared_with_our_own_replay(scene, monkeypatch):
    ours, owner = b"w" * 32, audit_view().owner
    monkeypatch.setattr(scene.store, "load_weights", lambda _round: Weights(ours))
    true = root_vote(RUN_ADDRESS, ROUND, owner, ours)
    for claimed, verdict in ((true, "OK"), (b"x" * 32, "MISMATCH")):
        for duty in scene.peer.verdicts.duties():
            scene.peer.verdicts.drop(duty)
        await sit_for(scene, case(AuditKind.ROOT, root_vote=claimed), EARLY)
        assert scene.named("judged_case")[-1]["verdict"] == verdict


class Weights:
    """Weights of which only the root matters."""

    def __init__(self, root):
        self.state_root = root


async def test_who_is_no_juror_or_has_acted_sends_nothing(scene):
    for audit in (
        case(AuditKind.PAYLOAD, jurors=(juror(1), juror(3))),
        case(AuditKind.PAYLOAD, flags=SeatFlag.COMMITTED),
        case(AuditKind.PAYLOAD, AuditStage.DECIDED),
        case(AuditKind.PAYLOAD, AuditStage.CASE_REVEAL),
    ):
        await sit_for(scene, audit, LATE)
    assert scene.node.sent == []
