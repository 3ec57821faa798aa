"""Leaf hashes of tensors where they lie on a GPU: whole leaves there, the ends of tensors here.

Owns: what the kernels get, and the order of the hashes. Never: builds a tree above leaves.
Next: `gpu_hash.py` for the kernels; `troth_attestation/bulk.py`, which hashes on the host.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from troth_attestation import bulk
from troth_client.compression.kernels.gpu_compiler import on_device
from troth_client.compression.kernels.gpu_hash import (
    CHUNK_BYTES,
    DIGEST_WORDS,
    HASH_OPTIONS,
    WIDTH,
    Level,
    hash_chunks,
    hash_pairs,
)
from troth_coordinator.rules.ids import Digest

_WORD_BYTES = 4


def leaf_hashes(tensors: Sequence[Tensor], leaf_bytes: int) -> list[Digest]:
    """Return `bulk.leaf_hashes` of fp32 tensors, one after another, that share a device.

    A leaf has 2^n KiB, n > 0; the last one of each tensor may be shorter. Only digests and those
    last leaves are copied to the host.
    """
    leaf_words = leaf_bytes // _WORD_BYTES
    flat = [tensor.detach().reshape(-1).view(torch.int32) for tensor in tensors]
    counts = [len(words) // leaf_words for words in flat]
    ends = [words[count * leaf_words :] for words, count in zip(flat, counts, strict=True)]
    device = flat[0].device
    with on_device(device):
        whole = iter(_digests(_hashed(flat, counts, leaf_bytes // CHUNK_BYTES)))
        last = iter(bulk.leaf_hashes(_leaves_of(ends)))
    found = []
    for count, end in zip(counts, ends, strict=True):
        found += [next(whole) for _ in range(count)]
        found += [next(last)] if len(end) else []
    return found


def _hashed(flat: Sequence[Tensor], counts: Sequence[int], leaf_chunks: int) -> Tensor:
    """Return the digests of the whole leaves of all tensors, int32 [leaves, 8]."""
    device = flat[0].device
    key = torch.from_numpy(np.frombuffer(bulk.LEAF_KEY, np.int32).copy()).to(device)
    digests = _empty(sum(counts) * leaf_chunks, device)
    first = 0
    for words, count in zip(flat, counts, strict=True):
        chunks = count * leaf_chunks
        if chunks:
            hash_chunks[_programs(chunks)](
                Level(words, chunks), digests[first:], key, leaf_chunks, **HASH_OPTIONS
            )
        first += chunks
    while len(digests) > sum(counts):
        above = _empty(len(digests) // 2, device)
        is_top = len(above) == sum(counts)
        hash_pairs[_programs(len(above))](
            Level(digests, len(above)), above, key, is_top, **HASH_OPTIONS
        )
        digests = above
    return digests


def _empty(count: int, device: torch.device) -> Tensor:
    return torch.empty((count, DIGEST_WORDS), dtype=torch.int32, device=device)


def _programs(count: int) -> tuple[int]:
    return (-(-count // WIDTH),)


def _digests(digests: Tensor) -> list[Digest]:
    data, length = digests.cpu().numpy().tobytes(), DIGEST_WORDS * _WORD_BYTES
    return [Digest(data[at : at + length]) for at in range(0, len(data), length)]


def _leaves_of(ends: Sequence[Tensor]) -> list[bytes]:
    """Return the bytes of the last leaves that are not whole, which travel in one copy."""
    data = torch.cat(list(ends)).cpu().numpy().tobytes()
    stops = np.cumsum([0, *map(len, ends)]) * _WORD_BYTES
    return [data[a:b] for a, b in pairwise(stops) if b > a]
