"""Memory: half of the heap is enough for every instruction, and the tests would notice more.

The program never frees memory, and the runtime reserves 32 KiB. There is no counter to read. So
the tests move the end of the heap in the shipped image. `test_costs.py` drives every instruction to
its worst case on half of it. The largest need found that way is 11,624 bytes, of which 4,096 hold
events.
"""

import pytest
from support.program.heap import with_heap
from support.program.rounds import RoundDriver

from troth_coordinator import artifacts
from troth_localnet.errors import RefusedTransactionError


def test_a_heap_without_room_for_the_events_is_too_small(monkeypatch):
    """So `test_costs.py` would notice a program that needs too much."""
    tiny = with_heap(artifacts.program_image(), 4_096)
    monkeypatch.setattr(artifacts, "program_image", lambda: tiny)
    with pytest.raises(RefusedTransactionError):
        RoundDriver(2)
