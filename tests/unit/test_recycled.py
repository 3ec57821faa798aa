"""Memory of large arrays is used again, and never while anything refers to it."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from troth_client.runtime import recycled
from troth_client.runtime.allocator import SPARE_BYTES
from troth_client.train import memory

SHAPE = (3, 64, 64)


@pytest.fixture(autouse=True)
def nothing_spare(monkeypatch):
    monkeypatch.setattr(recycled, "LARGE_BYTES", 4 * 1000)
    recycled._free.clear()
    yield
    recycled._free.clear()


def place(array):
    return array.__array_interface__["data"][0]


def test_an_array_is_like_any_other():
    array = recycled.empty(SHAPE)
    assert array.shape == SHAPE
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    assert array.flags.writeable
    array[:] = 2
    assert array.sum() == 2 * array.size


def test_memory_that_nobody_holds_is_used_again_by_an_array_of_its_size():
    array = recycled.empty(SHAPE)
    where = place(array)
    assert recycled.spare_bytes() == 0
    del array
    assert recycled.spare_bytes() == 4 * 3 * 64 * 64
    assert place(recycled.empty((2, 64, 64))) != where
    again = recycled.empty((64, 192))
    assert place(again) == where
    assert recycled.spare_bytes() == 4 * 2 * 64 * 64


HOLDERS = {
    "the array": lambda array: array,
    "a slice": lambda array: array[1, 2:3],
    "its bytes": lambda array: array.reshape(-1).view(np.uint8),
    "a buffer": lambda array: memoryview(array)[0:1],
    "a tensor": torch.from_numpy,
    "a view of a tensor": lambda array: torch.from_numpy(array).view(-1)[5:6],
    "an array of a tensor": lambda array: torch.from_numpy(array).numpy()[0],
    "bits of a tensor": lambda array: torch.from_numpy(array).view(torch.int32),
}


@pytest.mark.parametrize("hold", [pytest.param(hold, id=name) for name, hold in HOLDERS.items()])
def test_memory_that_somebody_holds_is_not_used_again(hold):
    array = recycled.empty(SHAPE)
    where, held = place(array), hold(array)
    del array
    gc.collect()
    assert place(recycled.empty(SHAPE)) != where
    del held
    gc.collect()
    assert where in {place(one) for one in recycled._free.values()}


def test_small_blocks_are_left_to_the_allocator():
    array = recycled.empty((10, 100))
    del array
    assert recycled.spare_bytes() == 0


def test_no_more_is_kept_than_glibc_would(monkeypatch):
    monkeypatch.setattr(recycled, "SPARE_BYTES", 4 * 3 * 64 * 64)
    arrays = [recycled.empty(SHAPE) for _ in range(3)]
    del arrays
    assert recycled.spare_bytes() == 4 * 3 * 64 * 64
    assert SPARE_BYTES == 256 << 20


def test_the_oldest_memory_leaves_for_newer(monkeypatch):
    monkeypatch.setattr(recycled, "SPARE_BYTES", 5 * 4 * 64 * 64)
    old, other = recycled.empty((3, 64, 64)), recycled.empty((2, 64, 64))
    del old, other
    newest = recycled.empty((1, 64, 64))
    where = place(newest)
    del newest
    assert recycled.spare_bytes() == 3 * 4 * 64 * 64
    assert place(recycled.empty((1, 64, 64))) == where


def test_memory_that_is_lacking_is_taken_from_what_is_spare(monkeypatch):
    spare, real = recycled.empty(SHAPE), np.empty
    del spare

    def short(*asked):
        if recycled.spare_bytes():
            raise MemoryError("none left")
        return real(*asked)

    monkeypatch.setattr(recycled.np, "empty", short)
    assert recycled.empty((2, 64, 64)).size == 2 * 64 * 64


def test_what_is_given_back_after_a_lack_of_memory_is_spare_no_longer():
    array = recycled.empty(SHAPE)
    del array
    memory.give_back()
    assert recycled.spare_bytes() == 0


@pytest.mark.long(reason="three processes that end while a thread reads")
def test_a_thread_reads_its_array_until_the_process_ends():
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, check=False)
        assert run.returncode == 0, run.stderr


ENDING = """
import hashlib, threading
from troth_client.runtime import recycled
array = recycled.empty((100_000_000,))
array[:] = 1
begun = threading.Event()
def read(view):
    begun.set()
    hashlib.sha256().update(view)
threading.Thread(target=read, args=(memoryview(array),), daemon=True).start()
begun.wait()
"""


def test_threads_never_share_memory():
    wrong, start = [], threading.Barrier(4)

    def work(value):
        start.wait()
        for _ in range(300):
            array = recycled.empty(SHAPE)
            array[:] = value
            if (array.min(), array.max()) != (value, value):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
