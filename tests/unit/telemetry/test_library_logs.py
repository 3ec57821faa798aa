"""Warnings of libraries become events or one line; no traceback of theirs is printed."""

import asyncio
import gc
import logging
import socket
import struct
import subprocess
import sys

import pytest
from aiohttp import web

from troth_client.telemetry.events import EventList
from troth_client.telemetry.library_logs import as_events

FORGETTING = """
import asyncio, sys
from troth_client.telemetry.library_logs import keep_libraries_quiet

async def work():
    async def fail():
        raise {error}
    asyncio.create_task(fail())
    await asyncio.sleep(0.01)

keep_libraries_quiet(sys.stderr)
asyncio.run(work())
"""


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("ConnectionResetError('by peer')", ""),
        ("BrokenPipeError()", ""),
        (
            "ValueError('a\\x1b[2J')",
            "warning: asyncio: Task exception was never retrieved (ValueError: a\\x1b[2J)\n",
        ),
    ],
)
def test_an_error_that_nobody_awaited_is_one_line_or_none(error, shown):
    command = [sys.executable, "-c", FORGETTING.format(error=error)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == shown


HALF_MADE = """
import sys
from troth_client.telemetry.library_logs import keep_libraries_quiet

class Loop:
    def __del__(self):
        self.socket.close()

keep_libraries_quiet(sys.stderr)
Loop()
"""


def test_an_error_of_a_destructor_is_one_line():
    """Ctrl-C in the middle of a constructor leaves a half-made object behind."""
    command = [sys.executable, "-c", HALF_MADE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    missing = "AttributeError: 'Loop' object has no attribute 'socket'"
    assert done.stderr == f"warning: python: ignored in Loop.__del__ ({missing})\n"


async def test_in_a_participant_it_is_an_event(capfd):
    async def fail():
        raise ConnectionResetError("by peer")

    events = EventList()
    with as_events(events):
        task = asyncio.create_task(fail())
        await asyncio.wait([task])
        del task
        gc.collect()
        logging.getLogger("library").warning("half\nof a thing")
    (disconnected,) = events.named("disconnected")
    assert disconnected["source"] == "asyncio"
    assert "by peer" in disconnected["reason"]
    assert [one["reason"] for one in events.named("library_warned")] == ["half"]
    assert capfd.readouterr().err == ""


async def test_a_caller_that_hangs_up_in_the_middle_prints_nothing(capfd):
    """A real server of the library that we serve with; its caller resets the connection."""
    begun, events = asyncio.Event(), EventList()

    async def answer(request):
        begun.set()
        await request.read()
        raise AssertionError("nobody sends all of it")

    runner = web.ServerRunner(web.Server(answer))
    with as_events(events):
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        caller = socket.create_connection(runner.addresses[0])
        caller.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        await begun.wait()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.close()
        await runner.cleanup()
    assert capfd.readouterr().err == ""
    assert events.named("library_warned") == []
