"""What a judge needs: the audited payload and its openings, and a gradient of its own to compare.

Owns: where each comes from, for how long it is looked for, and that only what the chain names is
judged. Never: judges (`judgement.py` puts this before the judge) or sends.
Next: `audit_round.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from troth_attestation import header as headers
from troth_attestation.header import Header, header_hash
from troth_attestation.state import Float32
from troth_client.audit.drawn import sampled_payload
from troth_client.audit.judgement import Evidence
from troth_client.audit.recompute import named_sequences
from troth_client.audit.witness import Witness
from troth_client.runtime.base import Runtime, end
from troth_client.state.errors import WeightsLostError
from troth_client.storage.entries import Submission
from troth_client.transport.errors import TransportError
from troth_coordinator.rules.assignment import rank_start, sequences_of
from troth_coordinator.rules.audit_view import AuditKind, AuditView
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.view import NetworkView

LAST_SHARE = 3
"""In the last third of its window, a judge says that nobody served the openings."""


@dataclass(frozen=True, slots=True)
class OwnGradient:
    """Our own D(g), fp32 [tiles, 64, 64], and its seconds; None without a stopwatch."""

    tiles: Float32
    seconds: float | None = None


@dataclass(slots=True)
class _Search:
    """One search for the evidence of an audit, repeated until it is found."""

    witness: Witness
    audit: AuditView
    num_failed: int = 0

    async def until_found(self) -> Evidence:
        tracker = self.witness.audits.tracker
        while True:
            found = await find_evidence(self.witness, tracker.view, self.audit)
            if found is not None:
                return found
            self.num_failed += 1
            await self.witness.chain.runtime.wait()


async def fetch_evidence(
    witness: Witness, audit: AuditView, window_slots: int, may_give_up: Callable[[], bool]
) -> Evidence | None:
    """Return what an audit or a case is about, however long its holders take.

    None in the last third of a window of `window_slots`, once a search came to nothing and
    `may_give_up` agrees. A holder that never answers keeps nobody beyond its window.
    """
    tracker, search = witness.audits.tracker, _Search(witness, audit)
    searching = witness.chain.runtime.start(search.until_found(), "search")
    try:
        while not searching.done():
            view = await tracker.next(searching)
            left = audit.stage_end - run_clock(view.run, view.slot)
            is_late = left * LAST_SHARE <= window_slots
            if not searching.done() and is_late and search.num_failed and may_give_up():
                return None
        return searching.result()
    finally:
        await end(searching)


async def find_evidence(witness: Witness, view: NetworkView, audit: AuditView) -> Evidence | None:
    """Return what an audit or a case is about, from disk or from holders.

    None while something of it is out of reach; another try may bring it. Only work has openings.
    """
    accused = audit.subject if audit.kind == AuditKind.POSSESSION else audit.target
    openings: bytes | None = None
    try:
        submission = await find_submission(witness, view, audit, accused)
        if submission is None:
            return None
        header = headers.decode(submission.header)
        if audit.kind == AuditKind.WORK:
            openings = await find_openings(witness, view, audit, header)
    except TransportError as error:
        report_delay(witness, audit, error)
        return None
    return Evidence(audit.seed, header, submission.payload, openings, audit.openings_root)


async def find_submission(
    witness: Witness, view: NetworkView, audit: AuditView, index: int
) -> Submission | None:
    """Return the submission that the audit names, from disk, or from holders while the ring has it.

    Raises TransportError.
    """
    kept = kept_submission(witness, audit, index)
    account = None if kept is not None else await witness.chain.read_round(audit.round)
    if account is None or account.slots[index].header_hash != audit.header_hash:
        return kept
    return (await witness.submissions.obtain(account, view, index)).submission


def kept_submission(
    witness: Witness, audit: AuditView, index: int | None = None
) -> Submission | None:
    """Return the submission that the audit names if it is on disk: a fork may have left another.

    `index` is the trainer's, that of the target unless given.
    """
    trainer = audit.target if index is None else index
    for kept in witness.submissions.kept(audit.round, trainer):
        if header_hash(headers.decode(kept.header)) == audit.header_hash:
            return kept
    return None


async def find_openings(
    witness: Witness, view: NetworkView, audit: AuditView, header: Header
) -> bytes:
    """Return the bytes under the openings root on chain. Raises FetchError."""
    sampled = sampled_payload(audit.seed, header, witness.state.num_tiles)
    holders = await witness.submissions.endpoints(view, audit.target)
    store, transport = witness.audits.openings, witness.submissions.transport
    return await store.fetch(transport, sampled, audit.openings_root, holders)


async def recompute_gradient(witness: Witness, audit: AuditView, evidence: Evidence) -> OwnGradient:
    """Return our own D(g) of the sequences that the target had to take.

    Waits for its weights as long as the caller does: after a restart they are replayed first.
    """
    while True:
        try:
            return await _recomputed(witness, audit, evidence, in_reference=False)
        except WeightsLostError as error:
            report_delay(witness, audit, error)
            await witness.audits.tracker.next()


async def recompute_in_reference(witness: Witness, audit: AuditView, evidence: Evidence) -> Float32:
    """Return its tiles in reference mode, as jurors compare them. Raises WeightsLostError."""
    return (await _recomputed(witness, audit, evidence, in_reference=True)).tiles


async def _recomputed(
    witness: Witness, audit: AuditView, evidence: Evidence, *, in_reference: bool
) -> OwnGradient:
    runtime, kept, work = witness.chain.runtime, witness.audits.kept, witness.work
    compute = runtime.compute
    # Two recomputations at once would each take twice as long.
    async with witness.audits.turn:
        begun = runtime.seconds()
        saved = await compute(kept.load, audit.round, audit.canonical_root)
        ids = await assigned_sequences(witness, audit, evidence.header, saved.cursor)
        batch = await compute(witness.state.data.sequences, ids)
        function = work.reference_gradient if in_reference else work.gradient
        tiles = await compute(function, saved.tensors, batch)
        return OwnGradient(tiles, seconds_since(begun, runtime))


def seconds_since(begun: float | None, runtime: Runtime) -> float | None:
    """Return what a stopwatch that was read as `begun` has counted; None without one."""
    now = runtime.seconds()
    return None if begun is None or now is None else now - begun


async def assigned_sequences(
    witness: Witness, audit: AuditView, header: Header, cursor: int
) -> tuple[int, ...]:
    """Return the ids that the chain assigned to the target, whatever its header says.

    Once the ring has dropped the round nobody knows its ranks: then those of the rank that the
    header names, and if it names none, those of the first one, of which its work is not either.
    `cursor` is that before the round.
    """
    order = witness.state.order
    per_payload = witness.state.config.train.sequences_per_payload
    known = witness.audits.tracker.round(audit.round)
    round_ = known or await witness.chain.read_round(audit.round)
    if round_ is not None:
        return sequences_of(order, round_, audit.target, per_payload)
    named = named_sequences(header, order, cursor, per_payload)
    return named or order.sequences(rank_start(cursor, 0, per_payload), per_payload)


def report_delay(witness: Witness, audit: AuditView, error: Exception) -> None:
    """Say what an audit waits for."""
    witness.chain.events.emit(
        "judging_delayed", round=audit.round, target=audit.target, reason=str(error)
    )
