"""Memory: the worst case of every instruction needs less than half of the heap.

The program never frees memory, and the runtime reserves 32 KiB. There is no counter to read. So
the tests move the end of the heap in the shipped image, and drive every instruction to its worst
case on what is left. The largest need found that way is 11,624 bytes, of which 4,096 hold events.
"""

import re

import pytest
from support.program import costs
from support.program.rounds import RoundDriver

from troth_coordinator import artifacts
from troth_localnet.errors import RefusedTransactionError

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


def test_half_of_the_heap_is_enough_for_the_worst_case_of_every_instruction(monkeypatch):
    small = with_heap(artifacts.program_image(), HALF)
    monkeypatch.setattr(artifacts, "program_image", lambda: small)
    assert len(costs.measure()) > 35


def test_a_heap_without_room_for_the_events_is_too_small(monkeypatch):
    """So the test above would notice a program that needs too much."""
    tiny = with_heap(artifacts.program_image(), 4_096)
    monkeypatch.setattr(artifacts, "program_image", lambda: tiny)
    with pytest.raises(RefusedTransactionError):
        RoundDriver(2)
