"""Copies of payloads: an audit and a replay may save the same one at the same time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from troth_client.storage import Store, StoreIdentity, Submission

COPY = Submission(4, 1, b"header", b"s" * 64, b"p" * 200_000)


def test_two_that_save_the_same_copy_at_once_both_succeed(tmp_path):
    identity = StoreIdentity(bytes(32), b"o" * 32, b"c" * 32)
    with Store(tmp_path, identity, pytest.fail) as store, ThreadPoolExecutor(4) as threads:
        for saved in [threads.submit(store.save_peer, COPY) for _ in range(200)]:
            saved.result()
        assert store.load_peer(4, 1) == COPY
