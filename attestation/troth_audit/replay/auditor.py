"""The auditor: one pass over a ledger, with everything that can be checked on the way.

Owns: the order of fold, checks and replay, how far fetching runs ahead, and the end of the audit.
Never: keeps what grows with the run.
Next: `closes.py`, `evidence.py`, `submissions.py`, `replayed.py`, `account.py`.

Events are folded first: those of one transaction are checked only when the chain hash can still be
right. Bytes of a closed round are fetched and hashed by threads while later events are folded.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from typing import Generic

from troth_attestation.quorum import CaseOutcome
from troth_audit.replay.account import Absence, Word, absent, compare, differences
from troth_audit.replay.ending import reason
from troth_audit.replay.evidence import Claim, Collector, Evidence
from troth_audit.replay.findings import Finding, Grade, Rule, discrepancy
from troth_audit.replay.order import Order
from troth_audit.replay.ports import Checker, Counting, Decoded, Ending, Terms
from troth_audit.replay.recompute import Recompute
from troth_audit.replay.replayed import Replayed, State, Waiting
from troth_audit.replay.report import MOST_FINDINGS, Report, RoundLine
from troth_audit.replay.saved import Saved
from troth_audit.replay.series import Lines
from troth_audit.replay.submissions import Committed, Submissions
from troth_audit.replay.told import RoundTold, Told
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_audits import CaseOpened, CaseSettled
from troth_coordinator.chain.event_types_life import ParamsApplied, RunCreated
from troth_coordinator.chain.event_types_rounds import (
    CheckpointStored,
    PayloadStruck,
    RoundClosed,
    RoundOpened,
)
from troth_coordinator.ledger.entries import Entry, EntryReader
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.fold import Fold
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKey
from troth_coordinator.rules.errors import RulesError
from troth_coordinator.rules.ids import MAX_PARTICIPANTS
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.view import RoundFlag, RunView

MOST_AHEAD = 8
"""Rounds whose bytes are fetched before the weights have come to them, at most."""
AHEAD_BYTES = 256 * 2**20
"""Decoded payloads of these rounds take up to so many bytes."""
MICRO = 10**6


def _nothing(_round: int) -> None:
    pass


def _no_state(_state: State) -> None:
    pass


Step = Callable[[], Iterator[Finding]]


@dataclass(slots=True)
class Replay(Generic[Decoded]):
    """The part of an audit that needs bytes: headers, payloads, weights.

    `span` are the rounds whose headers and payloads are checked. `recompute` is None where nobody
    asked for gradients.
    """

    collector: Collector[Decoded]
    submissions: Submissions
    weights: Replayed[Decoded]
    executor: Executor
    span: range
    num_ahead: int = MOST_AHEAD
    order: Order = field(default_factory=Order)
    recompute: Recompute[Decoded] | None = None
    on_round: Callable[[int], None] = _nothing
    on_state: Callable[[State], None] = _no_state
    rounds: Lines = field(default_factory=Lines)
    found: list[Finding] = field(default_factory=list)
    resumed: Saved | None = None
    _steps: deque[Step] = field(default_factory=deque)
    _num_ahead: int = 0
    _num_found: Counter[Grade] = field(default_factory=Counter)
    _chain_hash: bytes = b""
    _is_same_ledger: bool = False

    def take(self, told: Told, event: Event) -> Iterator[Finding]:
        """Note what an event means for the weights, before `told` takes it."""
        match event:
            case RunCreated():
                self._steps.append(partial(self.weights.begin, event.genesis_root))
            case RoundClosed() if told.newest is not None:
                self._closed(told, told.newest, event)
            case PayloadStruck():
                self._steps.append(partial(self._strike, event))
            case CheckpointStored():
                self._steps.append(partial(self.weights.checkpoint, event))
            case RoundOpened() if told.restart is not None and told.restart[0] == event.round:
                self._steps.append(partial(self.weights.restart, event.round, event.cursor))
        yield from self._run(self.num_ahead)

    def finish(self) -> Iterator[Finding]:
        """Do all that is left."""
        yield from self._run(0)
        yield from self.weights.end_of_ledger()

    def _run(self, most_ahead: int) -> Iterator[Finding]:
        while self._steps and (self._num_ahead > most_ahead or most_ahead == 0):
            for one in self._steps.popleft()():
                if self._num_found[one.grade] < MOST_FINDINGS:
                    self.found.append(one)
                self._num_found[one.grade] += 1
                yield one

    def saved(self, state: State) -> Saved:
        """Return the point that the replay has come to: the root of this closed round."""
        weights, submissions, recompute = self.weights, self.submissions, self.recompute
        terms = submissions.terms
        return Saved(
            program=terms.program.hex(),
            run=terms.run.hex(),
            genesis_hash=terms.genesis_hash.hex(),
            chain_hash=self._chain_hash.hex(),
            order=self.order,
            round=state.round,
            cursor=state.cursor,
            root=state.root.hex(),
            applied=weights.num_applied,
            roots=weights.num_roots - 1,  # it is compared again
            checkpoints=weights.num_checkpoints,
            headers=submissions.num_headers,
            payloads=submissions.num_payloads,
            recomputed=() if recompute is None else recompute.done(),
            residuals=submissions.residuals(),
            findings=self.found,
            lines=self.rounds.kept,
        )

    def restore(self, saved: Saved) -> None:
        """Go on where an earlier process was; call it before the first event."""
        self.submissions.restore(saved)
        weights = self.weights
        weights.num_applied, weights.num_roots = saved.applied, saved.roots
        weights.num_checkpoints = saved.checkpoints
        if self.recompute is not None:
            self.recompute.restore(saved.recomputed)
        self.found, self.resumed = list(saved.findings), saved
        self._num_found.update(one.grade for one in saved.findings)
        for line in saved.lines:
            self.rounds.add(line)

    def _strike(self, event: PayloadStruck) -> Iterator[Finding]:
        self.submissions.strike(event.round, event.target)
        yield from self.weights.strike(event.round, event.target)

    def _closed(self, told: Told, round_: RoundTold, event: RoundClosed) -> None:
        opened, state = round_.opened, None
        if not _is_void(event):
            state = State(event.round, opened.cursor, event.canonical_root)
        wanted: list[tuple[Committed, Future[Evidence[Decoded]]]] = []
        if state is not None and not opened.root_only and event.round in self.span:
            for committed in _commits(told, round_, event):
                found = self.executor.submit(self.collector.collect, committed.claim)
                wanted.append((committed, found))
        self._num_ahead += 1
        self._steps.append(partial(self._close, round_, event, state, wanted))

    def _close(
        self,
        round_: RoundTold,
        event: RoundClosed,
        state: State | None,
        wanted: Sequence[tuple[Committed, Future[Evidence[Decoded]]]],
    ) -> Iterator[Finding]:
        self._num_ahead -= 1
        yield from self._same_ledger(event)
        if state is not None:
            yield from self.weights.close(state)
            if not self.weights.is_lost:
                self.on_state(state)
        waiting: Waiting[Decoded] = Waiting(event.round, bitmap.count(event.trainers), {})
        losses = []
        for committed, future in wanted:
            evidence = future.result()
            yield from self._checked(committed, evidence, waiting)
            if committed.claim.is_included:
                waiting.payloads[committed.claim.index] = evidence.payload
                if evidence.header is not None:
                    losses.append(evidence.header.mean_loss)
                yield from self._recomputed(evidence)
        if round_.opened.root_only:
            return
        self.weights.wait(waiting)
        loss = sum(losses) / len(losses) / MICRO if losses else None
        if self.resumed is None or event.round >= self.resumed.round:
            self.rounds.add(_line(event, loss))
        self.on_round(event.round)

    def _checked(
        self, committed: Committed, evidence: Evidence[Decoded], waiting: Waiting[Decoded]
    ) -> Iterator[Finding]:
        """Yield what is wrong with a submission; what no source has of it waits with its round."""
        claim = committed.claim
        if claim.is_included and not evidence.is_whole:
            waiting.absent.add(claim.index)
        for one in self.submissions.check(committed, evidence):
            if claim.is_included and one.grade is Grade.MISSING:
                waiting.lacking.setdefault(claim.index, []).append(one)
            else:
                yield one

    def _recomputed(self, evidence: Evidence[Decoded]) -> Iterator[Finding]:
        """Compute an included payload again, on the weights of its round."""
        if self.recompute is None:
            return
        if self.weights.is_lost:
            yield from self.recompute.give_up((evidence.claim.round, evidence.claim.index))
        else:
            yield from self.recompute.check(evidence)

    def _same_ledger(self, event: RoundClosed) -> Iterator[Finding]:
        """Look for the close at which an earlier process kept its point, in this ledger."""
        self._chain_hash, saved = event.chain_hash, self.resumed
        if saved is None or self._is_same_ledger:
            return
        self._is_same_ledger = event.chain_hash.hex() == saved.chain_hash
        if event.round > saved.round:
            self._is_same_ledger = True  # said once
            expected = f"a kept point of this ledger, at a close of round {saved.round}"
            found = "one of another ledger: name another folder for this one"
            yield Finding(Grade.MISSING, Rule.CHAIN_HASH, expected, found, saved.round)


@dataclass(slots=True)
class Auditor(Generic[Decoded]):
    """Checks a run from its ledger. `replay` is None where config or manifest could not be had.

    `checkers` are asked before `told` takes an event; counts of those that count go to the report.
    """

    reader: EntryReader
    told: Told
    replay: Replay[Decoded] | None
    checkers: Sequence[Checker]
    words: Sequence[Word]
    gone: Sequence[Absence] = ()
    report: Report = field(default_factory=Report)
    _fold: Fold = field(default_factory=Fold)
    _passed: set[str] = field(default_factory=set)
    _convicted: set[AuditKey] = field(default_factory=set)
    _accused: set[AuditKey] = field(default_factory=set)
    """Audits that a bond has made a case of, which has not ended."""

    def audit(self, entries: Iterable[Entry]) -> Report:
        """Read the ledger to its end, or to the first entry that does not fold."""
        report = self.report
        is_whole = True
        entry: Entry | None = None
        try:
            for entry in entries:
                self._take(entry)
        except (LedgerError, RulesError) as error:
            is_whole = False
            number = None if self.told.newest is None else self.told.newest.number
            report.add([reason(entry, error, number)])
            report.is_cut_short = True
        if self.replay is not None:
            report.add(self.replay.finish())
        report.excuse(self._convicted, "its maker was convicted of it")
        report.excuse(self._accused, "the case against its maker has not ended")
        if is_whole:
            report.add(absent(self.words, self.gone, self.told))
            report.add(differences(self.words))
            report.add(compare(self.words, self._fold, self.told, self._passed))
            for checker in self.checkers:
                if isinstance(checker, Ending):
                    report.add(checker.end(self._account()))
        self._count()
        return report

    def _take(self, entry: Entry) -> None:
        events = self.reader.events(entry)
        self._fold.absorb(events)
        slots = {event.slot for event in events} - {entry.slot}
        if slots:
            expected, found = f"events of slot {entry.slot}", f"of slot {min(slots)}"
            self.report.add([discrepancy(Rule.CHAIN_HASH, expected, found)])
        for event in events:
            if isinstance(event, RunCreated | ParamsApplied):
                ChainParams.from_view(event.params)  # every checker computes with them
            for checker in self.checkers:
                self.report.add(checker.check(event))
            if self.replay is not None:
                self.report.add(self.replay.take(self.told, event))
            self.told.take(event)
            self._note_case(event)
        at = self._fold.next_sequence, self._fold.hash
        for word in self.words:
            if at == (word.run.event_sequence, word.run.chain_hash):
                self._passed.add(word.source)

    def _note_case(self, event: Event) -> None:
        if not isinstance(event, CaseOpened | CaseSettled):
            return
        key = event.round, event.target, event.audit_kind
        if isinstance(event, CaseOpened):
            self._accused.add(key)
            return
        self._accused.discard(key)
        if event.outcome == CaseOutcome.CONVICTED:
            self._convicted.add(key)

    def _account(self) -> RunView | None:
        """Return the account that the whole ledger leads to."""
        ours = self._fold.next_sequence, self._fold.hash
        runs = (word.run for word in self.words)
        return next((run for run in runs if (run.event_sequence, run.chain_hash) == ours), None)

    def _count(self) -> None:
        report = self.report
        report.counts["events"] = self._fold.next_sequence
        report.counts["accounts"] = len(self._passed)
        report.counts["run_files"] = 0 if self.replay is None else 2
        for checker in self.checkers:
            if isinstance(checker, Counting):
                report.count(checker.counts())
        if self.replay is not None:
            if self.replay.resumed is not None:
                report.resumed_round = self.replay.resumed.round
            report.count(self.replay.weights.counts())
            report.count(self.replay.submissions.counts())
            if self.replay.recompute is not None:
                report.count(self.replay.recompute.counts())
            report.rounds = self.replay.rounds.kept


def most_ahead(terms: Terms) -> int:
    """Return how many rounds may be fetched ahead; a decoded payload has about twice its bytes."""
    of_round = 2 * MAX_PARTICIPANTS * terms.payload_bytes
    return max(1, min(MOST_AHEAD, AHEAD_BYTES // of_round))


def _is_void(event: RoundClosed) -> bool:
    return bool(event.flags & RoundFlag.VOID)


def _commits(told: Told, round_: RoundTold, event: RoundClosed) -> Iterator[Committed]:
    for index, commit in sorted(round_.commits.items()):
        member = round_.members.get(index)
        if member is None or not bitmap.has(event.trainers, index):
            continue  # the check of the close names it
        vouchers = {
            voucher: (round_.members[voucher].owner, attested.possession[index])
            for voucher, attested in round_.attests.items()
            if bitmap.has(attested.bitmap, index) and voucher in round_.members
        }
        claim = Claim(
            event.round,
            round_.opened.cursor,
            event.trainers,
            index,
            commit.header_hash,
            bitmap.has(event.included, index),
            vouchers,
        )
        yield Committed(
            claim,
            round_.opened.epoch,
            member.owner,
            member.session,
            told.previous_included(round_, index),
            commit.root_vote,
            event.canonical_root,
        )


def _line(event: RoundClosed, loss: float | None) -> RoundLine:
    return RoundLine(
        event.round,
        bitmap.count(event.members),
        bitmap.count(event.committed),
        bitmap.count(event.included),
        _is_void(event),
        loss,
    )
