"""The progress of a cheat: when it begins, and the bytes that it hides now.

Owns: one cheat's progress, shared by its ports. Never: computes anything.
Next: `trainer.py` for its work, `ports.py` for what it does not serve.
"""

from collections.abc import Callable, Mapping

from troth_attestation.openings import Sampled
from troth_client.telemetry.events import JsonValue
from troth_coordinator.rules.ids import Digest
from troth_simulation.cheats.cheat import Cheat, Hidden


class Conduct:
    """The state of one cheat; it begins after enough of its payloads were included."""

    def __init__(self, cheat: Cheat, emit: Callable[..., None]) -> None:
        self.cheat = cheat
        self.num_included = 0
        self._hidden: dict[bytes, tuple[int, int]] = {}
        self._emit = emit
        self._rounds: set[int] = set()

    def follow(self, event: str, fields: Mapping[str, JsonValue]) -> None:
        """Take down what our own client reports: an included payload, a jury that was drawn."""
        if event == "round_closed":
            self.num_included += bool(fields.get("own"))
        elif event == "audit_changed" and fields["stage"] == "CASE_COMMIT":
            about = fields["round"], fields["target"]
            if self.cheat.hides is Hidden.UNTIL_JURY:
                self._hidden = {root: key for root, key in self._hidden.items() if key != about}

    def begin(self) -> bool:
        """Return whether the payload that is made now cheats."""
        since = self.num_included - self.cheat.honest_rounds
        return since >= 0 and since % self.cheat.period == 0

    def has_cheated(self, round_: int) -> bool:
        """Return whether the payload that was made for a round is dishonest."""
        return round_ in self._rounds

    def note(self, round_: int) -> None:
        """Record that a payload is made, or judged by a juror; report the first lie."""
        if not self.begin():
            return
        if not self._rounds:
            self._emit("cheating", round=round_, cheat=self.cheat.name, story=self.cheat.story)
        self._rounds.add(round_)

    def is_hiding(self, what: Hidden, round_: int) -> bool:
        """Return whether these bytes of a round are withheld from everybody."""
        return self.cheat.hides is what and self.has_cheated(round_)

    def post(self, sampled: Sampled, root: Digest) -> None:
        """Hide an opening set whose root is posted now, if it is to be hidden."""
        hides = self.cheat.hides in (Hidden.OPENINGS, Hidden.UNTIL_JURY)
        if hides and self.has_cheated(sampled.round):
            self._hidden[root] = (sampled.round, sampled.index)

    def is_unseen(self, root: bytes) -> bool:
        """Return whether the opening set with this root is hidden now."""
        return root in self._hidden
