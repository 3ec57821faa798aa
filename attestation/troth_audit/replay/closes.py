"""Closes of rounds and checkpoints, computed again from the events before them.

Owns: the cursor of an open; whether a close decided as its votes say; which checkpoints are stored.
Never: knows which root is right; `replayed.py` replays it. Checks sets: `recount_rounds.py` does,
and its sets count here, so that one false set is one finding.
Next: `troth_coordinator/rules/root.py` for the decision.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from troth_audit.replay.findings import Finding, Rule, discrepancy
from troth_audit.replay.recount_script import place_of
from troth_audit.replay.recount_state import Books, RoundBook
from troth_audit.replay.told import RoundTold, Told
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_rounds import (
    CheckpointStored,
    RoundClosed,
    RoundOpened,
)
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.assignment import next_cursor
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.params import epoch_of
from troth_coordinator.rules.root import (
    Decision,
    Outcome,
    Turnout,
    decide,
    decide_root_only,
    root_vote,
)
from troth_coordinator.rules.view import RoundFlag, RunView

_Named = tuple[int, int, int]
"""Round, cursor and epoch of an open, as they must be."""


@dataclass(slots=True)
class Closes:
    """Checks each open and each close of a run. `books` are those of the recount."""

    told: Told
    books: Books
    num_rounds: int = 0
    num_void: int = 0
    _cursor: int = 0
    _open: _Named = field(default=(0, 0, 0))
    _next_checkpoint: int | None = None
    _owes_checkpoint: bool = False

    def check(self, event: Event) -> Iterator[Finding]:
        """Yield what does not fit; see `Checker`."""
        if self._owes_checkpoint and not isinstance(event, CheckpointStored):
            self._owes_checkpoint = False
            yield discrepancy(Rule.CHECKPOINT, "CheckpointStored", event.name, place_of(event)[0])
        if isinstance(event, RoundOpened):
            yield from self._opened(event)
        elif isinstance(event, RoundClosed):
            yield from self._closed(event)
        elif isinstance(event, CheckpointStored):
            yield from self._stored(event)

    def end(self, run: RunView | None) -> Iterator[Finding]:
        """Yield where the Run account has other numbers; see `Ending`."""
        ours = {"cursor": self._cursor, "next_checkpoint_round": self._checkpoint_from()}
        for name, value in ours.items():
            if run is not None and getattr(run, name) != value:
                found = f"{name} {getattr(run, name)}"
                yield discrepancy(Rule.RUN_ACCOUNT, f"{name} {value}", found)

    def counts(self) -> Mapping[str, int]:
        """Return the closed rounds, and those of them that closed void."""
        return {"rounds": self.num_rounds, "void_rounds": self.num_void}

    def _opened(self, event: RoundOpened) -> Iterator[Finding]:
        params = self.told.params
        epoch = event.epoch if params is None else epoch_of(event.round, params.rounds_per_epoch)
        self._open = event.round, self._cursor, epoch
        if event.cursor != self._cursor:
            text = f"cursor {self._cursor} at the open"
            yield discrepancy(Rule.ROUND_SETS, text, f"cursor {event.cursor}", event.round)

    def _closed(self, event: RoundClosed) -> Iterator[Finding]:
        number, round_ = event.round, self.told.newest
        if round_ is None or round_.closed is not None or round_.number != number:
            yield discrepancy(Rule.CLOSE, "an open round of this number", "none", number)
            return
        params = self.told.params
        book = None if params is None else self.books.held(number)
        if params is None or book is None:
            return  # the recount names what is wrong at its open
        if not round_.opened.root_only:
            num_trainers = bitmap.count(book.trainers)
            self._cursor = next_cursor(self._cursor, num_trainers, params.sequences_per_payload)
            self.num_rounds += 1
            self.num_void += bool(event.flags & RoundFlag.VOID)
        yield from self._decision(round_, book, event)
        is_due = round_.opened.root_only or number >= self._checkpoint_from()
        self._owes_checkpoint = is_due and not event.flags & RoundFlag.VOID

    def _decision(
        self, round_: RoundTold, book: RoundBook, event: RoundClosed
    ) -> Iterator[Finding]:
        number = event.round
        is_void = bool(event.flags & RoundFlag.VOID)
        voided = Decision(Outcome.VOID)
        decision = voided if book.is_forced_void else _decide(round_, book, event)
        if is_void:
            if decision.outcome is not Outcome.VOID and not self._is_grace_over(event):
                found = "closed void within the grace after Attest"
                yield discrepancy(Rule.CLOSE, "a decision by votes", found, number)
            if event.included or event.canonical_root != ZERO_DIGEST:
                found = f"included {event.included:#x}, root {event.canonical_root.hex()}"
                yield discrepancy(Rule.CLOSE, "nothing of a void round", found, number)
            return
        if decision.outcome is not Outcome.CLOSED:
            expected = f"a close as {decision.outcome.value.replace('_', ' ')}"
            found = f"the canonical root {event.canonical_root.hex()}"
            yield discrepancy(Rule.CLOSE, expected, found, number)
        elif decision.included != event.included:
            expected = f"included {decision.included:#x}, by votes and attestations"
            yield discrepancy(Rule.CLOSE, expected, f"included {event.included:#x}", number)

    def _is_grace_over(self, event: RoundClosed) -> bool:
        params = self.told.params
        return params is None or event.slot > self.told.phase_ends + params.close_grace_slots

    def _checkpoint_from(self) -> int:
        """Return the round from which on a close stores a checkpoint."""
        if self._next_checkpoint is None:
            return 0 if self.told.params is None else self.told.params.checkpoint_every
        return self._next_checkpoint

    def _stored(self, event: CheckpointStored) -> Iterator[Finding]:
        if not self._owes_checkpoint:
            yield discrepancy(Rule.CHECKPOINT, "no checkpoint yet", event.name, event.round)
        self._owes_checkpoint = False
        since, params = self._checkpoint_from(), self.told.params
        if event.round >= since and params is not None and params.checkpoint_every:
            every = params.checkpoint_every
            self._next_checkpoint = since + ((event.round - since) // every + 1) * every
        before = self.told.stored
        is_new = before is None or before.round != event.round
        if event.created != is_new:
            yield discrepancy(
                Rule.CHECKPOINT, f"created {is_new}", f"created {event.created}", event.round
            )
        round_ = self.told.newest
        closed = None if round_ is None else round_.closed
        if round_ is None or closed is None or closed.canonical_root != event.root:
            found = f"{event.root.hex()} of round {event.round}"
            yield discrepancy(Rule.CHECKPOINT, "the root of the last close", found, event.round)
        elif (named := (event.round, event.cursor, event.epoch)) != self._open:
            yield discrepancy(Rule.CHECKPOINT, _shown(self._open), _shown(named), event.round)


def _shown(named: _Named) -> str:
    return "round {}, cursor {}, epoch {}".format(*named)


def _decide(round_: RoundTold, book: RoundBook, event: RoundClosed) -> Decision:
    turnout = Turnout(book.trainers, book.members, book.committed)
    votes = bitmap.from_indices(
        index
        for index, commit in round_.commits.items()
        if index in round_.members and commit.root_vote == _vote(round_, event, index)
    )
    if round_.opened.root_only:
        return decide_root_only(turnout, votes)
    return decide(turnout, votes, [one.bitmap for one in round_.attests.values()])


def _vote(round_: RoundTold, event: RoundClosed, index: int) -> bytes:
    owner = round_.members[index].owner
    return root_vote(bytes(event.run), round_.number, owner, event.canonical_root)
