"""Leaf hashes of tensors where they lie on a GPU: whole leaves there, the ends of tensors here.

Owns: what the kernels get, and the order of the hashes. Never: builds a tree above leaves.
Next: `gpu_hash.py` for the kernels; `troth_attestation/bulk.py`, which hashes on the host.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
import torch
from torch import Tensor

from troth_attestation import bulk
from troth_client.compression.kernels.gpu_compiler import HASH_OPTIONS, as_odd, on_device
from troth_client.compression.kernels.gpu_hash import (
    CHUNK_BYTES,
    CHUNK_WORDS,
    DIGEST_WORDS,
    WIDTH,
    Level,
    hash_chunks,
    hash_pairs,
)
from troth_coordinator.rules.ids import Digest

_WORD_BYTES = 4
GROUP_WORDS = 2**25
"""Words that are hashed at a time, 128 MiB: their digests take 6 MiB of the device."""


def leaf_hashes(tensors: Sequence[Tensor], leaf_bytes: int) -> list[Digest]:
    """Return `bulk.leaf_hashes` of fp32 tensors, one after another, that share a device.

    A leaf has 2^n KiB, n > 0; the last one of each tensor may be shorter. Only digests and those
    last leaves are copied to the host.
    """
    leaf_words = leaf_bytes // _WORD_BYTES
    flat = [one.detach().reshape(-1).contiguous().view(torch.int32) for one in tensors]
    counts = [len(words) // leaf_words for words in flat]
    bodies = [words[: n * leaf_words] for words, n in zip(flat, counts, strict=True) if n]
    ends = [words[n * leaf_words :] for words, n in zip(flat, counts, strict=True)]
    with on_device(flat[0].device):
        tops = [_hashed(group, leaf_bytes // CHUNK_BYTES) for group in _groups(bodies)]
        whole = iter([digest for top in tops for digest in _digests(top)])
        last = iter(bulk.leaf_hashes(_leaves_of(ends)))
    found: list[Digest] = []
    for count, end in zip(counts, ends, strict=True):
        found += [next(whole) for _ in range(count)]
        found += [next(last)] if len(end) else []
    return found


def _groups(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Yield all words in their order, `GROUP_WORDS` at most at a time."""
    group: list[Tensor] = []
    for part in chain.from_iterable(torch.split(one, GROUP_WORDS) for one in tensors):
        if sum(map(len, group)) + len(part) > GROUP_WORDS:
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _hashed(group: Sequence[Tensor], leaf_chunks: int) -> Tensor:
    """Return the digests of whole leaves, int32 [leaves, 8]."""
    device = group[0].device
    key = torch.from_numpy(np.frombuffer(bulk.LEAF_KEY, np.int32).copy()).to(device)
    counts = [len(words) // CHUNK_WORDS for words in group]
    digests = _empty(sum(counts), device)
    for words, first, count in zip(group, accumulate(counts, initial=0), counts, strict=False):
        hash_chunks[_programs(count)](
            Level(words, as_odd(count)), digests[first:], key, leaf_chunks, **HASH_OPTIONS
        )
    leaves = len(digests) // leaf_chunks
    while len(digests) > leaves:
        above = _empty(len(digests) // 2, device)
        is_top = len(above) == leaves
        hash_pairs[_programs(len(above))](
            Level(digests, as_odd(len(above))), above, key, is_top, **HASH_OPTIONS
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
