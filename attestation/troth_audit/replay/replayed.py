"""The weights of a run, replayed from the payloads that the chain included.

Owns: the order of applies, corrections, restarts and checkpoints, and every state root.
Never: applies a round before the next close with a root: until then a payload may be struck.
Next: `evidence.py` for the payloads; `auditor.py` calls this.

A round is applied when the next canonical root is known. So a correction changes the list of
rounds that wait, and never a state. Findings about payloads that no source has wait for it as
well: until then the chain may strike such a payload, and nobody needs it any more.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic

from troth_audit.replay.findings import Finding, Grade, Rule, discrepancy, missing
from troth_audit.replay.ports import Decoded, Weights
from troth_coordinator.chain.event_types_rounds import CheckpointStored
from troth_coordinator.rules.ids import NONE


@dataclass(slots=True)
class Waiting(Generic[Decoded]):
    """A closed round that is not applied yet: its included payloads by index.

    None stands for a malformed one, and for one of `absent`, which could not be had. `lacking` is
    what is to be said of data that no source has, unless the payload is struck.
    """

    number: int
    num_trainers: int
    payloads: dict[int, Decoded | None]
    absent: set[int] = field(default_factory=set)
    lacking: dict[int, list[Finding]] = field(default_factory=dict)

    def said(self) -> Iterator[Finding]:
        """Yield what no source has of its payloads."""
        for found in self.lacking.values():
            yield from found


@dataclass(slots=True)
class State:
    """The state of a round by its name on chain: round, cursor, root."""

    round: int
    cursor: int
    root: bytes


@dataclass(slots=True)
class Replayed(Generic[Decoded]):
    """Follows a run with weights. `is_lost` while no weights are known.

    It takes them up again at the next stored root that somebody serves. Before round `start`
    nothing is replayed, and nothing beyond the root of round `end`, or the next one where that
    round closed void. A user asked for the rounds from `first` on.
    """

    weights: Weights[Decoded]
    start: int = 0
    end: int = NONE
    first: int = 0
    is_lost: bool = False
    num_roots: int = 0
    num_checkpoints: int = 0
    num_applied: int = 0
    stored: State | None = None
    _has_begun: bool = False
    _is_start_known: bool = False
    """Whether `start` has closed, or is said to have closed without a root."""
    _newest: int = -1
    _waiting: deque[Waiting[Decoded]] = field(default_factory=deque)

    def begin(self, genesis_root: bytes) -> Iterator[Finding]:
        """Compare the weights of round 0 with the root that the run was created with."""
        self.stored = State(0, 0, genesis_root)
        self.is_lost = True
        if self.start == 0:
            self._newest = 0
            self._is_start_known = True
            yield from self._begin(self.stored, "genesis root")
        if not self.is_lost:
            self.weights.remember()

    def close(self, state: State) -> Iterator[Finding]:
        """Bring the weights to a round that closed with this canonical root, and compare."""
        self._newest = max(self._newest, state.round)
        if self._is_beyond(state.round):
            self.is_lost = True
        if state.round >= self.start and not self._is_start_known:
            self._is_start_known = True
            if state.round > self.start:
                yield self._without_root(self.start)
        if self.is_lost:
            yield from self._drop()
            if state.round == self.start and not self._has_begun:
                yield from self._begin(state, "canonical root")
            return
        while self._waiting:
            if self._waiting[0].absent:
                yield from self._lose()
                return
            waiting = self._waiting.popleft()
            yield from waiting.said()
            self.weights.apply(waiting.num_trainers, list(waiting.payloads.values()))
            self.num_applied += 1
        yield from self._compare(state, "canonical root")

    def wait(self, waiting: Waiting[Decoded]) -> None:
        """Let a closed round wait for the next root."""
        self._waiting.append(waiting)

    def strike(self, round_: int, target: int) -> Iterator[Finding]:
        """Take a payload back from a round that waits; nobody needs it any more."""
        for waiting in self._waiting:
            if waiting.number == round_:
                waiting.payloads.pop(target, None)
                waiting.absent.discard(target)
                yield from _unneeded(waiting.lacking.pop(target, []))

    def checkpoint(self, event: CheckpointStored) -> Iterator[Finding]:
        """Compare the weights with a root that the program stored at the close just now."""
        self.stored = stored = State(event.round, event.cursor, event.root)
        if self.is_lost and self.start < event.round <= self.end:
            self.is_lost = not self.weights.take_up(stored.round, stored.cursor, stored.root)
        if self.is_lost:
            return
        self.num_checkpoints += 1
        if (self.weights.round, self.weights.root()) != (event.round, event.root):
            found = f"{self.weights.root().hex()} of round {self.weights.round}"
            yield discrepancy(Rule.CHECKPOINT, event.root, found, event.round)
            return
        self.weights.remember()

    def restart(self, round_: int, cursor: int) -> Iterator[Finding]:
        """Take the weights of the stored root for those of a round that a Warmup led to."""
        stored = self.stored
        yield from _unneeded(self._drop())
        if stored is None or round_ < self.start or round_ == stored.round:
            return
        is_there = self.weights.recall(round_, cursor, stored.root)
        if not is_there and self.weights.take_up(stored.round, stored.cursor, stored.root):
            self.weights.remember()
            is_there = self.weights.recall(round_, cursor, stored.root)
        self.is_lost = not is_there
        if self.is_lost:
            yield missing(Rule.STATE_ROOT, f"the weights of round {stored.round}", round_)

    def end_of_ledger(self) -> Iterator[Finding]:
        """Yield what is missing where the run never came to the rounds that were asked for."""
        yield from self._drop()
        if not self._is_start_known:
            yield self._without_root(max(self.first, self.start))
        elif self._newest < self.first:
            yield self._without_root(self.first)

    def counts(self) -> Mapping[str, int]:
        """Return how many roots and checkpoints were compared, and how many rounds applied."""
        return {
            "applied_rounds": self.num_applied,
            "roots": self.num_roots,
            "checkpoints": self.num_checkpoints,
        }

    def _is_beyond(self, round_: int) -> bool:
        """Whether a root is of no use: all rounds before `end` have been compared."""
        has_all = not self._waiting or self._waiting[0].number >= self.end
        return round_ > self.end and has_all

    @staticmethod
    def _without_root(round_: int) -> Finding:
        return missing(Rule.STATE_ROOT, f"a close of round {round_} with a root", round_)

    def _compare(self, state: State, what: str) -> Iterator[Finding]:
        found = self.weights.root()
        at = self.weights.round, self.weights.cursor
        self.num_roots += 1
        if at != (state.round, state.cursor):
            expected = f"weights of round {state.round}, cursor {state.cursor}"
            yield discrepancy(Rule.STATE_ROOT, expected, f"{at[0]}, {at[1]}", state.round)
            yield from self._lose()
        elif found != state.root:
            expected = f"the {what} {state.root.hex()}"
            yield discrepancy(Rule.STATE_ROOT, expected, found, state.round)
            yield from self._lose()

    def _begin(self, state: State, what: str) -> Iterator[Finding]:
        if not self.weights.take_up(state.round, state.cursor, state.root):
            yield missing(
                Rule.STATE_ROOT, f"the weights with the root {state.root.hex()}", state.round
            )
            return
        self.is_lost = False
        self._has_begun = True
        yield from self._compare(state, what)

    def _lose(self) -> Iterator[Finding]:
        self.is_lost = True
        yield from self._drop()

    def _drop(self) -> Iterator[Finding]:
        """Let go of the rounds that wait, and say what they lack."""
        while self._waiting:
            yield from self._waiting.popleft().said()


def _unneeded(found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield as notes what is missing of payloads that the protocol took back."""
    for one in found:
        yield replace(one, grade=Grade.NOTE)
