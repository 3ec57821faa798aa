"""The debt of a run to an owner, with its date, where a payment was refused because it is not due.

Owns: the date that the program's refusal lacks. Never: pays; `claim` and `withdraw` do.
Next: `../view/participants.py` for the amounts.
"""

from solders.pubkey import Pubkey

from troth_cli.errors import NotDueError
from troth_cli.slot_time import SlotTime, slot_time
from troth_cli.view.amounts import sol
from troth_cli.view.output import Json
from troth_cli.view.participants import next_vesting, owner_values, whole
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import ProgramRefusedError

_EARN = "Repeat it after further rounds: included payloads and verdicts earn rewards."
_EXPECTED = {
    "NothingToClaim": "rewards that have vested",
    "NothingToWithdraw": "stake whose waiting time is over",
}


async def with_date(
    error: ProgramRefusedError, client: CoordinatorClient, at: RunAddresses, owner: Pubkey
) -> Exception:
    """Return the refusal as NotDueError with amounts and dates; any other refusal as it is."""
    if error.name not in _EXPECTED:
        return error
    view = await client.snapshot(at.run)
    values = owner_values(view, await client.read_participant(at.run, owner), owner)
    slot = await slot_time(client.rpc)
    texts = _rewards(values, slot) if error.name == "NothingToClaim" else _stake(values, slot)
    return NotDueError(_EXPECTED[error.name], *texts, f"owner {owner}", error.name)


def _rewards(values: dict[str, Json], slot: SlotTime) -> tuple[str, str]:
    part = next_vesting(values, slot)
    if not part:
        return "none, and none waits to vest", _EARN
    rest = whole(values["unvested_lamports"]) - whole(values["next_vesting_lamports"])
    more = f"; {sol(rest)} more vest later" if rest else ""
    return f"none yet: {part}{more}", "Repeat it then; rewards are yours, also after you leave."


def _stake(values: dict[str, Json], slot: SlotTime) -> tuple[str, str]:
    at, tickets = whole(values["at_slot"]), values["unbonding"]
    due = sorted(
        (ticket["matures_slot"], ticket["lamports"])
        for ticket in (tickets if isinstance(tickets, list) else [])
    )
    if not due:
        step = "troth leave starts the wait for all of it, --unbond SOL for what is spare."
        return f"{sol(whole(values['stake_lamports']))} at stake, and none on its way out", step
    parts = [
        f"{sol(lamports)} at slot {when}, in {slot.window(max(0, when - at))}"
        for when, lamports in due
    ]
    return f"none yet: {'; '.join(parts)}", "Repeat it then."
