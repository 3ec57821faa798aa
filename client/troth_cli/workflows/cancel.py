"""Cancel a run in which too few members appeared, so that their stakes are free again.

Owns: what must be true before `advance_phase` is sent: it would also begin a run that can begin.
Never: decides when a run may be ended; the program does.
Next: `move_on.py` for a run that its clients have left in another phase; `close.py`.
"""

from solders.keypair import Keypair

from troth_cli.errors import NotInVainError
from troth_cli.workflows.move_on import due_from, move_on
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.chain.operations import Crank
from troth_coordinator.rules import progress
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.seeds import round_seed_slot
from troth_coordinator.rules.view import NetworkView


async def cancel_run(
    client: CoordinatorClient, at: RunAddresses, key: Keypair
) -> ConfirmedTransaction:
    """End a run in which too few members appeared, or that all of its clients have left.

    Such a run goes through the phases that are left first, as far as they are due.

    Raises NotInVainError if the run works, may still begin, or belongs to another authority, and
    the program's refusals.
    """
    view = await move_on(client, at, key)
    _check(view, at, bytes(key.pubkey()))
    sent = await Crank(client, at, key).advance_phase(view.run.round)
    after = await client.read_run(at.run)
    if after.phase != Phase.FINISHED:
        raise _not_in_vain(
            at, "a run that too few have joined", "the last of them came just now", "It begins."
        )
    return sent


def _check(view: NetworkView, at: RunAddresses, key: bytes) -> None:
    run = view.run
    if run.phase != Phase.WAITING_FOR_MEMBERS:
        phase = run.phase.name.lower().replace("_", " ")
        step = "A run that has begun ends after its rounds; troth run pause makes it rest."
        if run.phase != Phase.FINISHED:
            step += f" Where all clients have stopped for good, {_repeat(view)}."
        raise _not_in_vain(at, "a run that waits for members", phase, step)
    is_authority = run.authority == key
    if progress.can_begin(view, by_authority=is_authority) and not progress.is_in_vain(
        view, is_authority
    ):
        found = f"{progress.num_pending(view)} members, enough to begin"
        raise _not_in_vain(at, "a run that too few have joined", found, _let_it_begin(view))
    if progress.is_transition_due(view):
        return
    if run.round == 0 and not is_authority:
        found = "the key of somebody else"
        step = "Before the first round nobody else may give a run up."
        raise _not_in_vain(at, "the key of its authority", found, step)
    allowed = progress.vain_from(run)
    if view.slot < allowed:
        raise _not_in_vain(
            at,
            f"slot {allowed}: {run.params.unbond_slots} slots (chain.unbond_slots) of waiting "
            "since the last round",
            f"slot {view.slot}",
            f"Repeat it after slot {allowed - 1}, if too few have come by then.",
        )


def _let_it_begin(view: NetworkView) -> str:
    run = view.run
    if progress.can_begin(view):
        return (
            "Let it begin."
            if run.round == 0
            else f"Let it begin; if nobody comes, {_repeat(view)}."
        )
    # Fewer than half of those that are expected: a step of the authority would begin with them.
    step = "Begin with them: troth run start."
    if run.round == 0:
        return f"{step} It can be cancelled while fewer than {run.params.min_members} are there."
    return f"{step} Any other key may end it after slot {progress.vain_from(run) - 1}."


def _repeat(view: NetworkView) -> str:
    later = round_seed_slot(view.run.params, view.slot)
    return f"repeat it after slot {due_from(view) - 1 if due_from(view) > view.slot else later}"


def _not_in_vain(at: RunAddresses, expected: str, found: str, step: str) -> NotInVainError:
    return NotInVainError(expected, found, step, f"run {at.run}")
