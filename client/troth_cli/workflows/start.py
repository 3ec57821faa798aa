"""Begin the Warmup of a run with fewer participants than half of those that are expected.

Owns: what must be true before the authority's `advance_phase` is sent. Never: ends a run.
Next: `cancel.py` for a run that is to end; `rules/expected_members.py` for the rule of half.
"""

from solders.keypair import Keypair

from troth_cli.errors import CannotBeginError
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.chain.operations import Crank
from troth_coordinator.rules import progress
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView


async def start_run(
    client: CoordinatorClient, at: RunAddresses, key: Keypair
) -> ConfirmedTransaction:
    """Begin the Warmup of a run that waits, by its authority's decision.

    Raises CannotBeginError for a run in another phase or with too few participants, and for the key
    of somebody else; the program's refusals.
    """
    view = await client.snapshot(at.run)
    _check(view, at, bytes(key.pubkey()))
    return await Crank(client, at, key).advance_phase(view.run.round)


def _check(view: NetworkView, at: RunAddresses, key: bytes) -> None:
    run, subject = view.run, f"run {at.run}"
    if run.phase != Phase.WAITING_FOR_MEMBERS:
        phase = run.phase.name.lower().replace("_", " ")
        step = "Nothing is to be begun: troth run show tells what goes on."
        raise CannotBeginError("a run that waits for members", phase, step, subject)
    if run.authority != key:
        step = "Name the key of the run's authority with --key."
        raise CannotBeginError("the key of its authority", "that of somebody else", step, subject)
    if not progress.can_begin(view, by_authority=True) or progress.is_in_vain(view, True):
        expected = (
            f"{run.params.min_members} participants (chain.min_members), one of them a trainer"
        )
        found = f"{progress.num_pending(view)} participants that wait"
        raise CannotBeginError(expected, found, "Let more people join first.", subject)
