"""A seat: says the same again after a restart, judges anew after a fork, knows when it is late."""

import asyncio
from dataclasses import replace

import pytest
from support.audit_driver import (
    AUDIT,
    INDEX,
    ROUND,
    SKETCH,
    AuditDriver,
    Holders,
    settle,
    view_at,
)
from support.seated import EARLY, END, LATE, SEATS, WITNESS, begin, ready, shown
from support.views import RUN_ADDRESS

from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Reason, Statement, Verdict, VerdictKind
from troth_client.audit.witness import recall
from troth_client.participant.restarting import tell_pending
from troth_client.state.audit_tracker import PATIENCE_SLOTS
from troth_coordinator.chain.errors import InsufficientFundsError
from troth_coordinator.rules.audit_view import AuditStage, SeatFlag

BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path, index=WITNESS)
    yield one
    await one.close()


def seal(driver, kind=VerdictKind.OK, evidence=AUDIT.root):
    about = (RUN_ADDRESS, ROUND, INDEX, WITNESS, kind, evidence, sketch_hash(SKETCH))
    return driver.audits.verdicts.seal_verdict(Statement(*about), SKETCH)


async def see(driver, slot, audit=None, sequence=1):
    """A slot later: the searches try again, then a look at the chain."""
    await driver.pass_slot()
    await driver.see(view_at(slot, sequence=sequence), *([audit] if audit else []))


async def test_a_seat_fetches_recomputes_commits_and_reveals_in_one_pass(driver):
    ready(driver, AUDIT.data)
    task = await begin(driver, shown())
    (judged,) = driver.named("judged")
    assert judged["verdict"] == "OK"
    (duty,) = driver.audits.verdicts.duties()
    statement = driver.audits.verdicts.find(duty)
    assert driver.last_data().endswith(statement.commit())
    await see(driver, EARLY + 1, shown(flags=SeatFlag.COMMITTED), sequence=2)
    assert len(driver.node.sent) == 1, "others may still commit"
    await see(driver, END + 1)
    assert statement.salt in driver.last_data()
    assert not task.done()
    await see(driver, END + 2, shown(AuditStage.REVEAL, BOTH, stage_end=END + 9), sequence=3)
    assert task.done()
    assert len(driver.node.sent) == 2
    assert driver.judge.num_gradients == 1


async def test_what_is_judged_is_on_disk_before_its_hash_is_sent(driver):
    ready(driver, AUDIT.data)
    kept = []
    take = driver.node.send

    async def send(instructions, signers, watch=None):
        kept.append(list(driver.audits.verdicts.duties()))
        return await take(instructions, signers)

    driver.node.send = send
    await begin(driver, shown())
    assert [len(duties) for duties in kept] == [1]


async def test_after_a_kill_before_the_commit_the_same_is_committed(driver):
    statement = seal(driver)
    await driver.restart()
    await begin(driver, shown())
    assert driver.last_data().endswith(statement.commit())
    assert driver.named("judged") == []


async def test_after_a_kill_between_commit_and_reveal_the_verdict_is_revealed(driver):
    """A seat that cannot reveal what it committed pays a tenth of its stake."""
    statement = seal(driver)
    await begin(driver, shown())
    await driver.restart()
    audit = shown(AuditStage.REVEAL, SeatFlag.COMMITTED)
    await begin(driver, audit)
    assert statement.salt in driver.last_data()
    assert len(driver.named("verdict_revealed")) == 1


async def test_a_restart_while_others_commit_waits_for_the_reveal(driver):
    statement = seal(driver)
    task = await begin(driver, shown(flags=SeatFlag.COMMITTED))
    assert driver.node.sent == []
    assert not task.done()
    await see(driver, END + 1)
    assert statement.salt in driver.last_data()


async def test_a_restart_beside_a_node_that_lags_keeps_what_was_committed_to(driver):
    """It shows the audit before its root was posted; hiding a commit is the dearest fault."""
    statement = seal(driver)
    await driver.restart()
    driver.start(tell_pending(driver.witness))
    await settle()
    await driver.look(view_at(EARLY), shown(AuditStage.OPENINGS, openings_root=bytes(32)))
    assert driver.node.sent == []
    revealing = shown(AuditStage.REVEAL, SeatFlag.COMMITTED, stage_end=END + 9)
    await driver.look(view_at(END + 1, sequence=2), revealing)
    assert statement.salt in driver.last_data()


def test_what_is_committed_on_chain_is_never_forgotten(driver):
    """Also where the openings are others now: what is on chain must be revealed."""
    statement = seal(driver, evidence=b"e" * 32)
    audit = shown(AuditStage.REVEAL, SeatFlag.COMMITTED)
    assert recall(driver.witness, audit) == statement


def test_what_speaks_of_other_openings_is_judged_anew(driver):
    """A fork drew the seed anew, and our commit was on the fork that lost."""
    seal(driver, VerdictKind.UNAVAILABLE, b"e" * 32)
    assert recall(driver.witness, shown()) is None
    again = seal(driver)
    assert recall(driver.witness, shown()) == again
    assert again.kind is VerdictKind.OK


