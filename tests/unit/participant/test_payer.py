"""A participant does not give up because of one false slot, or of a balance that one node shows."""

from support.audit_driver import view_at

from troth_client.network.errors import FeesSpentError
from troth_client.network.fee_funds import UNSPENDABLE_LAMPORTS
from troth_client.participant.payer import DRY_SLOTS, IDLE_SLOTS, LOOK_SLOTS, Payer

SLOT = 1_000


async def watched(driver):
    """Start with a key that can pay; return the task."""
    task = driver.start(Payer(driver.member, None).watch())
    await driver.look(view_at(SLOT))
    await driver.look(view_at(SLOT))
    assert driver.chain.funds.spendable
    return task


async def test_a_key_that_a_node_does_not_show_any_more_is_no_empty_key(driver):
    task = await watched(driver)
    driver.node.lamports = 0
    for number in range(20):
        await driver.look(view_at(SLOT + number * LOOK_SLOTS, round_=20 + number))
    assert not task.done()
    assert driver.chain.funds.spendable > 0
    assert driver.named("fees_spent") == []
    assert driver.named("chain_unreachable")


async def test_one_false_slot_gives_nothing_up(driver):
    task = await watched(driver)
    driver.node.lamports = UNSPENDABLE_LAMPORTS
    await driver.look(view_at(SLOT + 1, round_=20))
    await driver.look(view_at(10**18, round_=21))
    assert not task.done()
    assert driver.named("fees_spent") == []
    for number in range(1, 6):
        await driver.look(view_at(SLOT + number * DRY_SLOTS, round_=21 + number))
    assert isinstance(task.exception(), FeesSpentError)


async def test_the_balance_is_read_once_a_round(driver):
    await watched(driver)
    before = len(driver.named("payer"))
    for number in range(1, IDLE_SLOTS // LOOK_SLOTS):
        await driver.look(view_at(SLOT + number * LOOK_SLOTS))
    assert len(driver.named("payer")) == before
    await driver.look(view_at(SLOT + IDLE_SLOTS))
    await driver.look(view_at(SLOT + IDLE_SLOTS, round_=20))
    assert len(driver.named("payer")) == before + 2
