"""Bulk hashes: BLAKE3 as its paper has it, keyed, whatever the threads and the buffers."""

import hashlib
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from troth_attestation import bulk, merkle

KEY = hashlib.sha256(b"troth:leaf").digest()
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED = 1, 2, 4, 8, 16
IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A)
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


# BLAKE3 once more, from sections 2.2 to 2.5 of its paper: one block, one chunk, the tree.
def compress(chaining, block, counter, flags):
    v = [*chaining, *IV, counter & 0xFFFFFFFF, counter >> 32, len(block), flags | KEYED]
    words = struct.unpack("<16I", block.ljust(64, b"\0"))
    for _ in range(7):
        for at, (a, b, c, d) in enumerate((*COLUMNS, *DIAGONALS)):
            for word, (first, second) in zip(
                words[2 * at : 2 * at + 2], ((16, 12), (8, 7)), strict=True
            ):
                v[a] = (v[a] + v[b] + word) & 0xFFFFFFFF
                v[d] = turned(v[d] ^ v[a], first)
                v[c] = (v[c] + v[d]) & 0xFFFFFFFF
                v[b] = turned(v[b] ^ v[c], second)
        words = [words[at] for at in ORDER]
    return [low ^ high for low, high in zip(v[:8], v[8:], strict=True)]


def turned(word, by):
    return (word >> by | word << (32 - by)) & 0xFFFFFFFF


def plain_blake3(key, data, first_chunk=0, last=ROOT):
    own = struct.unpack("<8I", key)
    if len(data) > 1024:
        left = 1024 << ((len(data) - 1) // 1024).bit_length() - 1
        sides = (
            plain_blake3(key, data[:left], first_chunk, 0),
            plain_blake3(key, data[left:], first_chunk + left // 1024, 0),
        )
        return struct.pack("<8I", *compress(own, b"".join(sides), 0, PARENT | last))
    blocks = [data[at : at + 64] for at in range(0, len(data), 64)] or [b""]
    chaining = own
    for at, block in enumerate(blocks):
        ends = (CHUNK_END | last) if at == len(blocks) - 1 else 0
        chaining = compress(chaining, block, first_chunk, ends | (CHUNK_START if at == 0 else 0))
    return struct.pack("<8I", *chaining)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1023, 1024, 1025, 2049, 5000, 16384])
def test_a_leaf_is_blake3_in_keyed_mode(size):
    data = np.random.default_rng(size).bytes(size)
    assert bulk.leaf_hash(data) == plain_blake3(KEY, data)
    assert bulk.keyed_hash(b"k" * 32, data) == plain_blake3(b"k" * 32, data)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 130, 200])
def test_threads_and_views_change_nothing(count):
    rows = np.arange(count * 500, dtype=np.uint32).reshape(count, 500)
    leaves = [row.data.cast("B") for row in rows]
    expected = [bulk.leaf_hash(row.tobytes()) for row in rows]
    assert bulk.leaf_hashes(leaves) == expected
    with ThreadPoolExecutor(2) as executor:
        assert bulk.leaf_hashes(iter(leaves), executor) == expected


def test_a_bulk_leaf_is_no_short_leaf():
    assert bulk.leaf_hash(b"x" * 1024) != merkle.leaf_hash(b"x" * 1024)
