"""The progress of a cheat: when it begins, and the bytes that it hides.

Owns: one cheat's progress, shared by its ports. Never: computes anything.
Next: `trainer.py` for its work, `ports.py` for what it does not serve.
"""

from collections.abc import Callable

from troth_coordinator.rules.ids import Digest
from troth_simulation.cheats.cheat import Cheat, Hidden


class Conduct:
    """The state of one cheat; it begins after enough of its payloads were included."""

    def __init__(self, cheat: Cheat, emit: Callable[..., None]) -> None:
        self.cheat = cheat
        self.num_included = 0
        self.hidden_roots: set[Digest] = set()
        self._emit = emit
        self._first: int | None = None

    def begin(self) -> bool:
        """Return whether the payload that is made now cheats."""
        return self.num_included >= self.cheat.honest_rounds

    def has_cheated(self, round_: int) -> bool:
        """Return whether the payload that was made for a round is dishonest."""
        return self._first is not None and round_ >= self._first

    def note(self, round_: int) -> bool:
        """Record that a payload is made; return whether it is the first that cheats."""
        is_first = self._first is None and self.begin()
        if is_first:
            self._first = round_
            self._emit("cheating", round=round_, cheat=self.cheat.name, story=self.cheat.story)
        return is_first

    def is_hiding(self, what: Hidden, round_: int) -> bool:
        """Return whether these bytes of a round are withheld from everybody."""
        return self.cheat.hides is what and self.has_cheated(round_)
