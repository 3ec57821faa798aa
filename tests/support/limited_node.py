"""An RPC node that answers so many requests and then asks to wait, in front of a real one.

Owns: the count. Never: an answer of its own but HTTP status 429. Next: network.py for the real one.
"""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from support.waiting import ANSWER_SECONDS


@contextlib.contextmanager
def limited_node(behind: str, num_answers: int) -> Iterator[str]:
    """Yield the address of a node that passes this many requests on to the node behind it."""
    count = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if next(count) > num_answers:
                self._send(429, b"")
                return
            headers = {"Content-Type": "application/json"}
            found = httpx.post(behind, content=body, headers=headers, timeout=ANSWER_SECONDS)
            self._send(found.status_code, found.content)

        def _send(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_parts: object) -> None:
            """Keep stderr for the command."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()
