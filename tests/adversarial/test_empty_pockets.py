"""Money that runs out while a run goes on. Threat T61."""

import asyncio

import pytest
from solders.system_program import TransferParams, transfer
from support.runs import assert_finished, included, member, start_members, until_round

from troth_client.network.errors import FeesSpentError


async def leave_only(run, name: str, lamports: int) -> None:
    """Move what the session key of a member holds beyond some lamports to its owner."""
    one = member(run, name)
    source, target = one.session.pubkey(), one.owner.pubkey()
    rest = run.balance(source) - lamports - 5_000
    move = transfer(TransferParams(from_pubkey=source, to_pubkey=target, lamports=rest))
    await run.client.send([move], [one.session])


@pytest.mark.long(reason="a whole run in which one member cannot pay a checkpoint")
async def test_who_cannot_pay_for_a_checkpoint_leaves_it_to_the_others(run_factory):
    """Three of four session keys can pay fees but not the rent of a Checkpoint account.

    The participant that closes a round pays for it. Poor members must not end by it, nor void the
    round: a member that can pay closes it.
    """
    run = await run_factory.create(7, checkpoint_every=2)
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await until_round(run, 1)
    for name in ("ada", "bob", "cyd"):
        await leave_only(run, name, 1_500_000)
    await run.finish()
    view = await assert_finished(run)
    assert view.run.num_checkpoints == 4  # rounds 2, 4, 6 and the final root
    assert view.run.void_streak == 0
    voids = [e["round"] for e in member(run, "dan").events.named("round_closed") if e["void"]]
    assert not voids


async def test_a_session_key_without_a_lamport_ends_its_participant_alone(run_factory):
    """The fees of one participant run out. It says so and ends; the others go on without it."""
    run = await run_factory.create(8)
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await until_round(run, 2)
    await leave_only(run, "dan", 900_000)
    ends = await asyncio.gather(*(m.task for m in run.members), return_exceptions=True)
    assert not any(isinstance(end, BaseException) for end in ends[:3])
    assert isinstance(ends[3], FeesSpentError)
    assert member(run, "dan").index not in included(run, "ada")[7]
    await assert_finished(run)
