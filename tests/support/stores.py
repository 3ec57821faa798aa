"""An S3 server on loopback, as another program: moto.

Owns: the server, and the environment that points at it. Never: what a test does with a bucket.
"""

from collections.abc import Iterator

import httpx
import pytest
from moto.server import ThreadedMotoServer

from support.waiting import ANSWER_SECONDS

BUCKET = "s3://troth"
KEYS = {"AWS_ACCESS_KEY_ID": "writer", "AWS_SECRET_ACCESS_KEY": "verysecret"}


def aim_at(monkeypatch: pytest.MonkeyPatch, endpoint: str, *, writes: bool = True) -> None:
    """Point S3 at this address, with credentials or without any."""
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    keys = KEYS if writes else {}
    found = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", **keys}
    for name, value in found.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a server with one bucket that everybody may read."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    public = {"x-amz-acl": "public-read"}
    # The first request loads the server's S3 part.
    httpx.put(f"{url}/troth", headers=public, timeout=ANSWER_SECONDS).raise_for_status()
    yield url
    server.stop()


FIXTURES = (s3,)
