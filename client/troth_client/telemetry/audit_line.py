"""One audit as events show it: verdicts, accusation, case, money.

Owns: the line of one audited payload, folded from events in any order.
Never: reads the chain; `troth case show` and the demo's summary do, where proof is needed.
Next: `board.py`, which holds the lines; `display.py`, which draws those worth showing.
"""

from collections import Counter
from dataclasses import dataclass, field

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_client.telemetry.events import Event, int_of
from troth_coordinator.rules.audit_view import WITH_JURY, AuditStage

OK = "OK"


@dataclass(slots=True)
class AuditLine:
    """One audited payload. `findings` holds the verdicts that are not ok.

    `taken` and the `juror_fees` that were paid from it are lamports.
    """

    round: int
    target: int
    stage: AuditStage = AuditStage.REQUESTED
    outcome: int = 0
    case_outcome: int = 0
    taken: int = 0
    juror_fees: int = 0
    is_closed: bool = False
    num_judged: int = 0
    findings: dict[str, str] = field(default_factory=dict)
    votes: dict[str, str] = field(default_factory=dict)

    @property
    def is_notable(self) -> bool:
        """Whether a witness found a fault, the work could not be judged, or it is accused."""
        is_unjudged = self.outcome in (AuditOutcome.NO_OPENINGS, AuditOutcome.UNPROVEN)
        return bool(self.findings) or is_unjudged or self.stage >= AuditStage.ACCUSED

    @property
    def is_conviction(self) -> bool:
        """Whether the jury convicted."""
        return self.case_outcome == CaseOutcome.CONVICTED

    @property
    def step(self) -> tuple[int, ...]:
        """The step of the audit, for a log that reports it once; verdicts and votes leave it."""
        is_drawn = self.stage >= AuditStage.CASE_COMMIT
        is_accused = self.stage >= AuditStage.ACCUSED
        return self.outcome, is_accused, is_drawn, self.case_outcome, self.is_closed

    def take(self, event: Event) -> None:
        """Fold one event of this audit in."""
        name, verdict = event["event"], str(event.get("verdict"))
        participant = str(event.get("participant"))
        if name == "audit_changed":
            # Participants read the chain at different moments: the latest stage is right.
            stage = AuditStage.__members__.get(str(event.get("stage")), self.stage)
            self.stage = max(self.stage, stage)
            self.outcome = max(self.outcome, int_of(event, "outcome"))
            self.case_outcome = max(self.case_outcome, int_of(event, "case_outcome"))
            self.taken = max(self.taken, int_of(event, "taken"))
            self.juror_fees = max(self.juror_fees, int_of(event, "juror_fees"))
        elif name == "audit_closed":
            self.is_closed = True
        elif name == "judged":
            self.num_judged += 1
            if verdict != OK:
                self.findings[participant] = verdict.lower()
        elif name == "judged_case":
            self.votes[participant] = verdict.lower()

    def steps(self) -> list[str]:
        """Return what has happened so far, in words."""
        steps = [
            f"{verdict} found by {count} of {self.num_judged}"
            for verdict, count in sorted(Counter(self.findings.values()).items())
        ]
        if self.outcome == AuditOutcome.NO_OPENINGS:
            steps.append("no openings: fined at once")
        elif self.outcome == AuditOutcome.UNPROVEN:
            steps.append("not proven: no reward for that round")
        elif self.outcome == AuditOutcome.UNAVAILABLE:
            steps.append("openings unavailable to the seats: a jury judges")
        if self.stage >= AuditStage.ACCUSED:
            steps.append("accused")
        if self.stage in WITH_JURY:
            steps.append("jury drawn")
        if self.case_outcome:
            is_refusal = self.case_outcome == CaseOutcome.NO_OPENINGS
            charge = "unavailable" if is_refusal else "mismatch"
            num = Counter(self.votes.values())[charge]
            outcome = CaseOutcome(self.case_outcome).name.lower().replace("_", " ")
            steps.append(f"{outcome}, {num} of {len(self.votes)} votes for {charge}")
        return steps
