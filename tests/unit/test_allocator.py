"""One heap that keeps what is freed."""

import ctypes
import subprocess
import sys

import pytest

from troth_client.runtime.allocator import keep_freed_memory

BLOCK_BYTES = 8 << 20
BLOCK = """
import ctypes, threading
from troth_client.runtime.allocator import keep_freed_memory
if {tuned}: assert keep_freed_memory()

class State(ctypes.Structure):  # mallinfo2(3)
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = State
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def bytes_of_the_system():
    state = libc.mallinfo2()
    return state.arena + state.hblkhd

def take_and_return():
    block = libc.malloc({size})
    used = bytes_of_the_system()
    libc.free(block)
    print(used - bytes_of_the_system())

thread = threading.Thread(target=take_and_return)
thread.start()
thread.join()
libc.malloc_stats()  # to stderr
"""


def tells_what_it_keeps():
    """Return whether this system has mallinfo2, which came with glibc 2.33."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallinfo2")


@pytest.mark.skipif(not tells_what_it_keeps(), reason="glibc alone has these settings")
def test_memory_that_a_thread_has_freed_stays_in_the_one_heap():
    (plain, heaps), (tuned, one_heap) = (returned(tuned=tuned) for tuned in (False, True))
    assert plain >= BLOCK_BYTES
    assert heaps > 1
    assert tuned == 0
    assert one_heap == 1


def returned(*, tuned):
    """Return how much of a block of 8 MiB goes back to the system, and how many heaps there are."""
    command = [sys.executable, "-c", BLOCK.format(tuned=tuned, size=BLOCK_BYTES)]
    ended = subprocess.run(command, capture_output=True, check=True, text=True)
    return int(ended.stdout), ended.stderr.count("Arena ")


def test_another_allocator_is_left_alone(monkeypatch):
    monkeypatch.setattr("os.confstr", lambda _name: None)
    assert not keep_freed_memory()
