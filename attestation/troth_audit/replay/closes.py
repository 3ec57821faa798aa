"""Opens and closes of rounds, computed again from the events before them.

Owns: which round opens with which cursor and epoch; whether a close decided as its votes say.
Never: knows which root is right; `replayed.py` replays it.
Next: `troth_coordinator/rules/root.py` for the decision.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from troth_audit.replay.findings import Finding, Rule, discrepancy
from troth_audit.replay.recount_script import place_of
from troth_audit.replay.told import RoundTold, Told
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_rounds import (
    CheckpointStored,
    PayloadStruck,
    RoundClosed,
    RoundOpened,
)
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.assignment import next_cursor
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.root import (
    Decision,
    Outcome,
    Turnout,
    decide,
    decide_root_only,
    root_vote,
)
from troth_coordinator.rules.view import RoundFlag, RunView


@dataclass(slots=True)
class Closes:
    """Checks each open and each close of a run. `forced` is the round that a report made void."""

    told: Told
    forced: int | None = None
    num_rounds: int = 0
    num_void: int = 0
    _next: tuple[int, int] = field(default=(0, 0))
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
        elif isinstance(event, PayloadStruck):
            self.forced = event.open_round

    def end(self, run: RunView | None) -> Iterator[Finding]:
        """Yield where the Run account has other numbers; see `Ending`."""
        ours = {"round": self._next[0], "cursor": self._next[1]}
        ours |= {"next_checkpoint_round": self._checkpoint_from()}
        for name, value in ours.items():
            if run is not None and getattr(run, name) != value:
                found = f"{name} {getattr(run, name)}"
                yield discrepancy(Rule.RUN_ACCOUNT, f"{name} {value}", found)

    def counts(self) -> Mapping[str, int]:
        """Return the closed rounds, and those of them that closed void."""
        return {"rounds": self.num_rounds, "void_rounds": self.num_void}

    def _opened(self, event: RoundOpened) -> Iterator[Finding]:
        self.forced = None
        round_, cursor = self._next
        params = self.told.params
        epoch = event.epoch if params is None else round_ // params.rounds_per_epoch
        expected = {"round": round_, "cursor": cursor, "epoch": epoch}
        for name, value in expected.items():
            found = getattr(event, name)
            if found != value:
                text = f"{name} {value} at the open"
                yield discrepancy(Rule.ROUND_SETS, text, f"{name} {found}", event.round)
        if event.trainers & ~event.members:
            found = f"members {event.members:#x}, trainers {event.trainers:#x}"
            yield discrepancy(Rule.ROUND_SETS, "trainers that are members", found, event.round)

    def _closed(self, event: RoundClosed) -> Iterator[Finding]:
        number, round_ = event.round, self.told.newest
        if round_ is None or round_.closed is not None or round_.number != number:
            yield discrepancy(Rule.CLOSE, "an open round of this number", "none", number)
            return
        params = self.told.params
        if not round_.opened.root_only and params is not None:
            num_trainers = bitmap.count(round_.opened.trainers)
            per_payload = params.sequences_per_payload
            self._next = number + 1, next_cursor(round_.opened.cursor, num_trainers, per_payload)
            self.num_rounds += 1
            self.num_void += bool(event.flags & RoundFlag.VOID)
        expected = {
            "members": round_.opened.members,
            "trainers": round_.opened.trainers,
            "committed": bitmap.from_indices(round_.commits),
            "attested": bitmap.from_indices(round_.attests),
        }
        for name, value in expected.items():
            if getattr(event, name) != value:
                found = f"{name} {getattr(event, name):#x}"
                yield discrepancy(Rule.CLOSE, f"{name} {value:#x}", found, number)
        yield from self._outsiders(event)
        yield from self._decision(round_, event)
        is_due = round_.opened.root_only or number >= self._checkpoint_from()
        self._owes_checkpoint = is_due and not event.flags & RoundFlag.VOID

    def _outsiders(self, event: RoundClosed) -> Iterator[Finding]:
        for name, acted, due in (
            ("commit", event.committed, event.trainers),
            ("attestation", event.attested, event.members),
        ):
            for index in bitmap.indices_of(acted & ~due):
                yield discrepancy(
                    Rule.CLOSE, f"no {name} of an outsider", f"a {name}", event.round, index
                )

    def _decision(self, round_: RoundTold, event: RoundClosed) -> Iterator[Finding]:
        number = event.round
        is_void = bool(event.flags & RoundFlag.VOID)
        is_forced = self.forced == number
        decision = Decision(Outcome.VOID) if is_forced else _decide(round_, event)
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
        elif _named(event) != _named(round_.opened):
            expected, found = _named(round_.opened), _named(event)
            yield discrepancy(Rule.CHECKPOINT, expected, found, event.round)


def _named(event: RoundOpened | CheckpointStored) -> str:
    return f"round {event.round}, cursor {event.cursor}, epoch {event.epoch}"


def _decide(round_: RoundTold, event: RoundClosed) -> Decision:
    opened = round_.opened
    turnout = Turnout(opened.trainers, opened.members, bitmap.from_indices(round_.commits))
    votes = bitmap.from_indices(
        index
        for index, commit in round_.commits.items()
        if index in round_.members and commit.root_vote == _vote(round_, event, index)
    )
    if opened.root_only:
        return decide_root_only(turnout, votes)
    return decide(turnout, votes, [one.bitmap for one in round_.attests.values()])


def _vote(round_: RoundTold, event: RoundClosed, index: int) -> bytes:
    owner = round_.members[index].owner
    return root_vote(bytes(event.run), round_.number, owner, event.canonical_root)
