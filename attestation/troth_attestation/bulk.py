"""Bulk hashes: keyed BLAKE3, for tensors, residuals and whole payloads (protocol section 1).

Owns: BLAKE3 in keyed mode with 32 bytes, and the leaves of tensor and residual trees over threads.
Never: hashes what the program computes, nor headers, roots or short leaves: they are SHA-256.
Next: `merkle.py`, which builds the tree above the leaves.
"""

import hashlib
from collections.abc import Iterable
from concurrent.futures import Executor
from itertools import chain, islice
from typing import Final

from blake3 import blake3

from troth_attestation.merkle import Leaf
from troth_coordinator.rules.ids import Digest

LEAVES_PER_TASK: Final = 64
"""Leaves that one thread hashes at a time: passing single ones costs as much as hashing."""

LEAF_KEY: Final = hashlib.sha256(b"troth:leaf").digest()
"""The key of the leaves of tensors and residuals."""


def keyed_hash(key: bytes, data: Leaf) -> Digest:
    """Return the 32 bytes of BLAKE3 in keyed mode; the key has 32 bytes."""
    return Digest(blake3(data, key=key).digest())


def leaf_hash(leaf: Leaf) -> Digest:
    """Return the hash of a leaf of a tensor or a residual: BLAKE3, key SHA-256("troth:leaf")."""
    return keyed_hash(LEAF_KEY, leaf)


def leaf_hashes(leaves: Iterable[Leaf], executor: Executor | None = None) -> list[Digest]:
    """Return the leaf hashes in order; BLAKE3 releases the GIL, so threads of `executor` help.

    Leaves may still be on their way: earlier ones are hashed while the next one is waited for.
    """
    source = iter(leaves)
    if executor is None:
        return _in_turn(source)
    batches = iter(lambda: list(islice(source, LEAVES_PER_TASK)), [])
    first = list(islice(batches, 2))
    if len(first) < 2:
        return _in_turn(chain.from_iterable(first))
    return list(chain.from_iterable(executor.map(_in_turn, chain(first, batches))))


def _in_turn(leaves: Iterable[Leaf]) -> list[Digest]:
    # One hasher for all of them: making one takes as long as hashing 3 KiB.
    hasher = blake3(key=LEAF_KEY)
    hashes = []
    for leaf in leaves:
        hasher.reset()
        hashes.append(Digest(hasher.update(leaf).digest()))
    return hashes
