"""A session key that runs dry while its participant has duties. Threat T61.

The participant keeps money for its reveals and for leaving, leaves by the protocol's own way, and
ends with a message. It loses no stake, and pays no fine.
"""

import asyncio

import pytest
from solders.account import Account
from solders.system_program import ID as SYSTEM_PROGRAM
from solders.system_program import TransferParams, transfer
from support.event_fields import number
from support.fields import assert_fields
from support.runs import (
    AUDITED,
    NO_AUDITS,
    assert_finished,
    events_of,
    member,
    start_members,
    until,
    until_round,
)

from troth_client.network.errors import FeesSpentError
from troth_client.network.fee_funds import UNSPENDABLE_LAMPORTS
from troth_coordinator.rules.view import EntryFlag, Status

NAMES = ("ada", "bob", "cyd", "dan")
FEE = 5_000


async def drain(run, key, lamports):
    """Leave so many spendable lamports in an account."""
    left = UNSPENDABLE_LAMPORTS + lamports
    rest = run.balance(key.pubkey()) - left - FEE
    to = run.authority.pubkey()
    moved = transfer(TransferParams(from_pubkey=key.pubkey(), to_pubkey=to, lamports=rest))
    await run.client.send([moved], [key])


def keep_poor(run, address):
    """Take away at once what comes in from now on: rent of audits that are closed."""
    least = [run.balance(address)]

    def on_slot(_slot):
        least[0] = min(least[0], run.balance(address))
        if run.balance(address) > least[0]:
            run.chain.accounts.set(address, Account(least[0], b"", SYSTEM_PROGRAM))

    run.on_slot.append(on_slot)


async def outcomes(run):
    return await asyncio.gather(*(m.task for m in run.members), return_exceptions=True)


def assert_only_dan_ended(run, ends):
    assert not any(isinstance(end, BaseException) for end in ends[:3]), ends
    assert isinstance(ends[3], FeesSpentError)


@pytest.mark.long(reason="a whole run with audits after which all that was owed is done")
async def test_a_payer_that_runs_dry_leaves_without_a_fine(run_factory):
    """Audits are open: what was committed to is revealed, and the stake unbonds whole."""
    run = await run_factory.create(30, **AUDITED)
    await start_members(run, NAMES)
    view = await until_round(run, 4)
    dan = member(run, "dan")
    await drain(run, dan.session, 24 * FEE)
    keep_poor(run, dan.session.pubkey())
    stake = view.entries[dan.index].stake
    ends = await outcomes(run)
    assert_only_dan_ended(run, ends)
    after = (await assert_finished(run)).entries[dan.index]
    assert after.stake + after.unbonding == stake
    assert_fields(after, status=Status.LEFT, seat_faults=0, openings_step=0)
    assert [one["rounds_left"] for one in events_of(run, "dan", "fees_low")][-1] == 0
    assert len(events_of(run, "dan", "leaving")) == 1
    committed = {(e["round"], e["target"]) for e in events_of(run, "dan", "verdict_committed")}
    revealed = {(e["round"], e["target"]) for e in events_of(run, "dan", "verdict_revealed")}
    assert committed == revealed
    assert "at no cost" in str(ends[3])


@pytest.mark.long(reason="a second whole run with an empty purse")
async def test_the_session_pays_for_leaving_when_the_owner_cannot(run_factory):
    run = await run_factory.create(16, **NO_AUDITS)
    await start_members(run, NAMES)
    await until_round(run, 2)
    dan = member(run, "dan")
    await drain(run, dan.owner, 0)
    await drain(run, dan.session, 6 * FEE)
    assert_only_dan_ended(run, await outcomes(run))
    (left,) = events_of(run, "dan", "leaving")
    assert left["payer"] == str(dan.session.pubkey())
    assert number(left, "fee") == 2 * FEE
    after = (await assert_finished(run)).entries[dan.index]
    assert after.status == Status.LEFT


@pytest.mark.long(reason="two lives of a member without money")
async def test_without_a_lamport_anywhere_it_rests_and_a_restart_with_money_goes_on(run_factory):
    """It ends with a message, not in a loop of crashes. A restart without money does the same."""
    run = await run_factory.create(24, **NO_AUDITS)
    await start_members(run, NAMES)
    await until_round(run, 2)
    dan = member(run, "dan")
    await drain(run, dan.owner, 0)
    await drain(run, dan.session, 0)
    with pytest.raises(FeesSpentError, match=r"The stake stays\. Send SOL"):
        await dan.task
    await run.start(dan)
    with pytest.raises(FeesSpentError):
        await dan.task
    run.chain.airdrop(dan.session.pubkey(), 10**9)
    await run.start(dan)
    await until(run, lambda view: view.entries[dan.index].status == Status.ACTIVE)
    dan_round = (await run.view()).run.round
    await run.finish()
    view = await assert_finished(run)
    assert not view.entries[dan.index].flags & EntryFlag.LEAVING
    assert max(e["round"] for e in events_of(run, "dan", "committed")) >= dan_round


async def test_it_warns_before_it_is_dry_and_a_refill_ends_the_matter(run_factory):
    run = await run_factory.create(14, **NO_AUDITS)
    await start_members(run, NAMES)
    await until_round(run, 2)
    dan = member(run, "dan")
    await drain(run, dan.session, 20 * FEE)
    await until_round(run, 5)
    run.chain.airdrop(dan.session.pubkey(), 10**9)
    await run.finish()
    view = await assert_finished(run)
    warned = [number(one, "rounds_left") for one in events_of(run, "dan", "fees_low")]
    assert warned and warned == sorted(warned, reverse=True)
    assert 0 not in warned[:1]
    assert not events_of(run, "dan", "fees_spent")
    assert view.entries[dan.index].status not in (Status.LEFT, Status.INACTIVE)
