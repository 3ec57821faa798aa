"""Others say whether they get a connection to us; nobody can aim that at somebody else."""

import asyncio
import contextlib
from typing import NamedTuple

import aiohttp
import pytest
from support.holders import Hostile, hang, ok

from troth_client.transport.errors import EndpointInUseError
from troth_client.transport.http import http_transport
from troth_client.transport.reach import is_reachable

TOKEN = b"troth-reach " + b"a" * 32 + b"\n"


@contextlib.asynccontextmanager
async def listening(says):
    """Somebody else's program on this machine; yields its port and how often it was called."""
    calls = []

    async def answer(_reader, writer):
        calls.append(1)
        with contextlib.suppress(ConnectionError):
            writer.write(says)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], calls


class Answer(NamedTuple):
    """The answer of a holder to somebody who asks for itself."""

    status: int
    token: bytes = b""


async def asked(holder, port):
    url = f"{holder.endpoint}/v1/reach/{port}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return Answer(answer.status, await answer.read())


async def test_a_machine_that_others_reach():
    async with http_transport("127.0.0.1", 0) as holder:
        assert await is_reachable([holder.endpoint], "127.0.0.1", 0) is True


async def test_a_machine_behind_a_wall():
    """The holder looks at the address that the question comes from, where nobody listens."""
    async with http_transport("127.0.0.1", 0) as holder:
        assert await is_reachable([holder.endpoint], "127.0.0.2", 0) is False


async def lies(_holder, writer, _head):
    writer.write(ok(45) + b"troth-reach " + b"0" * 32 + b"\n")


@pytest.mark.parametrize("behave", [lies, hang])
async def test_a_holder_that_lies_or_says_nothing_is_no_answer(behave, monkeypatch):
    monkeypatch.setattr("troth_client.transport.reach.ANSWER_SECONDS", 0.2)
    async with Hostile(behave) as hostile:
        found = await is_reachable([hostile.endpoint], "127.0.0.1", 0)
        assert found is (False if behave is lies else None)


async def test_one_honest_holder_among_liars_is_enough():
    async with Hostile(lies) as one, Hostile(lies) as two, http_transport("127.0.0.1", 0) as holder:
        holders = [one.endpoint, two.endpoint, holder.endpoint]
        assert await is_reachable(holders, "127.0.0.1", 0) is True


async def test_nobody_to_ask():
    assert await is_reachable([], "127.0.0.1", 0) is None
    assert await is_reachable(["http://127.0.0.1:9"], "127.0.0.1", 0) is None


async def test_a_port_that_is_taken_is_named():
    async with listening(b"") as (port, _):
        with pytest.raises(EndpointInUseError, match=str(port)):
            await is_reachable(["http://127.0.0.1:9"], "127.0.0.1", port)


@pytest.mark.parametrize("says", [b"", b"SSH-2.0-OpenSSH_9.9\r\n" * 9, b"troth-reach " + b"x" * 99])
async def test_nothing_but_a_token_is_passed_on(says):
    async with http_transport("127.0.0.1", 0) as holder, listening(says) as (port, calls):
        assert await asked(holder, port) == Answer(204)
        assert len(calls) == 1


@pytest.mark.parametrize(
    ("port", "answer"),
    [
        ("22", Answer(404)),
        ("0022", Answer(204)),
        ("1023", Answer(204)),
        ("1024", Answer(200, TOKEN)),
        ("65535", Answer(200, TOKEN)),
        ("65536", Answer(204)),
        ("99999", Answer(204)),
    ],
)
async def test_ports_of_the_system_and_none_are_not_tried(port, answer, monkeypatch):
    """Every port that is tried shows a token here, as one of the system could."""

    async def show(_host, _port):
        return TOKEN

    monkeypatch.setattr("troth_client.transport.reach._token_at", show)
    async with http_transport("127.0.0.1", 0) as holder:
        assert await asked(holder, port) == answer


async def test_a_guarded_server_connects_to_no_private_caller():
    """On a public cluster a caller from a private address may be a proxy before the server."""
    async with listening(TOKEN) as (port, calls):
        async with http_transport("127.0.0.1", 0, is_guarded=True) as holder:
            assert await asked(holder, port) == Answer(204)
            assert calls == []
        async with http_transport("127.0.0.1", 0) as holder:
            assert await asked(holder, port) == Answer(200, TOKEN)


async def test_one_address_asks_once_at_a_time():
    """A port that accepts and says nothing keeps a question open; the next one waits its turn."""
    accepted, over = asyncio.Event(), asyncio.Event()

    async def silent(_reader, writer):
        accepted.set()
        await over.wait()
        writer.close()

    async with (
        await asyncio.start_server(silent, "127.0.0.1", 0) as server,
        http_transport("127.0.0.1", 0) as holder,
    ):
        port = server.sockets[0].getsockname()[1]
        first = asyncio.create_task(asked(holder, port))
        await accepted.wait()
        assert await asked(holder, port) == Answer(429)
        over.set()
        assert await first == Answer(204)
