"""One participant of one run: its parts, put together.

Owns: the composition that a round and its sibling tasks receive. Steps take the parts they use.
Never: behaviour. Next: `round.py`, `audit_round.py`.
"""

from dataclasses import dataclass

from troth_client.audit.witness import Witness
from troth_client.network.chain import RunChain
from troth_client.network.submissions import Submissions
from troth_client.state.audit_state import AuditState
from troth_client.state.round_state import RoundState
from troth_client.state.work import TrainerWork
from troth_client.steps.replay import Replay


@dataclass(frozen=True, slots=True)
class Member:
    """The chain as we see it, what we hold for rounds and audits, and what we compute."""

    chain: RunChain
    state: RoundState
    audits: AuditState
    submissions: Submissions
    work: TrainerWork
    witness: Witness
    replay: Replay
