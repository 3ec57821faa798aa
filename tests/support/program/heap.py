"""The heap of the program, in the shipped image: where its end is, and how to move it.

Owns: an image with a smaller heap. Never: runs it. Next: `tests/program/test_heap.py`.
"""

import re

HEAP_BYTES = 32 * 1024
HALF = HEAP_BYTES // 2
LOADS_HEAP_ADDRESS = re.compile(
    rb"(\x18[\x00-\x0a]\x00\x00)(....)(\x00\x00\x00\x00\x03\x00\x00\x00)", re.DOTALL
)
"""An instruction that loads the address 0x3_0000_0000, where the heap is, plus an offset."""


def with_heap(image: bytes, num_bytes: int) -> bytes:
    """The image with a heap of so many bytes: the allocator begins at its end and goes down."""
    num_moved = 0

    def moved(found: re.Match[bytes]) -> bytes:
        nonlocal num_moved
        offset = int.from_bytes(found[2], "little")
        # The first allocation of a path is folded into the end: a little less than all of it.
        if not HALF < offset <= HEAP_BYTES:
            return found[0]
        num_moved += 1
        return found[1] + (offset - HEAP_BYTES + num_bytes).to_bytes(4, "little") + found[3]

    changed = LOADS_HEAP_ADDRESS.sub(moved, image)
    assert num_moved > 1, "the allocator looks different: find the end of its heap again"
    return changed
