"""A juror: votes on what it could fetch, and says in time that it could not."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from support.views import PARAMS, RUN_ADDRESS, entry, key, roster
from troth_client.audit.juror import serve

from troth_attestation.cases import Vote
from troth_attestation.header import encode, header_hash
from troth_attestation.state import state_root
from troth_attestation.verdict import VerdictKind
from troth_client.audit.evidence import find_openings
from troth_client.state.kept_weights import KeptWeights
from troth_client.state.openings_store import OpeningsStore
from troth_client.storage import Submission, WeightState
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, SeatFlag
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import Status

from .scene import AUDIT, FROZEN_AT, INDEX, ROUND, Scene, audit_view, juror, view_at

JUROR = 2
END = FROZEN_AT + PARAMS.jury_commit_slots
EARLY, LATE = FROZEN_AT + 1, END - PARAMS.jury_commit_slots // 3
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
        for _ in range(50):
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
    """In a case of work `unavailable` fines the target, who owes neither payload nor weights."""
    await sit_for(scene, case(kind), LATE)
    is_work = kind == AuditKind.WORK
    expected = VerdictKind.INCONCLUSIVE if is_work else VerdictKind.UNAVAILABLE
    (judged,) = scene.named("judged_case")
    assert judged["verdict"] == expected.name
    (instruction,) = scene.node.sent[-1]
    (duty,) = scene.peer.verdicts.duties()
    said = scene.peer.verdicts.find(duty)
    assert said.commit() == vote(kind, expected).commit(said.salt)
    assert said.commit() in bytes(instruction.data)


@pytest.fixture
async def network(scene):
    """The juror among others; it has all that the case needs except the openings."""
    network = MemoryNetwork()
    tensors = {"w": np.zeros(4, np.float32)}
    root = state_root(tensors, ROUND, 0, b"c" * 32)
    scene.store.save_weights(WeightState(ROUND, 0, root, tensors))
    scene.store.save_peer(Submission(ROUND, INDEX, encode(AUDIT.header), b"s", b"p"))
    scene.peer.endpoints = {n: (key(n + 1), f"peer-{n}") for n in range(6)}
    async with memory_transport(network, f"peer-{JUROR}") as transport:
        scene.peer.transport = transport
        yield network


def known_case(**changes):
    root = state_root({"w": np.zeros(4, np.float32)}, ROUND, 0, b"c" * 32)
    about = {"header_hash": header_hash(AUDIT.header), "canonical_root": root}
    return case(AuditKind.WORK, openings_root=AUDIT.root, **(about | changes))


def with_target(slot, status):
    entries = roster(*(entry(n + 1) for n in range(5)), entry(INDEX + 1, status=status))
    return replace(view_at(slot), entries=entries)


async def test_that_nobody_serves_the_openings_is_said_in_time(scene, network):
    """The accused hid its tiles from the second committee: each honest juror paid two fees."""
    for slot, num_said in ((EARLY, 0), (LATE, 1)):
        await sit_for(scene, known_case(), slot)
        assert len(scene.named("judged_case")) == num_said
    assert scene.named("judged_case")[-1]["verdict"] == "UNAVAILABLE"
    (duty,) = scene.peer.verdicts.duties()
    assert scene.peer.verdicts.find(duty).kind == VerdictKind.UNAVAILABLE


@pytest.mark.parametrize("status", [Status.ACTIVE, Status.LEFT])
async def test_a_target_that_has_left_is_asked_too(scene, network, tmp_path, status):
    """It stays until its last audit is over: whoever does not ask it finds it guilty of hiding."""
    desk = OpeningsStore(tmp_path / "target")
    desk.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    async with memory_transport(network, f"peer-{INDEX}") as target:
        target.show(desk)
        view = with_target(EARLY, status)
        assert await find_openings(scene.peer, view, known_case(), AUDIT.header) == AUDIT.data


async def test_a_vote_survives_a_restart_and_is_revealed(scene):
    await sit_for(scene, case(AuditKind.PAYLOAD), LATE)
    scene.restart()
    revealing = case(AuditKind.PAYLOAD, AuditStage.CASE_REVEAL, SeatFlag.COMMITTED)
    await sit_for(scene, revealing, EARLY, times=1)
    assert len(scene.named("vote_revealed")) == 1


async def test_a_root_vote_is_compared_with_our_own_replay(scene):
    ours, owner = b"w" * 32, audit_view().owner
    scene.store.save_weights(WeightState(ROUND, 0, ours, {"w": np.zeros(4, np.float32)}))
    true = root_vote(RUN_ADDRESS, ROUND, owner, ours)
    for claimed, verdict in ((true, "OK"), (b"x" * 32, "MISMATCH")):
        for duty in scene.peer.verdicts.duties():
            scene.peer.verdicts.drop(duty)
        await scene.peer.chamber.close()
        await sit_for(scene, case(AuditKind.ROOT, root_vote=claimed), EARLY)
        assert scene.named("judged_case")[-1]["verdict"] == verdict


async def test_who_is_no_juror_or_has_acted_sends_nothing(scene):
    for audit in (
        case(AuditKind.PAYLOAD, jurors=(juror(1), juror(3))),
        case(AuditKind.PAYLOAD, flags=SeatFlag.COMMITTED),
        case(AuditKind.PAYLOAD, AuditStage.DECIDED),
        case(AuditKind.PAYLOAD, AuditStage.CASE_REVEAL),
    ):
        await sit_for(scene, audit, LATE)
    assert scene.node.sent == []
