"""Fold the events of a run into its chain hash (protocol section 11).

Owns: which events the hash absorbs, and in what order the records of a round go into its close.
Never: reads events, or decides whether a hash is the chain's: the caller compares it with the Run
account.
Next: `../rules/chain_hash.py` for the hashes.

The chain shows its own hash at each close, so a false event is found at the end of its round. Later
events are proven only by the hash of the Run account.

A closed run may be created again under its address. Then the chain counts and hashes from the
beginning, and so does the fold: it is that of the newest life.
"""

from collections.abc import Iterable
from typing import Self, TypeVar

from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_life import RunClosed, RunCreated
from troth_coordinator.chain.event_types_rounds import Attested, PayloadCommitted, RoundClosed
from troth_coordinator.ledger.errors import LedgerHashError, LedgerOrderError
from troth_coordinator.rules.chain_hash import (
    Attestation,
    ClosedRound,
    Commit,
    after_close,
    after_event,
)
from troth_coordinator.rules.ids import ZERO_DIGEST, Digest

Record = TypeVar("Record", Commit, Attestation)
_READ_AGAIN = "Read the run's transactions from another RPC node, or merge another ledger."


class Fold:
    """The chain hash after the events so far, and the number of the next absorbed event.

    `is_closed`: the run is. Nothing follows but its next creation.
    """

    def __init__(self) -> None:
        self.hash: Digest = ZERO_DIGEST
        self.next_sequence = 0
        self.is_closed = False
        self._commits: dict[int, Commit] = {}
        self._attestations: dict[int, Attestation] = {}

    def copied(self) -> Self:
        """Return another fold at the same point."""
        made = type(self)()
        made._become(self)
        made._commits, made._attestations = dict(self._commits), dict(self._attestations)
        return made

    def absorb(self, events: Iterable[Event]) -> None:
        """Take the events of one transaction, in their order; all of them or none.

        Raises LedgerOrderError and LedgerHashError.
        """
        made = self.copied()
        for event in events:
            made._take(event)
        self._become(made)

    def _become(self, other: Self) -> None:
        self.hash, self.next_sequence = other.hash, other.next_sequence
        self.is_closed = other.is_closed
        self._commits, self._attestations = other._commits, other._attestations

    def _take(self, event: Event) -> None:
        if self.is_closed:
            self._begin_anew(event)
        match event:
            case PayloadCommitted():
                commit = Commit(event.index, event.header_hash, event.root_vote)
                _put(self._commits, event, commit)
            case Attested():
                attestation = Attestation(event.index, event.bitmap, event.possession)
                _put(self._attestations, event, attestation)
            case RoundClosed():
                self._close(event)
            case _:
                self._follow(event)

    def _begin_anew(self, event: Event) -> None:
        if not isinstance(event, RunCreated):
            raise LedgerOrderError(
                f"event {event.name} in slot {event.slot}",
                "nothing after RunClosed but RunCreated",
                event.name,
                _READ_AGAIN,
            )
        self._become(type(self)())

    def _follow(self, event: Event) -> None:
        if event.kind is None or event.sequence != self.next_sequence:
            raise LedgerOrderError(
                f"event {event.name} in slot {event.slot}",
                f"event number {self.next_sequence}",
                event.sequence,
                _READ_AGAIN,
            )
        self.is_closed = isinstance(event, RunClosed)
        self.hash = after_event(self.hash, event.sequence, event.kind, event.body)
        self.next_sequence += 1

    def _close(self, event: RoundClosed) -> None:
        closed = ClosedRound(
            event.round,
            event.members,
            event.trainers,
            tuple(self._commits[index] for index in sorted(self._commits)),
            tuple(self._attestations[index] for index in sorted(self._attestations)),
            event.included,
            event.canonical_root,
        )
        found = after_close(self.hash, closed)
        if found != event.chain_hash:
            raise LedgerHashError(
                f"close of round {event.round} in slot {event.slot}",
                f"the chain hash {event.chain_hash.hex()} that it shows",
                f"{found.hex()} from the events before it",
                _READ_AGAIN,
            )
        self.hash = found
        self._commits.clear()
        self._attestations.clear()


def _put(records: dict[int, Record], event: PayloadCommitted | Attested, made: Record) -> None:
    if event.index in records:
        raise LedgerOrderError(
            f"event {event.name} in slot {event.slot}",
            f"one of participant {event.index} in round {event.round}",
            "a second one",
            _READ_AGAIN,
        )
    records[event.index] = made
