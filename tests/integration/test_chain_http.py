"""The same client over real sockets: HttpRpc against the embedded chain's JSON-RPC server."""

import pytest
from support.chain import GENESIS_ROOT, SOL, World, key, vote

from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    InsufficientFundsError,
    ProgramMissingError,
    ProgramRefusedError,
    RpcRefusedError,
    RpcUnreachableError,
)
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.operations import Authority, Crank, JoinOffer, Owner
from troth_coordinator.chain.rpc import MAX_FEE_ACCOUNTS
from troth_localnet.direct import DirectRpc
from troth_localnet.rpc import RpcServer, ServerConfig


class HttpWorld(World):
    """World whose client speaks HTTP to a server over the same stepped chain."""

    async def __aenter__(self):
        self.server = RpcServer(self.chain, ServerConfig(slot_milliseconds=None))
        await self.server.start()
        self.rpc = HttpRpc(self.server.rpc_url)
        self.direct = self.client
        self.client = CoordinatorClient(
            self.rpc, policy=SendPolicy(poll_seconds=0, max_polls=500), sleeper=self._sleep
        )
        return self

    async def __aexit__(self, *_exc_info):
        await self.rpc.close()
        await self.server.stop()


async def test_a_run_over_http():
    async with HttpWorld() as world:
        await world.client.check_program()
        assert len(await world.rpc.genesis_hash()) == 32
        await world.client.airdrop(key("alice").pubkey(), SOL)
        assert await world.client.balance(key("alice").pubkey()) == SOL
        running = await world.start(2)
        assert running.at.run == (await world.create()).at.run
        seen = await world.client.snapshot(running.at.run)
        assert seen == await world.direct.snapshot(running.at.run)
        assert seen.round.members == 0b11
        _owner, session = running.peers[0]
        sent = await session.commit_payload(0, b"h" * 32, running.vote(0, 0, GENESIS_ROOT))
        assert [event.name for event in sent.events] == ["PayloadCommitted"]
        assert sent.events[0].header_hash == b"h" * 32
        assert sent.is_complete
        assert sent.fee_lamports == 5_000
        assert sent.compute_units > 0
        late = Owner(world.client, running.at, world.wallet("owner", "late"))
        assert (
            await late.foretell_join(JoinOffer(key("session", "late").pubkey(), 3, "http://late"))
            == 2
        )
        again, _session = running.peers[0]
        with pytest.raises(ProgramRefusedError) as caught:
            await again.foretell_join(JoinOffer(key("session", "late").pubkey(), 3, "http://late"))
        assert caught.value.name == "AlreadyJoined"
        owners = [owner.key.pubkey() for owner, _session in running.peers]
        people = await world.client.find_participants(running.at.run)
        assert {bytes(owner) for owner in owners} == {one.owner for one in people}


async def test_refusals_over_http():
    async with HttpWorld() as world:
        running = await world.start(2)
        owner, session = running.peers[0]
        foreign = vote(running.at, owner, 0, GENESIS_ROOT)
        with pytest.raises(ProgramRefusedError) as caught:
            await session.commit_payload(7, b"h" * 32, foreign)
        assert caught.value.instruction == 0
        assert caught.value.next_step
        assert any("AnchorError" in line for line in caught.value.logs)
        poor = Crank(world.client, running.at, key("poor"))
        with pytest.raises(InsufficientFundsError, match=str(key("poor").pubkey())):
            await poor.advance_phase(0)


async def test_150_blocks_without_a_landing_over_http():
    async with HttpWorld(slots_per_sleep=60) as world:
        running = await world.start(2)
        lost = []

        async def lose(raw, *, skip_preflight=False):
            lost.append(raw)

        world.rpc.send = lose
        with pytest.raises(BlockhashExpiredError):
            await running.crank.advance_phase(0)
        assert len(set(lost)) == 4


async def test_no_program_over_http():
    async with HttpWorld(has_program=False) as world:
        authority = Authority.create_at(world.client, world.wallet("authority"), world.terms())
        with pytest.raises(ProgramMissingError):
            await world.client.check_program()
        with pytest.raises(ProgramMissingError):
            await authority.create_run(world.terms())


async def test_a_server_that_went_away():
    async with HttpWorld() as world:
        url = world.server.rpc_url
    async with HttpRpc(url) as rpc:
        client = CoordinatorClient(rpc)
        with pytest.raises(RpcUnreachableError, match="troth localnet up"):
            await client.check_program()
        with pytest.raises(RpcUnreachableError):
            await client.send([], [key("alice")])


async def test_recent_fees_over_http():
    async with HttpWorld() as world:
        running = await world.start(2)
        first, last = world.chain.slot, world.chain.slot + 1
        world.chain.congestion.add(first, last, 7_000)
        world.chain.advance(3)
        found = await world.rpc.recent_fees([running.at.run, running.at.roster])
        assert found == await DirectRpc(world.chain).recent_fees([running.at.run])
        assert found[-4:] == [7_000, 7_000, 0, 0]
        with pytest.raises(RpcRefusedError, match="Too many inputs"):
            await world.rpc.recent_fees([running.at.run] * (MAX_FEE_ACCOUNTS + 1))
