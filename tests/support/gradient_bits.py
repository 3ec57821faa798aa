"""One gradient, twice, as lines of text: processes that compute the same say the same.

Owns: the lines. `python -m support.gradient_bits` prints them.
Never: compares. Next: tests/unit/train/test_step.py.
"""

import hashlib
import sys

import numpy as np

from troth_client.audit.recompute import num_threads
from troth_client.model.init import initial_weights
from troth_client.model.weights import build
from troth_client.train.step import gradient
from troth_coordinator.rules.config import ModelSection


def lines() -> list[str]:
    """Hash and loss of a gradient that is computed twice."""
    config = ModelSection(num_hidden_layers=2, num_key_value_heads=2)
    model = build(config, initial_weights(bytes(32), config))
    batch = np.random.default_rng(7).integers(0, 256, (4, 129))
    told = []
    with num_threads(1):
        for _ in range(2):
            found = gradient(model, batch, 2, 1_000_000)
            once = b"".join(tensor.numpy().tobytes() for tensor in found.tensors.values())
            told.append(f"{hashlib.sha256(once).hexdigest()} {found.mean_loss_micro}")
    return told


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()))
