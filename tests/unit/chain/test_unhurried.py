"""A command whose RPC node asks it to wait waits, and goes on. Fake clock."""

import asyncio
from random import Random

import pytest
from solders.pubkey import Pubkey
from support.fake_time import now, run
from support.rpc_nodes import Scripted, Weather, limited, refused

from troth_coordinator.chain.errors import RpcError, RpcLimitedError, RpcUnreachableError
from troth_coordinator.chain.unhurried import PATIENCE_SECONDS, UnhurriedRpc

KEY = Pubkey(b"k" * 32)


def limited_without_a_time(name):
    return RpcLimitedError(name, "error -32005: node is behind")


def asked(failures):
    """Ask a node for a slot and an account at once; it fails so often first. Return seconds."""

    async def test():
        weather = Weather("a", Scripted(now))
        rpc = UnhurriedRpc({"a": weather}, clock=now, random=Random(1))
        left = list(failures)

        def fail(name):
            failure = left.pop(0)
            if not left:
                weather.raises = None
            return failure(name)

        weather.raises = fail
        begun = now()
        async with rpc:
            await asyncio.gather(rpc.get_slot(), rpc.get_accounts([KEY]))
        return now() - begun

    return run(test())


@pytest.mark.parametrize("failure", [limited, limited_without_a_time])
def test_a_limit_at_the_first_look_is_waited_for(failure):
    assert 0 < asked([failure]) < 5
    assert asked([failure] * 4) < 30


def test_a_node_that_is_away_is_not_waited_for():
    with pytest.raises(RpcUnreachableError, match="connection refused"):
        asked([refused] * 3)


def test_questions_that_share_a_patience_wait_no_longer_than_it_in_all():
    async def test():
        weather = Weather("a", Scripted(now), raises=limited)
        begun, waited = now(), []
        async with UnhurriedRpc({"a": weather}, clock=now, random=Random(1)) as rpc:
            rpc.patience_seconds = 30.0
            for _question in range(4):
                with pytest.raises(RpcLimitedError):
                    await rpc.get_slot()
                waited.append(now() - begun)
        return waited

    first, *others = run(test())
    assert 10 < first <= others[-1] <= 30


def test_a_limit_that_lasts_ends_the_wait():
    async def test():
        weather = Weather("a", Scripted(now), raises=limited)
        begun = now()
        async with UnhurriedRpc({"a": weather}, clock=now, random=Random(1)) as rpc:
            with pytest.raises(RpcError, match="429"):
                await rpc.get_slot()
        return now() - begun, len(weather.calls)

    seconds, num_calls = run(test())
    assert 10 < seconds <= PATIENCE_SECONDS
    assert num_calls < 40
