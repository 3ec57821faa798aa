"""Windows in slots as times that people know, and where the length of a slot comes from."""

import pytest

from troth_cli.slot_time import STATED, SlotTime, slot_time
from troth_coordinator.chain.errors import RpcRefusedError
from troth_coordinator.chain.rpc import Rpc
from troth_localnet.direct import DirectRpc
from troth_localnet.svm import Chain, ChainConfig


@pytest.mark.parametrize(
    ("slots", "text"),
    [
        (0, "about 0 seconds"),
        (1, "about 0.4 seconds"),
        (5, "about 2 seconds"),
        (80, "about 32 seconds"),
        (600, "about 4 minutes"),
        (6_000, "about 40 minutes"),
        (18_000, "about 2 hours"),
        (24 * 9_000, "about 24 hours"),
        (168 * 9_000, "about 7 days"),
    ],
)
def test_a_window_is_said_in_the_unit_that_people_use(slots, text):
    assert SlotTime(400_000, is_measured=True).about(slots) == text


def test_the_stated_length_is_named_where_nobody_measured():
    assert STATED.window(600) == "600 slots, about 4 minutes at 400 ms a slot"
    assert SlotTime(20_000, is_measured=True).window(600) == "600 slots, about 12 seconds"


async def test_the_length_comes_from_the_node():
    chain = Chain(ChainConfig(slot_milliseconds=50))
    assert await slot_time(DirectRpc(chain)) == SlotTime(50_000, is_measured=True)


class Silent(DirectRpc):
    """A node that keeps no samples, or does not know the method."""

    def __init__(self, chain: Chain, error: RpcRefusedError | None) -> None:
        super().__init__(chain)
        self.error = error

    async def slot_micros(self) -> int | None:
        if self.error is not None:
            raise self.error
        return None


@pytest.mark.parametrize(
    "error", [None, RpcRefusedError("getRecentPerformanceSamples", -32601, "Method not found")]
)
async def test_a_node_that_cannot_say_stops_nothing(error):
    node: Rpc = Silent(Chain(ChainConfig()), error)
    assert await slot_time(node) == STATED
