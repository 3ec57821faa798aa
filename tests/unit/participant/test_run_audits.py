"""The task of audits: each duty in its own task, begun once, ended with the duty."""

import asyncio
import gc

import pytest
from support import opened
from support.audit_driver import (
    AUDIT,
    FROZEN_AT,
    INDEX,
    ROOT,
    ROUND,
    SKETCH,
    AuditDriver,
    Holders,
    closed_round,
    complaints,
    settle,
    view_at,
)
from support.audit_views import audit_view, juror, seat
from support.views import PARAMS, RUN_ADDRESS

from troth_attestation import openings
from troth_attestation.header import encode, header_hash
from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_client.audit.drawn import sampled_payload
from troth_client.participant.audits import run_audits
from troth_client.runtime.base import end
from troth_client.runtime.files import DiskFullError
from troth_client.storage import Submission
from troth_coordinator.chain.errors import RpcTimeoutError
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, SeatFlag

WITNESS = 1
END = FROZEN_AT + PARAMS.verdict_commit_slots
AWAY = RpcTimeoutError("http://node", "nothing")
HIDDEN = (b"1" * 32, b"2" * 32)
BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path, index=WITNESS)
    one.save_weights()
    one.node.rounds = {ROUND: closed_round(cursor=700)}
    for target in (0, 2, 3, INDEX):
        one.store.save_peer(Submission(ROUND, target, encode(AUDIT.header), b"s" * 64, b"p"))
    yield one
    await one.close()


@pytest.fixture
async def trainer(tmp_path):
    """A participant whose payload is sampled."""
    one = AuditDriver(tmp_path)
    one.propose()
    yield one
    await one.close()


def seated(target=INDEX, flags=0, stage=AuditStage.COMMIT, **changes):
    """An audit in which the witness has a seat."""
    about = {
        "target": target,
        "seats": (seat(WITNESS, flags), *(seat(index) for index in (4, 6, 7, 8))),
        "openings_root": AUDIT.root,
        "header_hash": header_hash(AUDIT.header),
        "canonical_root": ROOT,
        "stage_end": END,
    }
    return audit_view(stage, **(about | changes))


async def begin(driver):
    """Start the task of audits; it acts on looks from now on."""
    task = driver.start(run_audits(driver.member))
    await settle()
    return task