async def test_a_fork_that_draws_anew_makes_the_seat_judge_what_is_drawn_now(driver):
    ready(driver, AUDIT.data)
    seal(driver, VerdictKind.UNAVAILABLE, b"e" * 32)
    await begin(driver, shown())
    (duty,) = driver.audits.verdicts.duties()
    statement = driver.audits.verdicts.find(duty)
    assert statement.kind is VerdictKind.OK
    assert statement.evidence == AUDIT.root
    assert driver.last_data().endswith(statement.commit())


async def test_a_verdict_on_other_openings_is_not_committed_when_the_fork_comes_first(driver):
    """The task of rounds may read the fork before the task of audits has ended the seat."""
    driver.node.failure = InsufficientFundsError("session", "1 lamport")
    seal(driver)
    await begin(driver, shown())
    driver.node.failure = None
    driver.node.sent.clear()
    later = EARLY + PATIENCE_SLOTS + 1
    await see(driver, later, shown(openings_root=b"e" * 32), sequence=2)
    assert driver.node.sent == []


async def test_a_commit_that_a_fork_took_back_is_sent_again_by_the_next_pass(driver):
    statement = seal(driver)
    task = await begin(driver, shown(flags=SeatFlag.COMMITTED))
    await see(driver, EARLY + 1, shown(), sequence=2)
    assert task.done(), "its duty is to commit again: the task of audits begins it anew"
    await begin(driver, shown(), EARLY + 2)
    assert driver.last_data().endswith(statement.commit())


@pytest.mark.parametrize("damage", [b"", b"rubbish"])
async def test_a_damaged_entry_is_reported_and_reveals_nothing(driver, damage):
    """Another finding than the committed one would only be refused, and a fee paid."""
    ready(driver, AUDIT.data)
    seal(driver)
    (path,) = (driver.folder / "verdicts").iterdir()
    path.write_bytes(damage)
    task = await begin(driver, shown(AuditStage.REVEAL, SeatFlag.COMMITTED))
    assert task.done()
    assert driver.node.sent == []
    assert driver.named("file_damaged")
    assert driver.judge.num_gradients == 0


@pytest.mark.parametrize(
    "audit",
    [
        replace(shown(), seats=SEATS[1:] + SEATS[:1]),
        shown(flags=BOTH),
        shown(AuditStage.OPENINGS),
        shown(AuditStage.SETTLED),
        shown(AuditStage.REVEAL),
        shown(AuditStage.REVEAL, BOTH),
    ],
)
async def test_a_seat_that_owes_nothing_sends_nothing(driver, audit):
    seal(driver)
    await begin(driver, audit)
    assert driver.node.sent == []


async def test_a_seat_whose_openings_never_come_says_so_in_time(driver):
    """The target took the second call and has not answered yet; the window is nearly over."""
    driver.save_payload()
    driver.holders = Holders(None)
    await begin(driver, shown())
    await see(driver, LATE - 1)
    assert driver.holders.num_searches == 2, "the second one hangs"
    assert driver.node.sent == []
    await see(driver, LATE)
    (judged,) = driver.named("judged")
    assert judged["verdict"] == "UNAVAILABLE"
    assert judged["seconds"] is None
    (duty,) = driver.audits.verdicts.duties()
    sealed = driver.audits.verdicts.find(duty)
    assert not any(sealed.sketch), "nothing was recomputed"
    about = (RUN_ADDRESS, ROUND, INDEX, WITNESS, VerdictKind.UNAVAILABLE, AUDIT.root)
    statement = Statement(*about, sketch_hash(sealed.sketch))
    assert driver.last_data().endswith(statement.commit(sealed.salt))


async def test_a_seat_whose_first_search_never_ends_says_so_in_time(driver):
    """Many holders that answer a byte a second: silence would cost it two fees."""
    driver.save_payload()
    driver.holders = Holders()
    await begin(driver, shown())
    await see(driver, LATE - 1)
    assert driver.named("judged") == []
    await see(driver, LATE)
    assert [one["verdict"] for one in driver.named("judged")] == ["UNAVAILABLE"]


async def test_a_search_that_is_given_up_is_ended(driver):
    """A holder that never answers would otherwise keep a connection for ever."""
    driver.save_payload()
    driver.holders = Holders(None)
    await begin(driver, shown())
    await see(driver, LATE - 1)
    assert "search" in {task.get_name() for task in asyncio.all_tasks()}
    await see(driver, LATE)
    assert "search" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_a_seat_that_comes_late_asks_before_it_says_that_nothing_was_served(driver):
    """It trained, or was restarted; its word may bring the target before a jury."""
    driver.save_payload()
    driver.holders = Holders()
    await begin(driver, shown(), LATE)
    await see(driver, LATE + 1)
    assert driver.named("judged") == [], "its first search has not come to anything"
    driver.holders.answers.append(None)
    await driver.restart()
    driver.holders = Holders(None)
    await begin(driver, shown(), LATE + 1)
    assert driver.named("judged") == []
    await see(driver, LATE + 2)
    assert [one["verdict"] for one in driver.named("judged")] == ["UNAVAILABLE"]


