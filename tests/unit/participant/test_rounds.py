"""The task of rounds: a node that is away is waited for, but not for ever."""

import pytest
from support.audit_driver import AuditDriver, settle

from troth_client.network.watch import MAX_FAILURES
from troth_client.participant import rounds
from troth_client.participant.rounds import begin, run_rounds
from troth_coordinator.chain.errors import RpcTimeoutError

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
        await driver.pass_slot()


@pytest.mark.parametrize("work", [begin, run_rounds])
async def test_a_node_that_stays_away_ends_the_rounds_with_its_own_error(driver, work):
    running = await start(driver, work)
    await pass_slots(driver, MAX_FAILURES - 1)
    assert not running.done()
    assert counts(driver) == list(range(1, MAX_FAILURES + 1))
    await pass_slots(driver, 1)
    with pytest.raises(RpcTimeoutError):
        await running


async def test_the_beginning_goes_on_when_the_node_is_back(driver):
    running = await start(driver, begin)
    await pass_slots(driver, 2)
    driver.node.read_failure = None
    await pass_slots(driver, 1)
    assert running.done()
    assert len(driver.named("started")) == 1


async def test_a_look_that_succeeds_renews_the_patience_of_the_rounds(driver, monkeypatch):
    """The node is there, though it refuses something else: a long read, for example."""

    async def owes(_member, _view):
        raise AWAY

    monkeypatch.setattr(rounds, "check_standing", lambda _chain, _view: None)
    monkeypatch.setattr(rounds, "has_left", lambda _chain, _view: True)
    monkeypatch.setattr(rounds, "owes", owes)
    running = await start(driver, run_rounds)
    await pass_slots(driver, MAX_FAILURES - 1)
    driver.node.read_failure = None
    await pass_slots(driver, 1)
    driver.node.read_failure = AWAY
    await pass_slots(driver, MAX_FAILURES - 1)
    assert not running.done()
    row = list(range(1, MAX_FAILURES + 1))
    assert counts(driver) == row + row
