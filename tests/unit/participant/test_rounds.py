"""The task of rounds: a node that is away is waited for, however long it takes."""

from dataclasses import replace

import pytest
from support.audit_driver import AuditDriver, settle

from troth_client.network.errors import BarredError, ReplacedError
from troth_client.participant import rounds
from troth_client.participant.rounds import STRANGE_SLOTS, begin, run_rounds
from troth_coordinator.chain.errors import RpcTimeoutError

LONG = 100
AWAY = RpcTimeoutError("http://node", "nothing")


@pytest.fixture
async def driver(tmp_path, monkeypatch):
    one = AuditDriver(tmp_path, index=1)

    async def start_from_disk(_chain, _state, _view):
        one.events.emit("started")

    monkeypatch.setattr(rounds, "start_from_disk", start_from_disk)
    yield one
    await one.close()


async def start(driver, work):
    driver.node.read_failure = AWAY
    running = driver.start(work(driver.member))
    await settle()
    return running


def counts(driver):
    return [event["count"] for event in driver.named("chain_unreachable")]


async def pass_slots(driver, number):
    for _ in range(number):
        driver.node.view = replace(driver.node.view, slot=driver.node.view.slot + 1)
        await driver.pass_slot()


@pytest.mark.parametrize("work", [begin, run_rounds])
async def test_a_node_that_stays_away_ends_nothing(driver, work):
    running = await start(driver, work)
    await pass_slots(driver, LONG)
    assert not running.done()
    assert counts(driver) == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("work", [begin, run_rounds])
async def test_a_request_to_stop_is_heard_while_no_node_answers(driver, work):
    last = driver.node.view
    await driver.look(last)
    running = await start(driver, work)
    await pass_slots(driver, 3)
    driver.member.state.stop.set()
    await pass_slots(driver, 2)
    assert running.done()
    if work is run_rounds:
        assert await running == last
    else:
        with pytest.raises(RpcTimeoutError):
            await running


async def test_the_beginning_goes_on_when_the_node_is_back(driver):
    running = await start(driver, begin)
    await pass_slots(driver, 2)
    driver.node.read_failure = None
    await pass_slots(driver, 1)
    assert running.done()
    assert len(driver.named("started")) == 1


@pytest.mark.parametrize("error", [ReplacedError, BarredError])
async def test_views_that_take_our_place_away_end_us_only_when_they_go_on(
    driver, monkeypatch, error
):
    """A node that lags shows a time before we joined. Each doubt asks for a fresh view."""
    fresh, is_strange = [], [True]

    def check(_chain, _view):
        if is_strange[0]:
            raise error("our entry", "another owner", "")

    monkeypatch.setattr(rounds, "check_standing", check)
    monkeypatch.setattr(rounds, "has_left", lambda _chain, _view: True)
    monkeypatch.setattr(rounds, "owes", owes_something)
    monkeypatch.setattr(driver.chain.watch, "expect_change", lambda: fresh.append(None))
    driver.start(driver.chain.watch.follow())
    running = driver.start(run_rounds(driver.member))
    await settle()
    await pass_slots(driver, STRANGE_SLOTS - 2)
    assert not running.done()
    assert len(fresh) == STRANGE_SLOTS - 1
    is_strange[0] = False
    await pass_slots(driver, 2)
    is_strange[0] = True
    await pass_slots(driver, STRANGE_SLOTS - 1)
    assert not running.done()
    await pass_slots(driver, 3)
    with pytest.raises(error):
        await running


async def owes_something(_member, _view):
    return True
