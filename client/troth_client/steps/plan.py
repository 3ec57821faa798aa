"""Plan: the duties of this participant in the open round, as the chain states them.

Owns: reading the plan from the view. Never: chooses; rank and cursor leave no choice (section 4).
Next: `produce.py`.
"""

from troth_client.state.records import RoundPlan
from troth_client.state.round_state import RoundState
from troth_client.telemetry.spans import timed
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.assignment import sequences_of
from troth_coordinator.rules.ids import ParticipantIndex
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, RoundView


@timed("plan")
async def make_plan(
    state: RoundState, index: ParticipantIndex, view: NetworkView, round_: RoundView
) -> RoundPlan:
    """Return the plan of participant `index` for a round that is open on chain."""
    is_trainer = bitmap.has(round_.trainers, index)
    sequences: tuple[int, ...] = ()
    if is_trainer:
        per_payload = state.config.train.sequences_per_payload
        sequences = sequences_of(state.order, round_, index, per_payload)
    return RoundPlan(
        round=round_.round,
        epoch=round_.epoch,
        cursor=round_.cursor,
        is_member=bitmap.has(round_.members, index),
        is_trainer=is_trainer,
        is_commit_open=view.run.round == round_.round and view.run.phase == Phase.COMMIT,
        sequences=sequences,
        previous_included=round_.ballots[index].previous_included,
    )