def names():
    """Return the names of the tasks that are under way beside the test's."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    return sorted(task.get_name() for task in tasks)


class Gate:
    """Lets computations of gradients wait until the test opens it."""

    def __init__(self, driver):
        self.open = asyncio.Event()
        self.num_begun = 0
        self._function = driver.judge.gradient
        self._runtime = driver.runtime
        driver.runtime.compute = self.compute

    async def compute(self, function, *args):
        if any(getattr(each, "func", None) == self._function for each in args):
            self.num_begun += 1
            await self.open.wait()
        return function(*args)


async def test_what_waits_for_others_keeps_nobody_from_being_judged(driver):
    """Two targets post a root and serve nobody: an honest seat was silent on a third audit."""
    driver.holders = Holders(AUDIT.data, hidden=HIDDEN)
    await begin(driver)
    hidden = [seated(n + 2, openings_root=root) for n, root in enumerate(HIDDEN)]
    await driver.look(view_at(), *hidden, seated())
    (judged,) = driver.named("judged")
    assert judged["target"] == INDEX
    assert len(driver.named("verdict_committed")) == 1
    assert names().count("search") == 2


async def test_nothing_is_judged_anew_while_stored_weights_are_still_checked(driver):
    """A juror that judged a root by a damaged state on its disk would vote against the truth."""
    is_checked = []
    driver.holders = Holders(AUDIT.data)
    driver.start(run_audits(driver.member, lambda: bool(is_checked)))
    await settle()
    await driver.look(view_at(), seated())
    assert driver.named("judged") == []
    is_checked.append(True)
    await driver.look(view_at(), seated())
    assert len(driver.named("judged")) == 1


async def test_a_duty_is_begun_once_however_often_it_is_seen(driver):
    driver.holders = Holders()
    await begin(driver)
    for slot in range(FROZEN_AT + 1, FROZEN_AT + 5):
        await driver.look(view_at(slot), seated())
    assert driver.holders.num_searches == 1
    assert names() == ["audit", "driven", "search"]


async def test_nothing_is_begun_where_nothing_is_owed(driver):
    await begin(driver)
    others = tuple(seat(index) for index in (4, 6, 7, 8, 9))
    audits = (seated(seats=others), seated(0, BOTH), seated(2, stage=AuditStage.SETTLED))
    await driver.look(view_at(), *audits)
    assert names() == ["driven"]


@pytest.mark.parametrize(
    "later",
    [
        [],
        [seated(stage=AuditStage.SETTLED)],
        [seated(stage=AuditStage.ACCUSED)],
        [seated(stage=AuditStage.REVEAL)],
        [seated(stage=AuditStage.REVEAL, flags=BOTH)],
    ],
    ids=["closed", "settled", "accused", "commits-over", "revealed"],
)
async def test_a_duty_that_is_over_is_ended(driver, later):
    """Nobody may be kept busy, or keep others from their turn, by an audit that is over."""
    driver.holders = Holders()
    await begin(driver)
    await driver.look(view_at(), seated())
    assert "search" in names()
    driver.node.audits = later
    await driver.look(view_at(FROZEN_AT + 2, sequence=2))
    assert names() == ["driven"]


async def test_a_commit_window_that_ends_by_time_alone_ends_the_duty(driver):
    """The account still says Commit: nobody has acted on it."""
    driver.node.rounds = {}
    driver.holders = Holders()
    await begin(driver)
    await driver.look(view_at(), seated(0, header_hash=b"?" * 32))
    assert "audit" in names()
    await driver.look(view_at(END + 1))
    assert names() == ["driven"]


async def test_a_fork_that_draws_anew_begins_the_duty_anew(driver):
    driver.holders = Holders(hidden=HIDDEN)
    await begin(driver)
    for sequence, root in enumerate(HIDDEN, 1):
        audit = seated(openings_root=root)
        await driver.look(view_at(FROZEN_AT + sequence, sequence), audit)
        assert driver.holders.asked[-1].key == root
        assert names() == ["audit", "driven", "search"], "only one of them is under way"


async def test_a_node_that_is_away_for_a_send_is_reported_and_the_duty_begun_again(driver):
    driver.holders = Holders(AUDIT.data)
    driver.node.failure = AWAY
    running = await begin(driver)
    await driver.look(view_at(), seated())
    assert len(driver.node.sent) == 1
    driver.node.failure = None
    await driver.look(view_at(FROZEN_AT + 2))
    assert driver.named("chain_unreachable")
    assert len(driver.node.sent) == 2
    assert driver.judge.num_gradients == 1, "what was judged is on disk"
    assert not running.done()


async def test_a_reveal_that_is_confirmed_after_its_duty_is_over_is_reported(driver):
    """A look shows the reveal before the node confirms it; its event and fee count all the same."""
    about = (RUN_ADDRESS, ROUND, INDEX, WITNESS, VerdictKind.OK, AUDIT.root, sketch_hash(SKETCH))
    driver.audits.verdicts.seal_verdict(Statement(*about), SKETCH)
    driver.node.hangs = asyncio.Event()
    await begin(driver)
    await driver.look(view_at(), seated(flags=SeatFlag.COMMITTED, stage=AuditStage.REVEAL))
    assert names() == ["audit", "driven", "send"]
    shown = seated(flags=BOTH, stage=AuditStage.REVEAL)
    await driver.look(view_at(FROZEN_AT + 3, sequence=2), shown)
    assert names() == ["driven", "send"], "the duty is over, its send is not"
    driver.node.hangs.set()
    await settle()
    (revealed,) = driver.named("verdict_revealed")
    assert revealed["fee"] == 5_000
    assert names() == ["driven"]


async def test_a_node_that_is_away_for_a_look_at_the_audits_is_reported(driver):
    driver.holders = Holders(AUDIT.data)
    running = await begin(driver)
    read = driver.node.find_audits

    async def away(_run):
        raise AWAY

    driver.node.find_audits = away
    await driver.look(view_at(), seated())
    assert driver.named("chain_unreachable")
    assert not running.done()
    driver.node.find_audits = read
    await driver.look(view_at(FROZEN_AT + 2))
    assert len(driver.named("verdict_committed")) == 1


async def test_an_error_that_is_none_of_the_nodes_ends_the_task_and_all_duties(driver):
    driver.holders = Holders(AUDIT.data, hidden=HIDDEN)
    driver.judge.failure = OSError("disk full")
    running = await begin(driver)
    with complaints() as found:
        await driver.look(view_at(), seated(), seated(2, openings_root=HIDDEN[0]))
        await driver.look(view_at(FROZEN_AT + 2))
        with pytest.raises(OSError, match="disk full"):
            await running
        assert names() == []
        gc.collect()
        await settle()
    assert found == []


async def test_recomputations_take_turns(driver):
    """Two at once would each take twice as long, and both be late."""
    gate = Gate(driver)
    driver.holders = Holders(AUDIT.data, AUDIT.data)
    await begin(driver)
    await driver.look(view_at(), seated(2), seated())
    assert gate.num_begun == 1
    gate.open.set()
    await settle()
    assert gate.num_begun == 2
    assert len(driver.named("verdict_committed")) == 2


async def test_the_window_that_ends_first_has_the_first_turn(driver):
    gate = Gate(driver)
    gate.open.set()
    driver.holders = Holders(*[AUDIT.data] * 3)
    await begin(driver)
    ends = {2: END + 9, 3: END, INDEX: END + 5}
    await driver.look(view_at(), *(seated(n, stage_end=end) for n, end in ends.items()))
    assert [one["target"] for one in driver.named("judged")] == [3, INDEX, 2]


async def test_a_duty_that_is_ended_gives_its_turn_to_the_next_when_its_thread_has_ended(driver):
    gate = Gate(driver)
    driver.holders = Holders(AUDIT.data, AUDIT.data)
    await begin(driver)
    await driver.look(view_at(), seated(2, stage_end=END - 1), seated())
    assert gate.num_begun == 1
    driver.node.audits = [seated()]
    await driver.look(view_at(FROZEN_AT + 2, sequence=2))
    assert gate.num_begun == 1
    gate.open.set()
    await settle()
    assert gate.num_begun == 2
    assert [one["target"] for one in driver.named("judged")] == [INDEX]


async def test_a_seat_and_a_juror_of_one_participant_are_two_duties(driver):
    driver.holders = Holders(hidden=HIDDEN)
    await begin(driver)
    case = audit_view(
        AuditStage.CASE_COMMIT,
        kind=AuditKind.PAYLOAD,
        target=0,
        jurors=(juror(WITNESS),),
        num_jurors=1,
        header_hash=header_hash(AUDIT.header),
        stage_end=END,
    )
    await driver.look(view_at(), seated(), case)
    assert [one["kind"] for one in driver.named("judged_case")] == ["PAYLOAD"]
    assert len(driver.named("vote_committed")) == 1
    assert names().count("audit") == 2


async def test_closing_ends_what_is_under_way_and_nobody_complains(driver):
    driver.holders = Holders(hidden=HIDDEN)
    running = await begin(driver)
    with complaints() as found:
        await driver.look(view_at(), seated(), seated(2, openings_root=HIDDEN[0]))
        await end(running)
        assert names() == []
        gc.collect()
        await settle()
    assert found == []


@pytest.mark.filterwarnings("error")
async def test_a_duty_that_is_ended_before_it_begins_leaves_nothing_behind(driver):
    """A coroutine that nobody awaits is reported on the terminal of whoever presses Ctrl-C."""
    running = await begin(driver)
    driver.node.audits, driver.node.view = [seated()], view_at()
    await driver.chain.watch.look()
    await end(running)
    gc.collect()
    assert names() == []


def posted_root(driver):
    return driver.last_data()[-32:]


async def test_our_own_openings_are_shown_while_other_duties_wait(trainer):
    await begin(trainer)
    await trainer.look(view_at())
    assert posted_root(trainer) == AUDIT.root
    assert trainer.audits.openings.shown(AUDIT.root) == AUDIT.data


async def test_openings_that_landed_are_not_posted_again_at_an_older_look(trainer):
    """The look had begun when the post landed: a second one would pay a fee for a refusal."""
    await begin(trainer)
    for _ in range(2):
        await trainer.look(view_at())
    assert len(trainer.node.sent) == 1


async def test_a_fork_that_draws_the_seed_anew_gets_the_tiles_that_it_draws(trainer):
    await begin(trainer)
    await trainer.look(view_at())
    other = b"t" * 32
    trainer.node.rounds[ROUND] = closed_round(seed=other)
    await trainer.look(view_at(FROZEN_AT + 2, sequence=2))
    drawn = sampled_payload(other, AUDIT.header, opened.NUM_TILES, opened.NUM_DRAWN)
    expected = openings.openings_root(openings.encode(drawn, AUDIT.after, AUDIT.before))
    assert posted_root(trainer) == expected


async def test_a_full_disk_ends_the_task_with_its_name(trainer, monkeypatch):
    def full(*_args, **_kwargs):
        raise DiskFullError("room for 1 MiB", "no space left", "Free some.")

    monkeypatch.setattr("troth_client.state.openings_store.atomic_write", full)
    running = await begin(trainer)
    await trainer.look(view_at())
    await trainer.look(view_at(FROZEN_AT + 2))
    with pytest.raises(DiskFullError):
        await running


async def test_equal_looks_give_equal_orders(driver):
    """Equal seeds give equal runs: the order of duties depends on nothing but the chain."""
    driver.holders = Holders(*[AUDIT.data] * 3)
    await begin(driver)
    audits = [seated(target) for target in (3, INDEX, 2)]
    await driver.look(view_at(), *audits)
    first = [one["target"] for one in driver.named("judged")]
    assert first == [3, INDEX, 2], "equal ends: as the chain lists them"
