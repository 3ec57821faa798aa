"""Connections of strangers leave a process the file handles that its own work needs."""

import contextlib
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


@pytest.mark.parametrize(("soft", "hard"), [(256, 256), (256, 1024)])
def test_three_hundred_connections_leave_handles_for_files(tmp_path, soft, hard):
    """256 is what macOS allows by default; a write that finds no handle ends a participant."""
    file = tmp_path / "file"
    command = [sys.executable, "-c", SERVE.format(soft=soft, hard=hard), file]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child,
        contextlib.ExitStack() as strangers,
    ):
        port = int(child.stdout.readline())
        for _ in range(300):
            strangers.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
        said = child.communicate("go on\n", timeout=60)[1]
        assert file.exists(), said
