"""The evidence of a judge: the audited payload, its openings, and the judge's own gradient.

Owns: where each part comes from and how long to search for it. Only bytes that the chain names
are judged. Never: judges (`judgement.py` hands the evidence to the judge) or sends.
Next: `audit_round.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from troth_attestation import header as headers
from troth_attestation.header import Header, header_hash
from troth_attestation.measure import Own, Tiles
from troth_client.audit.drawn import sampled_payload
from troth_client.audit.judgement import Evidence
from troth_client.audit.recompute import named_sequences
from troth_client.audit.witness import Witness
from troth_client.network.watch import RPC_FAILURES
from troth_client.runtime.base import Runtime, end
from troth_client.runtime.memory import as_memory_error, first_line
from troth_client.state.errors import WeightsLostError
from troth_client.storage.entries import Submission
from troth_client.train.errors import NO_GRADIENT
from troth_client.train.memory import give_back
from troth_client.transport.errors import TransportError
from troth_coordinator.rules.assignment import rank_start, sequences_of
from troth_coordinator.rules.audit_view import AuditKind, AuditView
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.view import NetworkView

T = TypeVar("T")
LAST_SHARE = 3
"""In the last third of its window, a judge may answer that nobody served the openings."""


@dataclass(frozen=True, slots=True)
class OwnGradient:
    """Our own D(g) with its second computation, and its seconds; None without a stopwatch."""

    own: Own
    seconds: float | None = None


@dataclass(slots=True)
class _Search:
    """One search for the evidence of an audit, repeated until it is found."""

    witness: Witness
    audit: AuditView
    began: int
    num_failed: int = 0

    def is_vain(self, clock: int, window_slots: int) -> bool:
        """Tell whether it came to nothing, or has lasted a third of the window without an end."""
        return self.num_failed > 0 or LAST_SHARE * (clock - self.began) >= window_slots

    async def until_found(self) -> Evidence:
        tracker = self.witness.audits.tracker
        while True:
            try:
                found = await find_evidence(self.witness, tracker.view, self.audit)
            except RPC_FAILURES as error:
                self.witness.chain.watch.report(error)
            else:
                if found is not None:
                    return found
                self.num_failed += 1
            await self.witness.chain.runtime.wait()


def is_late(view: NetworkView, audit: AuditView, window_slots: int) -> bool:
    """Tell whether the last third of a window of so many slots has begun."""
    return LAST_SHARE * (audit.stage_end - run_clock(view.run, view.slot)) <= window_slots


async def fetch_evidence(
    witness: Witness, audit: AuditView, window_slots: int, may_give_up: Callable[[], bool]
) -> Evidence | None:
    """Return the evidence of an audit or a case, however long its holders take.

    Returns None in the last third of a window of `window_slots` if the search is vain and
    `may_give_up` agrees. Holders that never answer cannot keep a judge beyond its window.
    """
    tracker = witness.audits.tracker
    search = _Search(witness, audit, run_clock(tracker.view.run, tracker.view.slot))
    searching = witness.chain.runtime.start(search.until_found(), "search")
    try:
        while not searching.done():
            view = await tracker.next(searching)
            clock = run_clock(view.run, view.slot)
            is_vain = is_late(view, audit, window_slots) and search.is_vain(clock, window_slots)
            if not searching.done() and is_vain and may_give_up():
                return None
        return searching.result()
    finally:
        await end(searching)


async def find_evidence(witness: Witness, view: NetworkView, audit: AuditView) -> Evidence | None:
    """Return the evidence of an audit or a case, from disk or from holders.

    Returns None while a part of it cannot be had; a later try may succeed. Only audits and cases
    about work have openings.
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
    if account is None or account.ballots[index].header_hash != audit.header_hash:
        return kept
    return (await witness.submissions.obtain(account, view, index)).submission


