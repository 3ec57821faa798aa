"""The state of a participant for audits, both of its own work and of work that it judges.

Owns: the fields. Never: behaviour. Next: `audit_tracker.py` for what is known of the audits.
"""

from dataclasses import dataclass, field

from troth_client.runtime.turn import Turn
from troth_client.state.audit_tracker import AuditTracker
from troth_client.state.kept_weights import KeptWeights
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.unneeded import Unneeded
from troth_client.state.verdict_store import Duty, VerdictStore


@dataclass(frozen=True, slots=True)
class AuditState:
    """Opening sets, kept weights, verdicts, and what the tracker knows.

    `turn` is held while a judge recomputes: two at once would each take twice as long. The sets and
    duties that seem over wait in `idle_sets` and `idle_duties` before their files are removed.
    """

    openings: OpeningsStore
    kept: KeptWeights
    verdicts: VerdictStore
    tracker: AuditTracker
    turn: Turn = field(default_factory=Turn)
    idle_sets: Unneeded[tuple[int, int]] = field(default_factory=Unneeded)
    idle_duties: Unneeded[Duty] = field(default_factory=Unneeded)
