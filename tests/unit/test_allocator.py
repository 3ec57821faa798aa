"""One heap that keeps what is freed: a pass that repeats asks the system for no memory."""

import subprocess
import sys

import pytest

from troth_client.runtime.allocator import keep_freed_memory

FAULTS = """
import resource, threading
from troth_client.runtime.allocator import keep_freed_memory
if {tuned}: assert keep_freed_memory()
import torch

def passes():
    for _ in range(20):
        blocks = [torch.ones(2**18) for _ in range(8)]  # 8 MiB
        del blocks

def in_a_thread():
    thread = threading.Thread(target=passes)
    thread.start()
    thread.join()

for _ in range(3):
    in_a_thread()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
in_a_thread()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator alone has these settings")
def test_memory_that_was_freed_is_used_again():
    plain, tuned = (num_faults(tuned=tuned) for tuned in (False, True))
    assert plain > 1_000
    assert tuned < 100


def num_faults(*, tuned):
    """Return how many pages a process asked for while it repeated a pass of 8 MiB."""
    script = FAULTS.format(tuned=tuned)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return int(ended.stdout)


def test_another_allocator_is_left_alone(monkeypatch):
    monkeypatch.setattr("os.confstr", lambda _name: None)
    assert not keep_freed_memory()
