"""Opened tiles held against payloads exactly, and the verdicts of seats and jurors against that.

Owns: the tests of the judge that need no gradient, for every opening set that a source has.
Never: computes a gradient: `recompute.py` does, for a few. Never fails for sets that nobody has.
Next: `troth_attestation/work.py` for the tests.

Presence, places and signs of a payload follow from the opened tiles, bit for bit. So everybody who
read the same bytes must answer the same, whatever the machine. A doubt contradicts nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Final, Generic

from troth_attestation import openings as opened
from troth_attestation.header import HEADER_BYTES, decode
from troth_attestation.measure import JudgeRule
from troth_attestation.openings import Sampled
from troth_attestation.signs import Signs
from troth_attestation.verdict import Verdict, VerdictKind
from troth_attestation.work import judge_exactly
from troth_audit.replay.evidence import SIGNED_HEADER_BYTES, Collector
from troth_audit.replay.findings import Finding, Rule, discrepancy, note
from troth_audit.replay.ports import Decoded
from troth_audit.replay.told import Told
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.bitmap import indices_of
from troth_coordinator.rules.view import RunView

_CONTRADICT: Final[Mapping[VerdictKind, tuple[VerdictKind, ...]]] = {
    VerdictKind.MISMATCH: (VerdictKind.OK,),
    VerdictKind.UNAVAILABLE: (VerdictKind.OK, VerdictKind.MISMATCH),
}
"""Verdicts that nobody can honestly give, by what the open tiles show."""

Found = Verdict | Finding | None
"""The tests say this: a finding where a source lies, None where they cannot tell."""


@dataclass(slots=True)
class _Open:
    """One audit whose tiles are open: the result to come, and the verdicts shown so far."""

    found: Future[tuple[str, Found]]
    seats: dict[int, VerdictKind] = field(default_factory=dict)
    jurors: dict[int, VerdictKind] = field(default_factory=dict)
    is_counted: bool = False


@dataclass(slots=True)
class Exact(Generic[Decoded]):
    """A checker; `executor` tests the opening sets of the rounds in `span` beside everything."""

    told: Told
    collector: Collector[Decoded]
    signs: Callable[[Decoded], Signs]
    bounds: JudgeRule
    executor: Executor
    span: range
    _open: dict[tuple[int, int], _Open] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)

    def check(self, event: Event) -> Iterator[Finding]:
        """Yield what does not fit; see `Checker`."""
        yield from self._check(event)

    def end(self, run: RunView | None) -> Iterator[Finding]:
        """Yield what is found about audits that have not ended; see `Ending`."""
        for key, audit in self._open.items():
            yield from self._judged(key, audit.seats, 0, is_counted=not audit.is_counted)
        self._open.clear()

    def counts(self) -> Mapping[str, int]:
        """Return how many opening sets were tested, and how many are in no source."""
        return {name: self._counts[name] for name in ("exact_tests", "openings_not_kept")}

    @singledispatchmethod
    def _check(self, event: Event) -> Iterator[Finding]:
        """Most events say nothing of work."""
        yield from ()

    @_check.register
    def _(self, event: of_audits.OpeningsPosted) -> Iterator[Finding]:
        round_, key = self.told.rounds.get(event.round), (event.round, event.target)
        commit = None if round_ is None else round_.commits.get(event.target)
        if round_ is None or commit is None or round_.seed is None or event.round not in self.span:
            return
        about = commit.header_hash, round_.seed.seed, event.root
        self._open[key] = _Open(self.executor.submit(self._test, key, about))
        yield from ()

    @_check.register
    def _(self, event: of_audits.VerdictRevealed) -> Iterator[Finding]:
        audit = self._open.get((event.round, event.target))
        if audit is not None and event.verdict in set(VerdictKind):
            audit.seats[event.index] = VerdictKind(event.verdict)
        yield from ()

    @_check.register
    def _(self, event: of_audits.JurorVoteRevealed) -> Iterator[Finding]:
        audit = self._open.get((event.round, event.target))
        is_work = event.audit_kind == AuditKind.WORK
        if audit is not None and is_work and event.verdict in set(VerdictKind):
            audit.jurors[event.index] = VerdictKind(event.verdict)
        yield from ()

    @_check.register
    def _(self, event: of_audits.AuditSettled) -> Iterator[Finding]:
        key = event.round, event.target
        if key in self._open:
            yield from self._judged(key, self._open[key].seats, event.paid)
            self._open[key].seats, self._open[key].is_counted = {}, True

    @_check.register
    def _(self, event: of_audits.CaseSettled) -> Iterator[Finding]:
        key = event.round, event.target
        if key in self._open and event.audit_kind == AuditKind.WORK:
            yield from self._judged(key, self._open[key].jurors, event.paid, is_counted=False)

    @_check.register
    def _(self, event: of_audits.AuditClosed) -> Iterator[Finding]:
        if event.audit_kind == AuditKind.WORK:
            self._open.pop((event.round, event.target), None)
        yield from ()

    def _judged(
        self,
        key: tuple[int, int],
        shown: Mapping[int, VerdictKind],
        paid: int,
        *,
        is_counted: bool = True,
    ) -> Iterator[Finding]:
        """Hold verdicts against the tests. Of one that earned a fee it is proven that it is false.

        The protocol deals with the others: they are notes.
        """
        name, found = self._open[key].found.result()
        if is_counted:
            self._counts[name] += 1
        if isinstance(found, Finding):
            if is_counted:
                yield found
            return
        if found is None:
            return
        fees = set(indices_of(paid))
        for index, kind in sorted(shown.items()):
            if kind in _CONTRADICT.get(found.kind, ()):
                tell = discrepancy if index in fees else note
                expected = f"{found.kind.name.lower()} about participant {key[1]}"
                expected += f", by its open tiles alone: {found.explain()}"
                yield tell(Rule.VERDICT, expected, kind.name.lower(), key[0], index)

    def _test(self, key: tuple[int, int], about: tuple[bytes, bytes, bytes]) -> tuple[str, Found]:
        """Return the name of a count, and the result. In threads."""
        (header_hash, seed, root), terms = about, self.collector.terms
        sources, weights = self.collector.sources, self.collector.weights
        signed = sources.get("header", header_hash, SIGNED_HEADER_BYTES)
        if signed is None or len(signed) != SIGNED_HEADER_BYTES:
            return "", None  # the check of headers says so
        header = decode(signed[:HEADER_BYTES])
        payload = sources.get("payload", header.payload_root, terms.payload_bytes)
        if payload is None:
            return "", None
        decoded = weights.decode(payload, header.payload_root)
        signs = None if isinstance(decoded, str) else self.signs(decoded)
        count = terms.config.judge.openings_tiles
        sampled = Sampled.of(header, seed, terms.num_tiles, count)
        most_bytes = opened.size(sampled)
        data = sources.get("openings", root, most_bytes)
        if data is not None:
            return "exact_tests", judge_exactly(data, sampled, signs, self.bounds)
        instead = sources.instead("openings", root, most_bytes)
        if not instead:
            return "openings_not_kept", None
        return "exact_tests", discrepancy(Rule.OPENINGS, f"openings {root.hex()}", instead, *key)
