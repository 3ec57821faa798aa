"""Ranks that help from a thread of the test, and gradients that are compared to the bit.

Owns: starting and ending such a rank. Never: a process; `ranks.py` starts those.
Next: `unit/train/test_team.py`, `unit/train/test_team_meets.py`.
"""

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from support.trainers import BATCH, CONFIG
from troth_client.model.device import CPU
from troth_client.model.llama import Llama
from troth_client.train.errors import RanksError
from troth_client.train.learner import Learner, OneDevice
from troth_client.train.passes import Pass, eager_pass
from troth_client.train.place import Place
from troth_client.train.step import Gradient
from troth_client.train.team import help_leader, meet


@contextlib.contextmanager
def helping_thread(one: Place, one_pass: Pass = eager_pass) -> Iterator[threading.Thread]:
    """A rank whose pass can be made to fail; it has ended with the block."""

    def help_() -> None:
        with contextlib.suppress(RanksError), contextlib.closing(meet(one)) as ranks:
            help_leader(ranks, OneDevice(one_pass), CPU)

    helper = threading.Thread(target=help_)
    helper.start()
    yield helper
    helper.join(30)
    assert not helper.is_alive()


def of(learner: Learner, model: Llama, batch: NDArray[np.int64] = BATCH) -> Gradient:
    """The gradient of a batch."""
    return learner.gradient(model, batch, CONFIG.train, CPU)


def assert_same(found: Gradient, wanted: Gradient) -> None:
    assert found.mean_loss_micro == wanted.mean_loss_micro
    assert list(found.tensors) == list(wanted.tensors)
    for name, tensor in wanted.tensors.items():
        assert torch.equal(found.tensors[name], tensor), name
