"""A juror: votes on what it could fetch, and says in time that it could not."""

from dataclasses import replace

import pytest
from support.audit_driver import (
    AUDIT,
    ENDPOINTS,
    FROZEN_AT,
    INDEX,
    ROOT,
    ROUND,
    SKETCH,
    WEIGHTS,
    AuditDriver,
    Holders,
    closed_round,
    settle,
    view_at,
)
from support.audit_views import audit_view, juror
from support.views import PARAMS, RUN_ADDRESS, entry, roster

from troth_attestation.cases import NO_SKETCH, Vote
from troth_attestation.header import header_hash
from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_client.audit.evidence import find_openings
from troth_client.audit_round import vote_as_juror
from troth_client.state.openings_store import OpeningsStore
from troth_client.storage import WeightState
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_coordinator.chain.errors import InsufficientFundsError
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, SeatFlag
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import Status

JUROR = 2
END = FROZEN_AT + PARAMS.jury_commit_slots
EARLY, LATE = FROZEN_AT + 1, END - PARAMS.jury_commit_slots // 3
KINDS = (AuditKind.WORK, AuditKind.PAYLOAD, AuditKind.POSSESSION)
BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path, index=JUROR)
    one.node.rounds = {}
    one.state.replica.round = ROUND
    yield one
    await one.close()


def case(kind, stage=AuditStage.CASE_COMMIT, flags=0, **changes):
    jurors = (juror(1), juror(JUROR, flags), juror(3))
    about = {"stage_end": END, "jurors": jurors, "num_jurors": 3, "subject": INDEX}
    return audit_view(stage, kind=kind, **(about | changes))


def known_case(**changes):
    """A case of work of which the juror holds payload and weights."""
    about = {
        "header_hash": header_hash(AUDIT.header),
        "canonical_root": ROOT,
        "openings_root": AUDIT.root,
    }
    return case(AuditKind.WORK, **(about | changes))


async def begin(driver, audit, slot):
    """Show the case and let its juror begin."""
    await driver.see(view_at(slot), audit)
    (current,) = driver.tracker.audits(view_at(slot))
    task = driver.start(vote_as_juror(driver.witness, current))
    await settle()
    return task


async def see(driver, slot, *audits, sequence=1):
    """A slot later: the search tries again, then a look at the chain."""
    await driver.pass_slot()
    await driver.see(view_at(slot, sequence=sequence), *audits)


def ready(driver, *answers):
    """Hold payload and weights; holders answer this when they are asked for openings."""
    driver.save_payload()
    driver.save_weights()
    driver.node.rounds[ROUND] = closed_round(cursor=700)
    driver.holders = Holders(*answers)


def vote(kind, verdict, evidence=bytes(32), sketch=NO_SKETCH):
    about = (RUN_ADDRESS, ROUND, INDEX, kind, JUROR, verdict, evidence)
    return Vote(*about, sketch_hash(sketch))


async def test_a_juror_recomputes_in_reference_mode_commits_and_reveals_in_one_pass(driver):
    ready(driver, AUDIT.data)
    driver.judge.verdict = Verdict(VerdictKind.MISMATCH, Reason.WORK_DIFFERS)
    task = await begin(driver, known_case(), EARLY)
    assert driver.judge.num_references == 1
    assert driver.judge.num_gradients == 0
    (duty,) = driver.audits.verdicts.duties()
    sealed = driver.audits.verdicts.find(duty)
    expected = vote(AuditKind.WORK, VerdictKind.MISMATCH, AUDIT.root, SKETCH)
    assert expected.commit(sealed.salt) in driver.last_data()
    await see(driver, EARLY + 1, known_case(flags=SeatFlag.COMMITTED), sequence=2)
    assert len(driver.node.sent) == 1, "others may still commit"
    await see(driver, END + 1)
    assert sealed.salt in driver.last_data()
    shown = known_case(stage=AuditStage.CASE_REVEAL, flags=BOTH, stage_end=END + 9)
    await see(driver, END + 2, shown, sequence=3)
    assert task.done()
    assert len(driver.node.sent) == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_evidence_that_may_still_come_is_waited_for(driver, kind):
    await begin(driver, case(kind), EARLY)
    await see(driver, EARLY + 1)
    assert driver.node.sent == []
    assert driver.audits.verdicts.duties() == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_juror_that_got_nothing_says_so_and_is_not_fined_for_silence(driver, kind):
    """In a case of work `unavailable` fines the target, who owes neither payload nor weights."""
    await begin(driver, case(kind), EARLY)
    await see(driver, LATE)
    is_work = kind == AuditKind.WORK
    expected = VerdictKind.INCONCLUSIVE if is_work else VerdictKind.UNAVAILABLE
    (judged,) = driver.named("judged_case")
    assert judged["verdict"] == expected.name
    (duty,) = driver.audits.verdicts.duties()
    sealed = driver.audits.verdicts.find(duty)
    assert sealed.commit() == vote(kind, expected).commit(sealed.salt)
    assert sealed.commit() in driver.last_data()


