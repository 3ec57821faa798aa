"""Moving a run on that all of its clients have left, without taking part in it.

Owns: the transition that is due when nobody acts any more, and when the next one will be.
Never: proposes a root: a round whose members are gone closes void.
Next: `cancel.py`, which ends the run at last; `settle.py` for its audits.
"""

from solders.keypair import Keypair

from troth_client.steps.transitions import ENDED_BY_ADVANCE, pending_seeds
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.chain.operations import Crank
from troth_coordinator.rules import progress
from troth_coordinator.rules.ids import NONE, Slot
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

CLOSED_VOID = (Phase.ATTEST, Phase.COOLDOWN)


async def move_on(client: CoordinatorClient, at: RunAddresses, key: Keypair) -> NetworkView:
    """Take each transition that is due, until none is; return the view of then.

    Members of a run that works are faster: a phase must be over, and a round in Attest is closed
    void only when the grace after it is over, too. A run that waits gets its last Warmup here, but
    no other. Anybody may: `key` only pays the fees.

    Raises ProgramRefusedError for a transition that is due and that the program refuses.
    """
    crank, view = Crank(client, at, key), await client.snapshot(at.run)
    while due_from(view) <= view.slot:
        if await _settle_seeds(crank, view):
            return view  # the next round opens only with the new seed
        await _take(crank, view)
        view = await client.snapshot(at.run)
    return view


def due_from(view: NetworkView) -> Slot:
    """Return the first slot in which `move_on` takes a step, if nobody acts meanwhile."""
    run = view.run
    if run.phase in CLOSED_VOID:
        return view.slot if progress.is_forced_void(view) else progress.void_allowed_from(run)
    if run.phase == Phase.PAUSED:
        return Slot(run.paused_at_slot + run.params.max_pause_slots - run.pause_used_slots)
    if run.phase == Phase.WAITING_FOR_MEMBERS:
        is_last = progress.can_begin(view) and not progress.is_in_vain(view)
        return progress.vain_from(run) if is_last and run.round > 0 else Slot(NONE)
    if run.phase in ENDED_BY_ADVANCE:
        return Slot(min(run.phase_end_slot + 1, NONE))
    return Slot(NONE)


async def _take(crank: Crank, view: NetworkView) -> ConfirmedTransaction:
    run = view.run
    if run.phase in CLOSED_VOID:
        return await crank.close_void(run.round)
    if run.phase == Phase.PAUSED:
        return await crank.resume_run(run.round)
    return await crank.advance_phase(run.round)


async def _settle_seeds(crank: Crank, view: NetworkView) -> bool:
    """Freeze the seeds that the next open may wait for.

    Returns whether one was lost and waits for a later slot now.
    """
    is_later = False
    for round_ in pending_seeds(view):
        try:
            await crank.freeze_seed(round_)
        except ProgramRefusedError as error:
            # Any other refusal means that its slot has not come, or that somebody was faster.
            if error.name == "SeedSlotLost":
                await crank.retarget_seed(round_)
                is_later = True
    return is_later
