"""A participant's own ledger beside its rounds: whole at the end, also after an RPC node's lie."""

import asyncio
import contextlib

from support.ledgers import place_of, with_a_close_of_its_own
from support.ports import fail_once
from support.runs import NO_AUDITS, assert_finished, start_members, until_round

from troth_client.participant import ledger_keeping
from troth_client.participant.ledger_keeping import (
    LONGEST_PAUSE_SECONDS,
    LedgerSource,
    complete_ledger,
    keep_ledger,
)
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import RpcLimitedError
from troth_coordinator.ledger.file import ASIDE, Ledger, LedgerFile, LedgerHead
from troth_coordinator.ledger.follow import AT_ONCE, REFUSALS, Match, compare, follow


def at_once(client):
    """Slots of this chain pass as soon as nobody computes."""
    return LedgerSource(client, 0, 0)


async def test_a_ledger_of_an_old_lie_is_read_anew_beside_the_rounds(run_factory, tmp_path):
    run = await run_factory.create(3 + 2 * REFUSALS, **NO_AUDITS)
    await start_members(run, ["ada", "bob"])
    await until_round(run, 2, is_stopped=True)
    genesis = bytes(await run.rpc.genesis_hash()).hex()
    head = LedgerHead(str(run.client.program_id), str(run.at.run), genesis)
    path = tmp_path / "ledger.jsonl"
    with LedgerFile(path, head) as ledger:
        await follow(run.client, ledger)
    forged = with_a_close_of_its_own(head, list(Ledger.of(path).entries()))
    lines = [one.to_line() for one in forged[: place_of(forged, "RoundClosed") + 1]]
    path.write_bytes(b"".join([head.to_line(), *lines]))
    member = run.members[0].here
    keeping = asyncio.create_task(keep_ledger(member, path, at_once(run.client)))
    await run.finish()
    await assert_finished(run)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    await complete_ledger(member, path, at_once(run.client))
    with LedgerFile(path, head) as ledger:
        assert compare(ledger.fold, (await run.view()).run).match is Match.WHOLE
    renewed = run.members[0].events.named("ledger_renewed")
    assert len(renewed) == 1
    behind = run.members[0].events.named("ledger_behind")
    assert len(behind) == REFUSALS
    assert path.with_name(path.name + ASIDE).exists()


async def test_a_ledger_without_memory_ends_no_round(run_factory, tmp_path, monkeypatch):
    """It is opened, and goes on, at a later close."""
    tries = []

    async def failing(*args):
        tries.append(args)
        if len(tries) == 2:
            raise MemoryError
        return await follow(*args)

    monkeypatch.setattr(ledger_keeping, "follow", failing)
    run = await run_factory.create(6, **NO_AUDITS)
    opened = fail_once(run, "ada", "LedgerFile")
    await start_members(run, ["ada", "bob"])
    path = tmp_path / "ledger.jsonl"
    member = run.members[0].here
    keeping = asyncio.create_task(keep_ledger(member, path, at_once(run.client)))
    await run.finish()
    await assert_finished(run)
    assert not keeping.done()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    await complete_ledger(member, path, at_once(run.client))
    with LedgerFile(path, Ledger.of(path).head) as ledger:
        assert compare(ledger.fold, (await run.view()).run).match is Match.WHOLE
    behind = [one["reason"] for one in run.members[0].events.named("ledger_behind")]
    assert behind == ["out of memory", "MemoryError"]
    assert len(opened) > 1
    assert len(tries) > 2


class Limited:
    """An RPC node that answers so many questions about transactions, then says that it limits."""

    def __init__(self, inner, at_once):
        self.inner, self.at_once, self.left = inner, at_once, at_once

    def __getattr__(self, name):
        return getattr(self.inner, name)

    async def transaction(self, signature):
        if not self.left:
            self.left = self.at_once
            raise RpcLimitedError("node", "HTTP status 429", 10.0)
        self.left -= 1
        return await self.inner.transaction(signature)


async def test_a_ledger_goes_on_where_a_limit_has_ended_the_reading(run_factory, tmp_path):
    run = await run_factory.create(3, **NO_AUDITS)
    await start_members(run, ["ada", "bob"])
    await run.finish()
    genesis = bytes(await run.rpc.genesis_hash()).hex()
    head = LedgerHead(str(run.client.program_id), str(run.at.run), genesis)
    client = CoordinatorClient(Limited(run.rpc, AT_ONCE // 5), run.client.program_id)
    lengths = [0]
    with LedgerFile(tmp_path / "ledger.jsonl", head) as ledger:
        while compare(ledger.fold, (await run.view()).run).match is not Match.WHOLE:
            with contextlib.suppress(RpcLimitedError):
                await follow(client, ledger)
            lengths.append(ledger.fold.next_sequence)
            assert lengths[-1] > lengths[-2]
    assert len(lengths) > 2


def test_the_pause_grows_with_each_limit_and_goes_back():
    source = LedgerSource(None)
    least = source.pause_seconds
    for _ in range(9):
        source.slow_down()
    assert source.pause_seconds == LONGEST_PAUSE_SECONDS
    for _ in range(9):
        source.hurry()
    assert source.pause_seconds == least