async def test_that_nobody_serves_the_openings_is_said_in_time(driver):
    """The accused hid its tiles from the jury: each honest juror paid two fees."""
    ready(driver, None)
    await begin(driver, known_case(), EARLY)
    await see(driver, LATE - 1)
    assert driver.named("judged_case") == []
    await see(driver, LATE)
    (judged,) = driver.named("judged_case")
    assert judged["verdict"] == "UNAVAILABLE"
    (duty,) = driver.audits.verdicts.duties()
    assert driver.audits.verdicts.find(duty).kind == VerdictKind.UNAVAILABLE


async def test_lost_weights_are_inconclusive_at_once(driver):
    ready(driver, AUDIT.data)
    await begin(driver, known_case(canonical_root=b"?" * 32), EARLY)
    (judged,) = driver.named("judged_case")
    assert judged["verdict"] == "INCONCLUSIVE"
    assert "weights of round 9" in judged["reason"]


async def test_a_juror_whose_weights_are_still_replayed_waits_for_them(driver):
    """After a restart it could only say inconclusive, and a cheat would go free."""
    ready(driver, AUDIT.data)
    driver.state.replica.round = ROUND - 1
    await begin(driver, known_case(), EARLY)
    await see(driver, LATE - 1)
    assert driver.named("judged_case") == []
    assert driver.node.sent == []
    driver.state.replica.round = ROUND
    await see(driver, LATE - 1)
    assert [one["verdict"] for one in driver.named("judged_case")] == ["OK"]
    assert len(driver.named("vote_committed")) == 1


async def test_a_juror_whose_weights_come_too_late_says_so_in_time(driver):
    """Its silence would be fined."""
    driver.state.replica.round = ROUND - 1
    ready(driver, AUDIT.data)
    await begin(driver, known_case(canonical_root=b"?" * 32), EARLY)
    await see(driver, LATE - 1)
    assert driver.named("judged_case") == []
    await see(driver, LATE)
    assert [one["verdict"] for one in driver.named("judged_case")] == ["INCONCLUSIVE"]
    assert len(driver.named("vote_committed")) == 1


async def test_a_case_about_a_root_waits_for_our_own_replay(driver):
    ours = b"w" * 32
    driver.state.replica.round = ROUND - 1
    true = root_vote(RUN_ADDRESS, ROUND, audit_view().owner, ours)
    await begin(driver, case(AuditKind.ROOT, root_vote=true), EARLY)
    await see(driver, EARLY + 1)
    assert driver.named("judged_case") == []
    driver.store.save_weights(WeightState(ROUND, 0, ours, WEIGHTS))
    driver.state.replica.round = ROUND
    await see(driver, EARLY + 2)
    assert [one["verdict"] for one in driver.named("judged_case")] == ["OK"]


@pytest.mark.parametrize("kind", [AuditKind.PAYLOAD, AuditKind.POSSESSION])
async def test_a_case_that_needs_no_weights_waits_for_no_replay(driver, kind):
    driver.state.replica.round = ROUND - 1
    driver.save_payload()
    about = {"header_hash": header_hash(AUDIT.header), "subject": INDEX}
    await begin(driver, case(kind, **about), EARLY)
    assert len(driver.named("judged_case")) == 1


