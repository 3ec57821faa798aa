"""Real allocation failures are known as such, and a smaller microbatch avoids them."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from troth_client.train.memory import first_line, is_out_of_memory

TOO_MUCH = 1 << 46

LIMITED = """
import resource, sys
import numpy as np
from troth_client.model.device import choose_device
from troth_client.model.init import initial_weights
from troth_client.model.weights import build
from troth_client.train.learner import DEFAULT
from troth_client.train.memory import is_out_of_memory
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
        DEFAULT.gradient(llama, batch, train, choose_device("cpu", size))
        print("fits")
    except (MemoryError, RuntimeError) as error:
        print("short" if is_out_of_memory(error) else repr(error))
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
        lambda: np.empty(TOO_MUCH, np.uint8),
        lambda: bytearray(TOO_MUCH),
    ],
    ids=["torch", "numpy", "python"],
)
def test_a_failed_allocation_is_known_and_told_in_a_line(allocate):
    with pytest.raises((MemoryError, RuntimeError)) as raised:
        allocate()
    assert is_out_of_memory(raised.value)
    assert first_line(raised.value)
    assert "\n" not in first_line(raised.value)


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
def test_libraries_of_cuda_say_it_in_their_own_words(message):
    assert is_out_of_memory(RuntimeError(message))


def test_other_errors_are_others():
    with pytest.raises(RuntimeError) as raised:
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert not is_out_of_memory(raised.value)
    assert not is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"))
