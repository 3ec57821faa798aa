"""Rebuilds the chain hash of a run from its events alone, as any auditor could.

Every transaction of the driver in rounds.py passes through here, so that a missing, misplaced or
wrong event fails the test that caused it.
"""

from collections.abc import Iterable

from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_rounds import Attested, PayloadCommitted, RoundClosed
from troth_coordinator.rules.chain_hash import (
    Attestation,
    ClosedRound,
    Commit,
    after_close,
    after_event,
)


class Ledger:
    """The chain hash of one run, from the events that were absorbed so far."""

    def __init__(self) -> None:
        self.hash = bytes(32)
        self.next_sequence = 0
        self.events: list[Event] = []
        self._commits: dict[int, Commit] = {}
        self._attestations: dict[int, Attestation] = {}

    def copied(self) -> "Ledger":
        """Another ledger at the same point."""
        made = Ledger()
        made.hash, made.next_sequence = self.hash, self.next_sequence
        made.events = list(self.events)
        made._commits = dict(self._commits)
        made._attestations = dict(self._attestations)
        return made

    def absorb(self, events: Iterable[Event]) -> None:
        """Follow the events of a transaction, and check their numbers and the hash of a close."""
        for event in events:
            self.events.append(event)
            match event:
                case PayloadCommitted():
                    commit = Commit(event.index, event.header_hash, event.root_vote)
                    self._commits[event.index] = commit
                case Attested():
                    attestation = Attestation(event.index, event.bitmap, event.possession)
                    self._attestations[event.index] = attestation
                case RoundClosed():
                    self._close(event)
                case _:
                    assert event.sequence == self.next_sequence, event
                    assert event.kind is not None
                    self.hash = after_event(self.hash, event.sequence, event.kind, event.body)
                    self.next_sequence += 1

    def _close(self, event: RoundClosed) -> None:
        closed = ClosedRound(
            event.round,
            event.members,
            event.trainers,
            tuple(self._commits[i] for i in sorted(self._commits)),
            tuple(self._attestations[i] for i in sorted(self._attestations)),
            event.included,
            event.canonical_root,
        )
        self.hash = after_close(self.hash, closed)
        assert self.hash == event.chain_hash, event
        self._commits.clear()
        self._attestations.clear()
