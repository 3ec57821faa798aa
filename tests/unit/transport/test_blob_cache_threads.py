"""Checks of pushes run in threads, and may expect more blobs while rounds are forgotten.

Here garbage is collected at every chance, and each collection lets other threads run: a list of a
dictionary's items then takes as long as threads need to change it.
"""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.blob_cache import BlobCache, MemoryBlobs

OLD, NEW = 3, 5
MANY, MORE = 4_000, 500
"""More than the tuples that Python keeps for reuse: so a list of them allocates."""


@pytest.fixture
def eager_collector():
    def let_others_run(_phase, _info):
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(let_others_run)
    gc.set_threshold(1)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(let_others_run)


def blob(round_, number):
    return BlobId(round_, BlobKind.PAYLOAD, number.to_bytes(32, "big"))


def test_rounds_are_forgotten_while_threads_expect_more(eager_collector):
    cache = BlobCache(MemoryBlobs())
    early = [blob(NEW, number) for number in range(MANY)]
    wanted = [blob(NEW, number) for number in range(MANY, MANY + MORE)]
    gone = [blob(OLD, number) for number in range(MANY + MORE, MANY + MORE + 10)]
    for one in (*early, *gone):
        cache.expect(one, 10, bytes)

    def expect_more():
        for one in wanted:
            cache.expect(one, 10, bytes)
            time.sleep(0)

    with ThreadPoolExecutor(1) as pool:
        expecting = pool.submit(expect_more)
        while not expecting.done():
            cache.drop_before(NEW)
        expecting.result()
    missed = [one for one in wanted if not cache.welcome(one.address)]
    kept = [one for one in gone if cache.welcome(one.address)]
    assert missed == []
    assert kept == []