async def test_openings_that_come_in_the_last_third_are_judged(driver):
    ready(driver, None, AUDIT.data)
    await begin(driver, shown())
    await see(driver, LATE - 1)
    assert [one["verdict"] for one in driver.named("judged")] == ["OK"]


async def test_a_payload_that_only_we_lack_is_not_held_against_its_target(driver):
    """Three such seats would fine somebody who serves all that it owes."""
    driver.node.rounds = {}
    driver.holders = Holders()
    await begin(driver, shown())
    for slot in (LATE, LATE + 1):
        await see(driver, slot)
    assert driver.named("judged") == []
    assert driver.node.sent == []


async def test_a_seat_that_cannot_recompute_says_nothing_and_reports_why(driver):
    """Another seat is drawn, and no honest work is doubted."""
    driver.save_payload()
    driver.holders = Holders(AUDIT.data)
    await begin(driver, shown())
    for slot in (EARLY + 1, LATE, LATE + 1):
        await see(driver, slot)
    assert driver.named("judged") == []
    assert driver.node.sent == []
    assert {reported["round"] for reported in driver.named("judging_delayed")} == {ROUND}


async def test_weights_that_are_replayed_meanwhile_are_used(driver):
    """After a restart the replica is replayed first; the seat waits and then judges."""
    driver.save_payload()
    driver.holders = Holders(AUDIT.data)
    await begin(driver, shown())
    assert driver.named("judged") == []
    driver.save_weights()
    await see(driver, EARLY + 1)
    assert [one["verdict"] for one in driver.named("judged")] == ["OK"]
    assert driver.holders.num_searches == 1, "the evidence is here already"


async def test_a_refused_commit_is_not_sent_again_for_some_slots(driver):
    seal(driver)
    driver.node.failure = InsufficientFundsError("session", "1 lamport")
    await begin(driver, shown())
    for later in range(1, PATIENCE_SLOTS):
        await see(driver, EARLY + later)
    assert len(driver.node.sent) == 1
    driver.node.failure = None
    await see(driver, EARLY + PATIENCE_SLOTS)
    assert len(driver.node.sent) == 2
    assert len(driver.named("verdict_committed")) == 1


async def test_a_look_from_before_the_commit_landed_does_not_send_it_again(driver):
    """The node took the commit in this slot; a look that had begun earlier does not show it."""
    seal(driver)
    await begin(driver, shown())
    await driver.see(view_at(EARLY))
    assert len(driver.node.sent) == 1
    await see(driver, EARLY + 1)
    assert len(driver.node.sent) == 2, "a later look without it: a fork took it back"


async def test_a_window_that_ended_without_a_commit_ends_the_seat(driver):
    seal(driver)
    driver.node.failure = InsufficientFundsError("session", "1 lamport")
    task = await begin(driver, shown())
    await see(driver, END + 1)
    assert task.done()
    assert len(driver.node.sent) == 1


async def test_an_audit_that_is_gone_ends_the_seat(driver):
    seal(driver)
    task = await begin(driver, shown(flags=SeatFlag.COMMITTED))
    driver.node.audits = []
    await see(driver, EARLY + 1, sequence=2)
    assert task.done()


async def test_a_pause_stops_the_window(driver):
    driver.save_payload()
    driver.holders = Holders(None, None, None)
    await begin(driver, shown())
    await driver.pass_slot()
    await driver.see(view_at(LATE + 1, paused_at_slot=EARLY + 1))
    assert driver.named("judged") == [], "the run stands: the window is not nearly over"


async def test_what_judging_raises_ends_the_seat_and_is_not_swallowed(driver):
    ready(driver, AUDIT.data)
    driver.judge.failure = OSError("disk full")
    task = await begin(driver, shown())
    with pytest.raises(OSError, match="disk full"):
        await task
    async with driver.audits.turn.take(driver.runtime):
        assert driver.slots == 0, "nobody holds the turn: it is had at once"


async def test_the_seconds_of_a_verdict_are_those_of_recomputing_and_judging(driver, monkeypatch):
    """Operators compare them with the seconds of training: the gradient is most of the cost."""
    ready(driver, AUDIT.data)
    now = [0.0]
    monkeypatch.setattr(driver.runtime, "seconds", lambda: now[0])
    honest = driver.judge.gradient

    def slow(weights, batch):
        now[0] += 7
        return honest(weights, batch)

    driver.judge.gradient = slow
    await begin(driver, shown())
    (judged,) = driver.named("judged")
    assert judged["seconds"] == 7.0


async def test_a_mismatch_is_committed_with_its_sketch(driver):
    ready(driver, AUDIT.data)
    driver.judge.verdict = Verdict(VerdictKind.MISMATCH, Reason.WORK_DIFFERS)
    await begin(driver, shown())
    (duty,) = driver.audits.verdicts.duties()
    sealed = driver.audits.verdicts.find(duty)
    assert sealed.kind is VerdictKind.MISMATCH
    assert sealed.sketch == SKETCH
