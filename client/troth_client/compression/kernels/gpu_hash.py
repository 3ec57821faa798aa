"""Keyed BLAKE3 of many leaves on a GPU, a chunk of 1 KiB in each thread: words in, digests out.

Owns: the digests of `troth_attestation/bulk.py` to the bit, for leaves that are whole.
Never: knows of tensors, or of trees above a leaf, or hashes a leaf that ends early: the host does.
Next: `gpu_leaves.py`, which launches it; https://github.com/BLAKE3-team/BLAKE3-specs.

A leaf of 2^n KiB is a whole binary tree over 2^n chunks: one launch hashes all chunks, and n more
hash the digests above them, level by level. A digest takes 32 bytes.

Messages have 16 words and digests 8. Each word is a tensor with one value per chunk, so that every
operation is one instruction of a thread.
"""

from typing import Final, NamedTuple

import triton.language as tl
from torch import Tensor

from troth_client.compression.kernels.gpu_compiler import entry, from_odd, part

WIDTH: Final = 128
"""Chunks or pairs of one program, one in each thread of `gpu_compiler.HASH_OPTIONS`."""
CHUNK_BYTES: Final = 1024
CHUNK_WORDS: Final = 256
DIGEST_WORDS: Final = 8

_WIDTH = tl.constexpr(WIDTH)
_CHUNK_WORDS = tl.constexpr(CHUNK_WORDS)
_DIGEST_WORDS = tl.constexpr(DIGEST_WORDS)
_BLOCK_WORDS = tl.constexpr(16)
_BLOCK_BYTES = tl.constexpr(64)
_LAST_BLOCK = tl.constexpr(15)
_ROUNDS = tl.constexpr(7)
_START, _END, _PARENT, _ROOT, _KEYED = (tl.constexpr(1 << n) for n in range(5))
_IV0, _IV1 = tl.constexpr(0x6A09E667), tl.constexpr(0xBB67AE85)
_IV2, _IV3 = tl.constexpr(0x3C6EF372), tl.constexpr(0xA54FF53A)

Words = list[tl.tensor]
"""Words of a message, of digests or of rows of a state; Triton does not look at quoted types."""


class Level(NamedTuple):
    """Neighbours of one level: chunks of 256 words or pairs of 16, int32; how many, by `as_odd`."""

    words: Tensor
    odd_number: int


@entry
def hash_chunks(chunks: Level, digests: "Tensor", key: "Tensor", leaf_chunks: tl.constexpr) -> None:
    """Hash chunks into digests, int32 [chunks, 8]; `key` is int32 [8]. A leaf has two or more."""
    place = tl.program_id(0).to(tl.int64) * _WIDTH + tl.arange(0, _WIDTH)
    is_chunk = place < from_odd(chunks.odd_number)
    at = chunks.words + place * _CHUNK_WORDS
    counter = (place % leaf_chunks).to(tl.uint32)
    digest = _keys(key, counter * 0)
    for block in range(_LAST_BLOCK + 1):
        flags = _KEYED + (block == 0) * _START + (block == _LAST_BLOCK) * _END
        message = _loaded(at + block * _BLOCK_WORDS, is_chunk)
        digest = _compressed(digest, message, counter, flags)
    _store(digests + place * _DIGEST_WORDS, digest, is_chunk)


@entry
def hash_pairs(pairs: Level, digests: "Tensor", key: "Tensor", is_top: tl.constexpr) -> None:
    """Hash pairs of neighbouring digests into those above, int32 [pairs, 8]; a top is a leaf's."""
    place = tl.program_id(0).to(tl.int64) * _WIDTH + tl.arange(0, _WIDTH)
    is_pair = place < from_odd(pairs.odd_number)
    message = _loaded(pairs.words + place * _BLOCK_WORDS, is_pair)
    zero = message[0] * 0
    digest = _compressed(_keys(key, zero), message, zero, _KEYED + _PARENT + is_top * _ROOT)
    _store(digests + place * _DIGEST_WORDS, digest, is_pair)


@part
def _keys(key: "Tensor", zero: tl.tensor) -> "Words":
    """Return the words of the key for so many chunks or pairs."""
    return [zero + tl.load(key + n).to(tl.uint32, bitcast=True) for n in (0, 1, 2, 3, 4, 5, 6, 7)]


@part
def _loaded(words: "Tensor", is_here: tl.tensor) -> "Words":
    """Load the words of one message of each place."""
    return [
        tl.load(words + n, mask=is_here, other=0).to(tl.uint32, bitcast=True)
        for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ]


@part
def _store(words: "Tensor", digest: "Words", is_here: tl.tensor) -> None:
    for n in tl.static_range(_DIGEST_WORDS):
        tl.store(words + n, digest[n].to(tl.int32, bitcast=True), mask=is_here)


@part
def _compressed(above: "Words", message: "Words", counter: tl.tensor, flags: int) -> "Words":
    """Return the first 8 words of the compression of 64 bytes."""
    zero = counter * 0
    a, b = above[0:4], above[4:8]
    c = [zero + _IV0, zero + _IV1, zero + _IV2, zero + _IV3]
    d = [counter, zero, zero + _BLOCK_BYTES, zero + flags]
    for _ in range(_ROUNDS):
        a, b, c, d = _round(a, b, c, d, message)
        message = [message[n] for n in (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)]
    return [a[n] ^ c[n] for n in (0, 1, 2, 3)] + [b[n] ^ d[n] for n in (0, 1, 2, 3)]


@part
def _round(
    a: "Words", b: "Words", c: "Words", d: "Words", m: "Words"
) -> "tuple[Words, Words, Words, Words]":
    """Mix the columns of a state of four rows, and then its diagonals."""
    a0, b0, c0, d0 = _mixed(a[0], b[0], c[0], d[0], m[0], m[1])
    a1, b1, c1, d1 = _mixed(a[1], b[1], c[1], d[1], m[2], m[3])
    a2, b2, c2, d2 = _mixed(a[2], b[2], c[2], d[2], m[4], m[5])
    a3, b3, c3, d3 = _mixed(a[3], b[3], c[3], d[3], m[6], m[7])
    a0, b1, c2, d3 = _mixed(a0, b1, c2, d3, m[8], m[9])
    a1, b2, c3, d0 = _mixed(a1, b2, c3, d0, m[10], m[11])
    a2, b3, c0, d1 = _mixed(a2, b3, c0, d1, m[12], m[13])
    a3, b0, c1, d2 = _mixed(a3, b0, c1, d2, m[14], m[15])
    return [a0, a1, a2, a3], [b0, b1, b2, b3], [c0, c1, c2, c3], [d0, d1, d2, d3]


@part
def _mixed(
    a: tl.tensor, b: tl.tensor, c: tl.tensor, d: tl.tensor, x: tl.tensor, y: tl.tensor
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Mix four words of a state with two of a message.

    It rotates without a function of its own: the interpreter takes a millisecond for each call.
    """
    a = a + b + x
    d = d ^ a
    d = (d >> 16) | (d << 16)
    c = c + d
    b = b ^ c
    b = (b >> 12) | (b << 20)
    a = a + b + y
    d = d ^ a
    d = (d >> 8) | (d << 24)
    c = c + d
    b = b ^ c
    return a, (b >> 7) | (b << 25), c, d
