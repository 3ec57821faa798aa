"""The supervisor: its siblings live and end together; a stop reports what is still owed."""

import asyncio

import pytest
from support.audit_driver import AuditDriver, complaints, settle, view_at
from support.audit_views import audit_view, seat

from troth_client.participant import supervisor
from troth_client.participant.supervisor import Supervisor
from troth_client.runtime.base import end
from troth_coordinator.chain.errors import RpcTimeoutError

WITNESS = 1


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path, index=WITNESS)
    yield one
    await one.close()


class Parts:
    """Records what the tasks of a participant do in a test, and which of them were ended."""

    def __init__(self, monkeypatch):
        self.ended = []
        self.failing = {}
        self.finished = asyncio.Event()
        for name in ("begin", "run_rounds", "run_audits", "keep_house"):
            monkeypatch.setattr(supervisor, name, self.part(name))

    def part(self, name):
        async def work(member, *_):
            if name == "begin":
                await member.audits.tracker.refresh(await member.chain.look())
            try:
                while not (name == "begin" or (name == "run_rounds" and self.finished.is_set())):
                    if name in self.failing:
                        raise self.failing[name]
                    await member.chain.watch.next()
            except asyncio.CancelledError:
                self.ended.append(name)
                raise
            if name in self.failing:
                raise self.failing[name]
            return await member.chain.look()

        return work


@pytest.fixture
def parts(monkeypatch):
    return Parts(monkeypatch)


async def begin(driver):
    task = driver.start(Supervisor(driver.member).run())
    await settle()
    return task


async def pass_slots(driver, number=2):
    for _ in range(number):
        await driver.pass_slot()


def num_tasks():
    return len(asyncio.all_tasks()) - 1


async def test_the_end_of_the_rounds_ends_all_and_returns_the_last_view(driver, parts):
    running = await begin(driver)
    await pass_slots(driver)
    assert not running.done()
    parts.finished.set()
    driver.node.view = view_at(2_000)
    await pass_slots(driver)
    assert (await running).slot == 2_000
    assert sorted(parts.ended) == ["keep_house", "run_audits"]
    assert num_tasks() == 0
    assert driver.named("owed") == []


@pytest.mark.parametrize("name", ["run_rounds", "run_audits", "keep_house"])
async def test_an_error_of_one_task_ends_all_with_that_error(driver, parts, name):
    """A participant whose audits are dead would go on training, and pay for its silence."""
    running = await begin(driver)
    await pass_slots(driver)
    with complaints() as found:
        parts.failing[name] = OSError("disk full")
        await pass_slots(driver)
        with pytest.raises(OSError, match="disk full"):
            await running
        await settle()
    others = {"run_rounds", "run_audits", "keep_house"} - {name}
    assert set(parts.ended) == others
    assert num_tasks() == 0
    assert found == []


async def test_an_error_at_the_beginning_starts_no_round(driver, parts):
    parts.failing["begin"] = OSError("disk full")
    running = await begin(driver)
    with pytest.raises(OSError, match="disk full"):
        await running
    assert parts.ended == ["run_audits"], "opening sets cannot wait for the beginning"
    assert num_tasks() == 0


async def test_a_node_that_stays_away_ends_nothing(driver, parts):
    running = await begin(driver)
    await pass_slots(driver)
    driver.node.read_failure = RpcTimeoutError("http://node", "nothing")
    await pass_slots(driver, 100)
    assert not running.done()
    driver.node.read_failure = None
    parts.finished.set()
    await pass_slots(driver)
    assert running.done()
    assert num_tasks() == 0


async def test_a_supervisor_that_is_cancelled_leaves_no_task_behind(driver, parts):
    running = await begin(driver)
    await pass_slots(driver)
    await end(running)
    assert sorted(parts.ended) == ["keep_house", "run_audits", "run_rounds"]
    assert num_tasks() == 0


async def test_a_participant_that_stops_reports_what_audits_still_wait_for(driver, parts):
    seats = tuple(seat(index) for index in (WITNESS, 2, 3, 4, 0))
    driver.node.audits = [audit_view(seats=seats)]
    running = await begin(driver)
    driver.member.state.stop.set()
    parts.finished.set()
    await pass_slots(driver)
    assert running.done()
    (owed,) = driver.named("owed")
    assert owed["what"] == "commit"
    assert owed["round"] == 9
    assert owed["lamports"] > 0


@pytest.fixture
async def confirmed(driver, parts, monkeypatch):
    """A send of housekeeping that the node has taken and confirms when this future is done."""
    confirmed = asyncio.get_running_loop().create_future()

    async def send():
        await driver.runtime.wait_for_others(confirmed)
        driver.events.emit("cranked", fee=5_000)

    async def keep_house(member):
        await member.chain.finish(send())

    monkeypatch.setattr(supervisor, "keep_house", keep_house)
    return confirmed


async def test_at_a_normal_end_the_sends_under_way_are_awaited(driver, parts, confirmed):
    """The last reveals of a run landed, and their events and fees were lost with the process."""
    running = await begin(driver)
    await pass_slots(driver)
    parts.finished.set()
    await pass_slots(driver)
    assert not running.done()
    assert parts.ended == ["run_audits"], "nothing new is begun meanwhile"
    confirmed.set_result(None)
    await settle()
    assert running.done()
    assert [one["fee"] for one in driver.named("cranked")] == [5_000]
    assert num_tasks() == 0


async def test_an_error_waits_for_no_send(driver, parts, confirmed):
    """A node that never answers must not hide why the participant ended."""
    running = await begin(driver)
    await pass_slots(driver)
    parts.failing["run_rounds"] = OSError("disk full")
    await pass_slots(driver)
    with pytest.raises(OSError, match="disk full"):
        await running
    assert num_tasks() == 0


async def test_a_supervisor_that_is_cancelled_waits_for_no_send(driver, parts, confirmed):
    running = await begin(driver)
    await pass_slots(driver)
    await end(running)
    assert num_tasks() == 0


async def test_slots_pass_while_all_tasks_wait(driver, parts):
    """The supervisor and its siblings only listen: none of them holds the slot."""
    await begin(driver)
    before = driver.node.num_looks
    await pass_slots(driver, 5)
    assert driver.node.num_looks == before + 5
