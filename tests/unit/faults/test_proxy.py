"""The proxy of one line: every effect, begun and ended while connections are open."""

import asyncio

import pytest
from support.echo import echo_server, echoed

from troth_simulation.faults.proxy import TcpProxy
from troth_simulation.faults.trouble import Effect, Trouble

HELLO = b"GET /v1/payload/ab HTTP/1.1\r\n\r\n"


@pytest.fixture
async def proxy():
    async with echo_server() as upstream, TcpProxy(upstream, seed=1) as proxy:
        yield proxy


async def test_a_line_without_trouble_passes_and_counts_every_byte(proxy):
    data = HELLO + bytes(range(256)) * 4_096
    assert await echoed(proxy.port, data) == data
    assert dict(proxy.traffic.requests) == {"GET payload": 1}
    assert proxy.traffic.bytes_up.total() == proxy.traffic.bytes_down.total() == len(data)
    assert proxy.traffic.num_connections == 1


@pytest.mark.parametrize("effect", [Effect.REFUSE, Effect.RESET])
async def test_a_line_that_refuses_or_resets_is_well_again_on_the_same_port(proxy, effect):
    port = proxy.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HELLO)
    assert await reader.readexactly(len(HELLO)) == HELLO
    await proxy.set(Trouble(effect))
    with pytest.raises(OSError):
        await reader.readexactly(1)
    with pytest.raises(OSError):
        await echoed(port, HELLO)
    await proxy.set(None)
    assert await echoed(port, HELLO) == HELLO
    assert proxy.port == port


async def test_a_refusing_line_accepts_no_connection_at_all(proxy):
    await proxy.set(Trouble(Effect.REFUSE))
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", proxy.port)


async def test_what_a_stalled_line_holds_comes_after_the_stall(proxy):
    await proxy.set(Trouble(Effect.STALL))
    waiting = asyncio.create_task(echoed(proxy.port, HELLO))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    assert proxy.traffic.bytes_down.total() == 0
    await proxy.set(None)
    assert await waiting == HELLO


async def test_a_rate_is_shared_and_its_end_frees_what_waits(proxy):
    await proxy.set(Trouble(Effect.RATE, 1.0))
    waiting = [asyncio.create_task(echoed(proxy.port, HELLO)) for _ in range(2)]
    done, _ = await asyncio.wait(waiting, timeout=0.05)
    assert not done
    await proxy.set(None)
    assert await asyncio.gather(*waiting) == [HELLO, HELLO]


async def test_equal_seeds_damage_the_same_bit(proxy):
    async def damaged():
        async with echo_server() as upstream, TcpProxy(upstream, seed=7) as other:
            await other.set(Trouble(Effect.CORRUPT, 1.0))
            return await echoed(other.port, HELLO)

    first, second = await damaged(), await damaged()
    assert first == second
    bits = sum((a ^ b).bit_count() for a, b in zip(first, HELLO, strict=True))
    assert bits == 1


async def test_an_effect_on_answers_is_refused_with_the_proxy_that_has_it(proxy):
    with pytest.raises(ValueError, match="RpcProxy"):
        await proxy.set(Trouble(Effect.FREEZE))
