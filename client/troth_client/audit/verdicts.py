"""The verdict of a seat: judged, sealed on disk, committed, revealed.

Owns: these four steps. Never: compares numbers (`troth_attestation` does) or waits for evidence.
Next: `audit_round.py`, which calls them in order.
"""

from dataclasses import dataclass, replace

from troth_attestation.cases import NO_SKETCH
from troth_attestation.measure import Own
from troth_attestation.sketch import Sketch, proves, sketch_hash
from troth_attestation.verdict import Reason, Statement, Verdict, VerdictKind
from troth_client.audit.duty import while_owed
from troth_client.audit.evidence import OwnGradient, report_out_of_memory, seconds_since
from troth_client.audit.judgement import Evidence
from troth_client.audit.sending import Purpose, send
from troth_client.audit.witness import Speaker, Witness
from troth_client.state.verdict_store import KeptStatement
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain.audit_instructions import Reveal
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.audits import Act, seat_duty
from troth_coordinator.rules.ids import Digest


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of a seat, the sketch of its gradient, the seconds of recomputing and judging."""

    verdict: Verdict
    sketch: Sketch
    seconds: float | None = None


NOT_SERVED = Finding(Verdict(VerdictKind.UNAVAILABLE, Reason.NOT_SERVED), NO_SKETCH)
"""No gradient is computed, because there is nothing to compare it with. Its sketch is ignored."""


async def judge_gradient(
    witness: Witness, audit: AuditView, evidence: Evidence, own: OwnGradient
) -> Finding:
    """Compare the payload with our own D(g), and sketch that."""
    runtime = witness.chain.runtime
    begun = runtime.seconds()
    verdict, proof = await judge_and_sketch(witness, audit, evidence, own.own, audit.seed)
    took = seconds_since(begun, runtime)
    seconds = None if took is None or own.seconds is None else round(own.seconds + took, 4)
    return Finding(verdict, proof, seconds)


async def judge_and_sketch(
    witness: Witness, audit: AuditView, evidence: Evidence, own: Own, seed: Digest
) -> tuple[Verdict, Sketch]:
    """Return the verdict and the sketch of our own gradient under `seed`.

    Where memory does not suffice beside a gradient, it is judged without one: we accuse nobody.
    """
    compute, work = witness.chain.runtime.compute, witness.work
    try:
        verdict, proof = await compute(work.judge, evidence, own), NO_SKETCH
        if own.tiles is not None:
            proof = await compute(work.sketch, own.tiles, seed, audit.target)
    except MemoryError as error:
        report_out_of_memory(witness, audit, error)
        verdict, proof = await compute(work.judge, evidence, Own(None)), NO_SKETCH
    return proven(verdict, proof), proof


def proven(verdict: Verdict, proof: Sketch) -> Verdict:
    """Return the verdict, inconclusive where the sketch of our own gradient proves nothing.

    The program would refuse the reveal, and hiding a commit is the dearest fault of all.
    """
    if proves(verdict.kind, proof):
        return verdict
    return replace(verdict, kind=VerdictKind.INCONCLUSIVE, reason=Reason.SKETCH_IS_ZERO)


def seal_verdict(witness: Witness, audit: AuditView, found: Finding) -> KeptStatement:
    """Write the finding and its salt to disk: a restarted process reveals the same verdict."""
    verdict = found.verdict
    witness.chain.events.emit(
        "judged",
        round=audit.round,
        target=audit.target,
        verdict=verdict.kind.name,
        reason=verdict.explain(),
        error=verdict.median_error,
        far_tiles=verdict.num_bad_tiles,
        residual=verdict.residual_ratio,
        seconds=found.seconds,
    )
    statement = Statement(
        run=witness.chain.run,
        round=audit.round,
        target=audit.target,
        witness=witness.chain.index,
        kind=verdict.kind,
        evidence=audit.openings_root,
        sketch_hash=sketch_hash(found.sketch),
    )
    return witness.audits.verdicts.seal_verdict(statement, found.sketch)


async def commit_verdict(witness: Speaker, audit: AuditView, statement: KeptStatement) -> None:
    """Send the hash of our verdict until the chain shows it or the window has ended."""
    chain, tracker = witness.chain, witness.audits.tracker
    async for view, now in while_owed(witness, audit, seat_duty, Act.COMMIT):
        step = make.commit_verdict(chain.at, chain.payer, now, chain.index, statement.commit())
        await send(chain, tracker, view, step, Purpose("verdict_committed", now.key))


async def reveal_verdict(witness: Speaker, audit: AuditView, statement: KeptStatement) -> None:
    """Show our verdict once all may, until the chain shows it or the window has ended."""
    chain, tracker = witness.chain, witness.audits.tracker
    shown = Reveal(int(statement.kind), statement.evidence, statement.sketch, statement.salt)
    async for view, now in while_owed(witness, audit, seat_duty, Act.REVEAL):
        step = make.reveal_verdict(chain.at, chain.payer, now, chain.index, shown)
        await send(chain, tracker, view, step, Purpose("verdict_revealed", now.key))
