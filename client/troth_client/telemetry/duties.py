"""The checks, findings and earnings of a witness, as its own events show them.

Owns: the sums over one participant's log. Never: reads a file or the chain.
Next: `troth_cli/view/duties.py`, which prints it when `troth witness` ends.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from troth_client.telemetry.events import Event, JsonValue, float_of

OK = "OK"
REFUSED = tuple(
    f"{word}_{step}_refused" for word in ("verdict", "vote") for step in ("committed", "revealed")
)


@dataclass(slots=True)
class Duties:
    """Audits judged by verdict, cases judged by verdict, findings, time. Rewards in lamports."""

    verdicts: Counter[str] = field(default_factory=Counter)
    votes: Counter[str] = field(default_factory=Counter)
    findings: list[Event] = field(default_factory=list)
    num_revealed: int = 0
    num_refused: int = 0
    judging_seconds: float = 0.0
    training_seconds: float = 0.0
    rewards: int = 0

    def take(self, event: Event) -> None:
        """Fold one event in; events that are not about duties change nothing."""
        name, verdict = event["event"], str(event.get("verdict", ""))
        if name == "judged":
            self.verdicts[verdict] += 1
            self.judging_seconds += float_of(event, "seconds")
            self._find(event, verdict)
        elif name == "judged_case":
            self.votes[verdict] += 1
            self._find(event, verdict)
        elif name == "step_ended" and event.get("step") == "train":
            self.training_seconds += float_of(event, "seconds")
        elif name in ("verdict_revealed", "vote_revealed"):
            self.num_revealed += 1
        elif name in REFUSED:
            self.num_refused += 1
        elif name == "ended":
            self.rewards = int(float_of(event, "rewards"))

    def to_record(self) -> dict[str, JsonValue]:
        """Return all fields, for a file; inverse of `from_record`."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the sums of a record. Raises TypeError for another record."""
        counters = {name: Counter(record[name]) for name in ("verdicts", "votes")}
        return cls(**{**record, **counters})

    def to_json(self) -> dict[str, JsonValue]:
        """Return all of it, ready for JSON; the share is None where nothing was trained."""
        share = self.judging_seconds / self.training_seconds if self.training_seconds else None
        return {
            "num_judged": sum(self.verdicts.values()),
            "verdicts": {name.lower(): count for name, count in sorted(self.verdicts.items())},
            "num_cases": sum(self.votes.values()),
            "votes": {name.lower(): count for name, count in sorted(self.votes.items())},
            "num_revealed": self.num_revealed,
            "num_refused": self.num_refused,
            "judging_seconds": round(self.judging_seconds, 3),
            "share_of_training": None if share is None else round(share, 3),
            "rewards_lamports": self.rewards,
            "findings": [
                {key: event.get(key) for key in ("round", "target", "verdict", "reason")}
                for event in self.findings
            ],
        }

    def _find(self, event: Event, verdict: str) -> None:
        if verdict != OK:
            self.findings.append(event)
