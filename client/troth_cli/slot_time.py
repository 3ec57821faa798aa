"""The length of a slot, and windows in slots as times that people know.

Owns: asking a node for the length of its slots, and the words for a waiting time.
Never: watches slots go by; `workflows/probes.py` does where seconds may be spent on it.
Next: `view/`, which prints a time beside each window.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from troth_coordinator.chain.errors import RpcError
from troth_coordinator.chain.rpc import Rpc

STATED_SLOT_MICROS: Final = 400_000
"""The length of a slot as Solana states it."""
_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_MANY: Final = 2
"""A unit is used from so many of it on."""
_WHOLE: Final = 10
"""From so many of a unit on, a tenth of it says nothing."""


@dataclass(frozen=True, slots=True)
class SlotTime:
    """The length of a slot; `is_measured` is False where nobody knows it: the stated one."""

    micros: int
    is_measured: bool

    def seconds(self, slots: int | Fraction) -> float:
        """Return how long so many slots take."""
        return float(slots * self.micros) / 1e6

    def about(self, slots: int | Fraction) -> str:
        """Return roughly how long so many slots take: `about 4 minutes`."""
        stated = "" if self.is_measured else f" at {STATED_SLOT_MICROS // 1000} ms a slot"
        return f"about {_words(self.seconds(slots))}{stated}"

    def window(self, slots: int) -> str:
        """Return slots with their time beside them: `600 slots, about 4 minutes`."""
        return f"{slots} {'slot' if slots == 1 else 'slots'}, {self.about(slots)}"


STATED: Final = SlotTime(STATED_SLOT_MICROS, is_measured=False)


async def slot_time(rpc: Rpc) -> SlotTime:
    """Return the length of a slot as the node measured it lately; the stated one if it cannot say.

    One request, no waiting.
    """
    try:
        micros = await rpc.slot_micros()
    except RpcError:
        return STATED  # a node need not offer the method, and no amount depends on it
    return STATED if micros is None else SlotTime(micros, is_measured=True)


def _words(seconds: float) -> str:
    name, length = next((unit for unit in _UNITS if seconds >= _MANY * unit[1]), _UNITS[-1])
    number = seconds / length
    text = f"{number:.0f}" if number >= _WHOLE else f"{number:.1f}".removesuffix(".0")
    return f"{text} {name}{'' if text == '1' else 's'}"
