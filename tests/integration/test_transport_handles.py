"""Connections of strangers leave a process the file handles that its own work needs."""

import contextlib
import signal
import socket
import subprocess
import sys

import pytest

SERVE = """
import asyncio, resource, sys
from pathlib import Path
from troth_client.transport.http import http_transport

resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))

async def main():
    async with http_transport("127.0.0.1", 0) as transport:
        print(transport.endpoint.rsplit(":")[-1], flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        Path(sys.argv[1]).write_text("written")

asyncio.run(main())
"""


@contextlib.contextmanager
def serving(file, soft, hard):
    """A process with so many handles, and its port; it writes the file when a line comes."""
    command = [sys.executable, "-c", SERVE.format(soft=soft, hard=hard), file]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
        yield child, int(child.stdout.readline())


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def ask(connection):
    """Ask for what does not exist: whoever gets an answer has a place."""
    connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    assert connection.recv(16).startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize(("soft", "hard"), [(256, 256), (256, 1024)])
def test_three_hundred_connections_leave_handles_for_files(tmp_path, soft, hard):
    """256 is what macOS allows by default; a write that finds no handle ends a participant."""
    file = tmp_path / "file"
    with serving(file, soft, hard) as (child, port), contextlib.ExitStack() as strangers:
        for _ in range(300):
            strangers.enter_context(connect(port))
        said = child.communicate("go on\n", timeout=60)[1]
        assert file.exists(), said


def test_a_burst_of_connections_leaves_handles_for_files(tmp_path):
    """Beside as many as find a place, a full queue of them is accepted a few at a time."""
    file = tmp_path / "file"
    with serving(file, 256, 256) as (child, port), contextlib.ExitStack() as strangers:
        for _ in range(128):
            ask(strangers.enter_context(connect(port)))
        child.send_signal(signal.SIGSTOP)
        for _ in range(128):
            strangers.enter_context(connect(port))
        child.stdin.write("go on\n")
        child.stdin.flush()
        child.send_signal(signal.SIGCONT)
        said = child.communicate(timeout=60)[1]
        assert file.exists(), said
        assert said == ""