def kept_submission(
    witness: Witness, audit: AuditView, index: int | None = None
) -> Submission | None:
    """Return the submission that the audit names, if it is on disk.

    Another one may be there, left by a fork. `index` is the trainer's; the target's by default.
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
    state = witness.state
    count = state.config.judge.openings_tiles
    sampled = sampled_payload(audit.seed, header, state.num_tiles, count)
    holders = await witness.submissions.endpoints(view, audit.target)
    store, transport = witness.audits.openings, witness.submissions.transport
    return await store.fetch(transport, sampled, audit.openings_root, holders)


async def recompute_gradient(witness: Witness, audit: AuditView, evidence: Evidence) -> OwnGradient:
    """Return our own gradient of the sequences that the target had to take.

    Waits for its weights without a limit of its own: after a restart they are replayed first.
    """
    while True:
        try:
            return await _recomputed(witness, audit, evidence, in_reference=False)
        except WeightsLostError as error:
            report_delay(witness, audit, error)
            await witness.audits.tracker.next()


async def recompute_in_reference(witness: Witness, audit: AuditView, evidence: Evidence) -> Own:
    """Return it in reference mode, as jurors compare it. Raises WeightsLostError."""
    return (await _recomputed(witness, audit, evidence, in_reference=True)).own


async def _recomputed(
    witness: Witness, audit: AuditView, evidence: Evidence, *, in_reference: bool
) -> OwnGradient:
    runtime, kept, work = witness.chain.runtime, witness.audits.kept, witness.work
    turn = witness.audits.turn
    # Two recomputations at once would each take twice as long.
    async with turn.take(runtime):
        begun = runtime.seconds()
        load = partial(kept.load, audit.round, audit.canonical_root)
        saved = await turn.compute(runtime, or_none, witness, audit, load)
        if saved is None:
            return OwnGradient(Own(None))
        ids = await assigned_sequences(witness, audit, evidence.header, saved.cursor)
        read = partial(witness.state.data.sequences, ids)
        batch = await turn.compute(runtime, or_none, witness, audit, read)
        if batch is None:
            return OwnGradient(Own(None))
        function = work.reference_gradient if in_reference else work.gradient
        compute = partial(function, saved.tensors, batch)
        tiles = await turn.compute(runtime, or_none, witness, audit, compute)
        tracker = witness.audits.tracker
        params = tracker.view.run.params
        window = params.jury_commit_slots if in_reference else params.verdict_commit_slots

        def again() -> Tiles | None:
            # A judge that begins too late might miss its window, and be fined for silence.
            if is_late(tracker.view, audit, window):
                return None
            second = partial(work.second_gradient, saved.tensors, batch, in_reference=in_reference)
            return or_none(witness, audit, second)

        return OwnGradient(Own(tiles, again), seconds_since(begun, runtime))


def or_none(witness: Witness, audit: AuditView, compute: Callable[[], T]) -> T | None:
    """Return what a judge computes; None if there is no gradient or it finds no memory.

    Then we accuse nobody. We do not try again either: a silent seat pays more than one that cannot
    tell.
    """
    try:
        with as_memory_error():
            return compute()
    except NO_GRADIENT as error:
        report_no_gradient(witness, audit, error)
        return None
    except MemoryError as error:
        report_out_of_memory(witness, audit, error)
        return None


def report_no_gradient(witness: Witness, audit: AuditView, error: Exception) -> None:
    """Report that an audited batch has no gradient to compare with."""
    witness.chain.events.emit(
        "gradient_refused", round=audit.round, target=audit.target, reason=str(error)
    )


def report_out_of_memory(witness: Witness, audit: AuditView, error: MemoryError) -> None:
    """Report that memory did not suffice for an audit."""
    give_back()
    witness.chain.events.emit(
        "judge_out_of_memory", round=audit.round, target=audit.target, reason=first_line(error)
    )


def seconds_since(begun: float | None, runtime: Runtime) -> float | None:
    """Return what a stopwatch that was read as `begun` has counted; None without one."""
    now = runtime.seconds()
    return None if begun is None or now is None else now - begun


async def assigned_sequences(
    witness: Witness, audit: AuditView, header: Header, cursor: int
) -> tuple[int, ...]:
    """Return the ids that the chain assigned to the target, whatever its header says.

    `cursor` is the cursor before the round. Once the ring has dropped the round, its ranks are not
    known any more. Then the ids are those of the rank whose data the header names. If it names the
    data of no rank, they are those of the first rank; the work does not match these either.
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
    """Report what an audit waits for."""
    witness.chain.events.emit(
        "judging_delayed", round=audit.round, target=audit.target, reason=str(error)
    )
