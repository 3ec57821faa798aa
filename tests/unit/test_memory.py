"""Real allocation failures are known as such, and a smaller microbatch avoids them."""

import mmap
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from troth_client.runtime.memory import as_memory_error, first_line

TOO_MUCH = 1 << 46

LIMITED = """
import resource, sys
import numpy as np
from troth_client.model.device import choose_device
from troth_client.model.init import initial_weights
from troth_client.model.weights import build
from troth_client.train.learner import DEFAULT
from troth_client.runtime.memory import as_memory_error
from troth_coordinator.rules.config import ModelSection, TrainSection

model = ModelSection(vocab_size=16384, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=256)
train = TrainSection(sequences_per_payload=16, microbatch_sequences=16)
llama = build(model, initial_weights(bytes(32), model))
batch = np.ones((16, 257), np.int64)
DEFAULT.gradient(llama, batch[:1], train, choose_device("cpu"))
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 400 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for size in (None, 1):
    try:
        with as_memory_error():
            DEFAULT.gradient(llama, batch, train, choose_device("cpu", size))
        print("fits")
    except MemoryError:
        print("short")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_does_not_fit_at_once_fits_sequence_by_sequence():
    """Logits of 16 x 256 tokens take 256 MiB, and more than once; the process may have 400."""
    command = [sys.executable, "-c", LIMITED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout.split() == ["short", "fits"], ended.stderr


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: torch.empty(TOO_MUCH, dtype=torch.uint8),
        lambda: torch.empty(TOO_MUCH, TOO_MUCH),
        lambda: np.empty(TOO_MUCH, np.uint8),
        lambda: bytearray(TOO_MUCH),
        lambda: mmap.mmap(-1, TOO_MUCH),
    ],
    ids=["torch", "more-than-addresses", "numpy", "python", "mapping"],
)
def test_a_failed_allocation_is_a_memory_error_and_told_in_a_line(allocate):
    with pytest.raises(MemoryError) as raised, as_memory_error():
        allocate()
    line = first_line(raised.value)
    assert line
    assert "\n" not in line


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasLtCreate(&handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "can't start new thread",
    ],
)
def test_libraries_say_it_in_their_own_words(message):
    with pytest.raises(MemoryError, match=re.escape(message)) as raised, as_memory_error():
        raise RuntimeError(message)
    assert isinstance(raised.value.__cause__, RuntimeError)


@pytest.mark.parametrize("allocator", ["CUDA", "HIP"])
def test_a_card_without_room_is_a_memory_error(allocator):
    said = f"{allocator} out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has 1 GiB."
    with pytest.raises(MemoryError) as raised, as_memory_error():
        raise torch.OutOfMemoryError(said)
    assert str(raised.value) == said.splitlines()[0]


@pytest.mark.parametrize(
    "fail",
    [
        lambda: torch.ones(2, 3) @ torch.ones(2, 3),
        lambda: Path("/nowhere").read_bytes(),
        lambda: {}["key"],
    ],
    ids=["shapes", "file", "key"],
)
def test_other_errors_stay_what_they_are(fail):
    with pytest.raises((RuntimeError, FileNotFoundError, KeyError)) as alone:
        fail()
    with pytest.raises(type(alone.value)) as raised, as_memory_error():
        fail()
    assert str(raised.value) == str(alone.value)


def test_a_failed_kernel_of_cuda_is_no_lack_of_memory():
    with pytest.raises(RuntimeError, match="EXECUTION_FAILED"), as_memory_error():
        raise RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED")
