"""The audits and cases of a run: open, closed, and those that a challenger could open now.

Owns: the accounts and transactions that are read for each list. Never: decides what may be opened;
`troth_attestation/contestable.py` does. Next: `accuse.py` to open a case; `../view/cases.py`.
"""

from dataclasses import dataclass
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation.contestable import Contestable, contestable
from troth_audit.cases import CaseFile, of_account
from troth_audit.history import read_closed
from troth_cli.slot_time import SlotTime, slot_time
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.view import NetworkView

NEWEST: Final = 1_000
"""Transactions about the run's money that are read for closed audits: one request each."""


@dataclass(frozen=True, slots=True)
class CaseList:
    """The result of a list; `closed` and `openable` are None where nobody asked for them."""

    view: NetworkView
    slot: SlotTime
    cases: list[CaseFile]
    closed: list[CaseFile] | None
    openable: list[Contestable] | None


async def list_cases(
    client: CoordinatorClient,
    run: Pubkey,
    *,
    with_closed: bool,
    with_openable: bool,
    challenger: Pubkey | None = None,
) -> CaseList:
    """Read the lists; without the accounts of rounds where nobody asks what can be opened."""
    view = await client.snapshot(run)
    audits = await client.find_audits(run)
    closed = openable = None
    if with_openable:
        oldest = max(0, view.run.round - view.run.params.ring + 1)
        rounds = await client.read_rounds(run, range(oldest, view.run.round + 1))
        index = None if challenger is None else index_of_owner(view.entries, bytes(challenger))
        openable = contestable(view, rounds, audits, index)
    if with_closed:
        at = RunAddresses.of(view.run, client.program_id)
        still = {audit.key for audit in audits}
        closed = [case for case in await read_closed(client, at, NEWEST) if case.key not in still]
    return CaseList(
        view, await slot_time(client.rpc), [of_account(one) for one in audits], closed, openable
    )
