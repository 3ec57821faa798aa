"""Opening sets are pushed: to all who must judge them, and to two members that keep them.

Owns: who gets a set from us, when we try again, and which sets we accept from others. So a target
that nobody can reach from outside is judged like any other, and one that dies after its push too.
Never: makes a set (`show_openings.py`) or checks one (`state/openings_store.py`).
Next: `participant/audits.py`, which runs one task of this for each set; protocol section 7.

The target pushes to the seats, later to the jurors, to hubs and stores, and until two
further members have the set. Seats and jurors that have the set pass it on to each other while
verdicts or votes are awaited. A holder that refuses, or is not reached, is asked again after a
pause that doubles. A hub or store that took a set is asked again, too: it may have lost its folder.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NoReturn

from troth_attestation import header as headers
from troth_client.audit.drawn import sampled_payload
from troth_client.audit.evidence import kept_submission
from troth_client.audit.witness import Witness
from troth_client.network.submissions import LIVING
from troth_client.state.openings_store import Wanted
from troth_client.transport.base import BlobId, BlobKind
from troth_coordinator.rules.audit_view import (
    MAY_BE_SHOWN,
    AuditKey,
    AuditKind,
    AuditStage,
    AuditView,
)
from troth_coordinator.rules.audits import acting_seats
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.view import NetworkView

Taker = int | str
"""A taker of a set: a participant by its index, or a hub or store by its address."""
NUM_SPARES = 2
"""How many members without a place in the audit keep its set."""
PASS_ON_SLOTS = 8
"""Judges wait so long before they pass a set on: the target is faster in most cases."""
MAX_PAUSE_SLOTS = 64


def want_openings(witness: Witness, view: NetworkView) -> None:
    """Accept pushes of the sets that open audits name on chain, and of no others.

    The size of a set follows from the signed header, so an audit whose header we do not hold yet
    is not among them.
    """
    store, index = witness.audits.openings, witness.chain.index
    known = {(one.sampled.round, one.sampled.index, one.root): one for one in store.wanted}
    wanted: list[Wanted] = []
    for audit in witness.audits.tracker.audits(view):
        root = audit.openings_root
        if audit.kind != AuditKind.WORK or root == ZERO_DIGEST:
            continue
        if store.holds(audit.round, audit.target, root):
            continue
        is_ours = index in judges(audit)
        found = known.get((audit.round, audit.target, root))
        if found is None or found.is_ours != is_ours:
            found = _wanted(witness, audit, is_ours=is_ours)
        if found is not None:
            wanted.append(found)
    store.want(wanted)


def _wanted(witness: Witness, audit: AuditView, *, is_ours: bool) -> Wanted | None:
    submission = kept_submission(witness, audit)
    if submission is None:
        return None
    header = headers.decode(submission.header)
    state = witness.state
    count = state.config.judge.openings_tiles
    sampled = sampled_payload(audit.seed, header, state.num_tiles, count)
    return Wanted(audit.openings_root, sampled, is_ours)


def judges(audit: AuditView) -> set[int]:
    """Return everybody with a place in an audit: its seats and its jurors."""
    return {seat.index for seat in audit.judging} | {juror.index for juror in audit.jurors}


def sets_to_push(witness: Witness, view: NetworkView) -> Iterator[AuditView]:
    """Yield the audits whose set we hold and owe to others: as their target, seat or juror.

    The target owes it to two members that keep it, whatever the stage. Seats and jurors owe it only
    while verdicts or votes are awaited: most open audits have settled long ago.
    """
    store, index = witness.audits.openings, witness.chain.index
    for audit in witness.audits.tracker.audits(view):
        is_ours = audit.target == index or (audit.stage in MAY_BE_SHOWN and index in judges(audit))
        if (
            is_ours
            and audit.kind == AuditKind.WORK
            and store.holds(audit.round, audit.target, audit.openings_root)
        ):
            yield audit


@dataclass(slots=True)
class _Push:
    """One set on its way: who has it, and when the others are asked again."""

    witness: Witness
    key: AuditKey
    blob: BlobId
    is_target: bool
    has_it: set[Taker] = field(default_factory=set)
    num_spares: int = 0
    failures: dict[Taker, int] = field(default_factory=dict)
    rests: dict[Taker, int] = field(default_factory=dict)

    async def offer_at(self, view: NetworkView) -> None:
        """Offer the set to everybody who should have it now and is not resting."""
        audit = self.witness.audits.tracker.current(self.key)
        if audit is None:
            return
        others = [index for index in _must_have(audit) if self._is_due(index, view)]
        spares = await self._spares(audit, view)
        submissions = self.witness.submissions
        relays = submissions.relays if self.is_target else ()
        addresses: dict[Taker, str] = {one: one for one in relays if self._is_due(one, view)}
        if others or spares:
            addresses |= dict((await submissions.addresses(view, [*others, *spares])).items())
        if not addresses:
            return
        endpoints = list(addresses.values())
        results = await submissions.transport.offer(self.blob, endpoints)
        taken = {result.holder for result in results if result.error is None}
        is_news = False
        for taker, endpoint in addresses.items():
            is_news |= endpoint not in taken or taker not in self.has_it
            if endpoint in taken:
                self.has_it.add(taker)
                self.num_spares += taker in spares
                self.rests[taker] = view.slot + MAX_PAUSE_SLOTS
            else:
                self._rest(taker, view)
        if not is_news:
            return
        round_, target, _ = self.key
        self.witness.chain.events.emit(
            "openings_pushed",
            round=round_,
            target=target,
            taken=len(taken),
            failed=len(endpoints) - len(taken),
        )

    async def _spares(self, audit: AuditView, view: NetworkView) -> list[int]:
        """Return the members to ask next to keep the set; the order is the set's own.

        A member that announces no endpoint cannot be asked, and must not take another's turn.
        """
        missing = NUM_SPARES - self.num_spares if self.is_target else 0
        if not missing:
            return []
        taken = judges(audit) | {audit.target}
        order = [
            index
            for index, entry in enumerate(view.entries)
            if entry.status in LIVING and index not in taken
        ]
        if not any(self._is_due(index, view) for index in order):
            return []
        Random(self.blob.key).shuffle(order)
        due = [index for index in order if self._is_due(index, view)]
        return list(await self.witness.submissions.addresses(view, due))[:missing]

    def _is_due(self, taker: Taker, view: NetworkView) -> bool:
        is_other = taker != self.witness.chain.index
        is_asked = taker not in self.has_it or isinstance(taker, str)
        return is_other and is_asked and self.rests.get(taker, 0) <= view.slot

    def _rest(self, taker: Taker, view: NetworkView) -> None:
        num = self.failures[taker] = self.failures.get(taker, 0) + 1
        self.rests[taker] = view.slot + min(2**num, MAX_PAUSE_SLOTS)


def _must_have(audit: AuditView) -> list[int]:
    """Return who is to judge now: the acting seats or the jurors, until they have committed."""
    if audit.stage == AuditStage.COMMIT:
        return [seat.index for seat in acting_seats(audit)]
    if audit.stage == AuditStage.CASE_COMMIT:
        return [juror.index for juror in audit.jurors]
    return []


async def push_openings(witness: Witness, audit: AuditView) -> NoReturn:
    """Push the set of an audit to those who should have it, until the caller ends this.

    The caller ends it when `sets_to_push` names the audit no longer, or with another root. Raises
    RpcError when the addresses of the others cannot be read.
    """
    tracker, is_target = witness.audits.tracker, audit.target == witness.chain.index
    blob = BlobId(audit.round, BlobKind.OPENINGS, audit.openings_root)
    push = _Push(witness, audit.key, blob, is_target)
    begins = tracker.view.slot + (0 if is_target else PASS_ON_SLOTS)
    while True:
        if tracker.view.slot >= begins:
            await push.offer_at(tracker.view)
        await tracker.next()
