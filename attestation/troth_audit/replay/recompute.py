"""Work computed again by the auditor, and held against what the run decided about it.

Owns: the auditor's own verdict on a drawn payload, and when it contradicts the chain.
Never: computes a gradient: its caller does, on the weights of the round.
Next: `draw.py` for what is drawn; `troth_attestation/work.py` for the judge.

The judge is the one that seats use, with the run's own bounds. Its kinds never contradict on honest
machines: where a seat finds ok, no auditor finds a mismatch. A doubt contradicts nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from troth_attestation import openings as opened
from troth_attestation.measure import JudgeRule, Own, Tiles, agreement_of, surely_idle
from troth_attestation.openings import Sampled
from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.sketch import differ, proves, sketch
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_attestation.work import judge, yardstick_of
from troth_audit.replay.draw import Drawn, Place
from troth_audit.replay.evidence import Evidence, assigned
from troth_audit.replay.findings import Finding, Rule, discrepancy, missing, note
from troth_audit.replay.ports import Decoded, Gradients, Sources, Terms
from troth_coordinator.rules.config import MICRO, NUM_FAR

_MATCHES = "work that matches"


@dataclass(slots=True)
class Recompute(Generic[Decoded]):
    """Computes drawn payloads again. Call `check` while the weights are those of their round."""

    terms: Terms
    sources: Sources
    gradients: Gradients[Decoded]
    rule: JudgeRule
    drawn: Mapping[Place, Drawn]
    num_judged: int = 0
    num_compared: int = 0
    num_sketches: int = 0

    def check(self, evidence: Evidence[Decoded]) -> Iterator[Finding]:
        """Yield what contradicts our own gradient, if this payload is drawn."""
        claim, header, payload = evidence.claim, evidence.header, evidence.payload
        place = claim.round, claim.index
        drawn = self.drawn.get(place)
        if drawn is None or header is None or payload is None:
            return
        own = self.gradients.own(assigned(self.terms, claim))
        if isinstance(own, str):
            yield missing(Rule.WORK, own, *place)
            return
        if not drawn.openings_root:
            yield from self._compare(evidence, own)
            return
        count = self.terms.config.judge.openings_tiles
        sampled = Sampled.of(header, drawn.seed, self.terms.num_tiles, count)
        data = self.sources.get("openings", drawn.openings_root, opened.size(sampled))
        if data is None:
            # Where a source has other bytes instead, `exact.py` names them as well.
            yield missing(Rule.OPENINGS, f"openings {drawn.openings_root.hex()}", *place)
            return
        signs = self.gradients.signs(payload)
        verdict = judge(data, sampled, drawn.openings_root, signs, own, self.rule)
        self.num_judged += 1
        yield from _contradictions(verdict, drawn, place)
        if own.tiles is not None:
            yield from self._sketches(own.tiles, drawn, place)

    def give_up(self, place: Place) -> Iterator[Finding]:
        """Say that there were no weights to compute on, if this payload is drawn."""
        if place in self.drawn:
            yield missing(Rule.WORK, f"the weights of round {place[0]}", *place)

    def done(self) -> tuple[int, ...]:
        """Return the counts in an order of their own, for `restore`."""
        return tuple(self.counts().values())

    def restore(self, done: Sequence[int]) -> None:
        """Go on from the counts of an earlier process."""
        if len(done) == len(self.counts()):
            self.num_judged, self.num_compared, self.num_sketches = done

    def counts(self) -> Mapping[str, int]:
        """Return how many payloads were judged, or compared by their votes; and the sketches."""
        return {
            "recomputed_audits": self.num_judged,
            "recomputed_votes": self.num_compared,
            "recomputed_sketches": self.num_sketches,
        }

    def _compare(self, evidence: Evidence[Decoded], own: Own) -> Iterator[Finding]:
        """Hold the votes of a payload without open tiles against a gradient: doubts only."""
        claim, payload = evidence.claim, evidence.payload
        if payload is None:
            return
        signs, place = self.gradients.signs(payload), (claim.round, claim.index)
        self.num_compared += 1
        yardstick = yardstick_of(own, self.terms.num_tiles)
        if isinstance(yardstick, Reason):
            return
        num_idle = surely_idle(yardstick, signs, self.rule)
        if num_idle >= NUM_FAR:
            found = f"{num_idle} tiles with votes and no gradient"
            yield note(Rule.WORK, "votes where there is a gradient", found, *place)
        bound = self.rule.judge.agreement_bound_micro / MICRO
        agreement = agreement_of(yardstick, signs, self.rule) if bound else None
        if agreement is not None and agreement < bound:
            expected = f"votes that agree with the gradient by {bound:.3f}"
            yield note(Rule.WORK, expected, f"{agreement:.3f}", *place)

    def _sketches(self, own: Tiles, drawn: Drawn, place: Place) -> Iterator[Finding]:
        ours = sketch(own, drawn.seed, place[1])
        if not any(ours):
            return
        for seat, (kind, theirs) in sorted(drawn.shown.items()):
            if kind not in (VerdictKind.OK, VerdictKind.MISMATCH) or not proves(kind, theirs):
                continue
            self.num_sketches += 1
            if differ(ours, theirs, drawn.sketch_factor):
                tell = discrepancy if drawn.paid >> seat & 1 else note
                expected = f"a sketch of the gradient of participant {place[1]}"
                yield tell(Rule.VERDICT, expected, "a sketch of something else", place[0], seat)


def _contradictions(verdict: Verdict, drawn: Drawn, place: Place) -> Iterator[Finding]:
    if verdict.kind == VerdictKind.OK and drawn.is_convicted:
        yield discrepancy(Rule.WORK, _MATCHES, "a conviction", *place)
    if verdict.kind == VerdictKind.MISMATCH and not drawn.is_convicted:
        tell = note if drawn.is_under_way else discrepancy
        yield tell(Rule.WORK, _MATCHES, f"{verdict.explain()}: {_ended(drawn)}", *place)
    has_answer = verdict.kind != VerdictKind.UNAVAILABLE
    if not has_answer and drawn.outcome == AuditOutcome.CLEARED:
        yield discrepancy(Rule.OPENINGS, "openings that can be judged", verdict.explain(), *place)


def _ended(drawn: Drawn) -> str:
    if drawn.outcome is None:
        return "its audit has not ended"
    if drawn.is_under_way:
        return "its case has not ended"
    if drawn.case_outcome is not None:
        return _as_named("its case", CaseOutcome, drawn.case_outcome)
    return _as_named("its audit", AuditOutcome, drawn.outcome)


def _as_named(what: str, names: type[AuditOutcome | CaseOutcome], outcome: int) -> str:
    if outcome not in set(names):
        return ""
    return f"{what} ended as {names(outcome).name.lower()}"