@pytest.fixture
async def network(driver):
    """The juror among others, which it asks over a real transport."""
    network = MemoryNetwork()
    async with memory_transport(network, f"peer-{JUROR}") as transport:
        driver.holders = transport
        driver.submissions.endpoints_of.update(ENDPOINTS)
        yield network


def with_target(slot, status):
    entries = roster(*(entry(n + 1) for n in range(5)), entry(INDEX + 1, status=status))
    return replace(view_at(slot), entries=entries)


@pytest.mark.parametrize("status", [Status.ACTIVE, Status.LEFT])
async def test_a_target_that_has_left_is_asked_too(driver, network, tmp_path, status):
    """It stays until its last audit is over: a juror that does not ask it finds it hiding."""
    store = OpeningsStore(tmp_path / "target")
    store.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    async with memory_transport(network, f"peer-{INDEX}") as target:
        target.show(store)
        view = with_target(EARLY, status)
        found = await find_openings(driver.witness, view, known_case(), AUDIT.header)
        assert found == AUDIT.data


async def test_a_vote_survives_a_restart_and_is_revealed(driver):
    await begin(driver, case(AuditKind.PAYLOAD), EARLY)
    await see(driver, LATE)
    (duty,) = driver.audits.verdicts.duties()
    sealed = driver.audits.verdicts.find(duty)
    await driver.restart()
    revealing = case(AuditKind.PAYLOAD, AuditStage.CASE_REVEAL, SeatFlag.COMMITTED)
    await begin(driver, revealing, EARLY)
    assert len(driver.named("vote_revealed")) == 1
    assert sealed.salt in driver.last_data()
    assert len(driver.named("judged_case")) == 1


async def test_a_damaged_vote_reveals_nothing(driver):
    await begin(driver, case(AuditKind.PAYLOAD), EARLY)
    await see(driver, LATE)
    await driver.restart()
    (path,) = (driver.folder / "verdicts").iterdir()
    path.write_bytes(b"rubbish")
    driver.node.sent.clear()
    revealing = case(AuditKind.PAYLOAD, AuditStage.CASE_REVEAL, SeatFlag.COMMITTED)
    task = await begin(driver, revealing, EARLY)
    assert task.done()
    assert driver.node.sent == []
    assert driver.named("file_damaged")


@pytest.mark.parametrize("is_true", [True, False])
async def test_a_root_vote_is_compared_with_our_own_replay(driver, is_true):
    ours = b"w" * 32
    driver.store.save_weights(WeightState(ROUND, 0, ours, WEIGHTS))
    true = root_vote(RUN_ADDRESS, ROUND, audit_view().owner, ours)
    claimed = true if is_true else b"x" * 32
    await begin(driver, case(AuditKind.ROOT, root_vote=claimed), EARLY)
    (judged,) = driver.named("judged_case")
    assert judged["verdict"] == ("OK" if is_true else "MISMATCH")


@pytest.mark.parametrize(
    "audit",
    [
        case(AuditKind.PAYLOAD, flags=SeatFlag.COMMITTED),
        case(AuditKind.PAYLOAD, AuditStage.CASE_REVEAL),
        case(AuditKind.PAYLOAD, AuditStage.CASE_REVEAL, flags=BOTH),
        case(AuditKind.PAYLOAD, AuditStage.DECIDED),
    ],
)
async def test_a_juror_that_owes_nothing_sends_nothing(driver, audit):
    statement = vote(AuditKind.PAYLOAD, VerdictKind.OK)
    driver.audits.verdicts.seal_vote(statement, NO_SKETCH)
    await begin(driver, audit, EARLY)
    assert driver.node.sent == []


async def test_a_refused_vote_ends_with_its_window(driver):
    driver.node.failure = InsufficientFundsError("session", "1 lamport")
    driver.audits.verdicts.seal_vote(vote(AuditKind.PAYLOAD, VerdictKind.OK), NO_SKETCH)
    task = await begin(driver, case(AuditKind.PAYLOAD), EARLY)
    assert len(driver.node.sent) == 1
    await see(driver, END + 1)
    assert task.done()
