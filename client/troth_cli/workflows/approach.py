"""The approach to a run: what chain and members say before PyTorch is loaded.

Owns: one connection, the probes, the order of the cheap checks; what the machine's checks need.
Never: deposits, or asks more of a participant that comes back than its config and its folder.
Next: `join_checks.py` for the checks; `take_part.py` for the rest of a join.
"""

import asyncio
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from solders.keypair import Keypair

from troth_cli.connection import connect
from troth_cli.slot_time import STATED, slot_time
from troth_cli.view.output import Report
from troth_cli.workflows.announce import check_announced
from troth_cli.workflows.checks import CheckResult, Row, run_checks
from troth_cli.workflows.join_checks import (
    CHECKS,
    DATA,
    Newcomer,
    checked_stake,
    data_result,
)
from troth_cli.workflows.join_request import JoinRequest
from troth_cli.workflows.members import endpoints
from troth_cli.workflows.probes import (
    WeightsProbe,
    measure_round,
    measure_slots,
    probe_weights,
)
from troth_cli.workflows.prospects import Tempo
from troth_cli.workflows.return_checks import (
    MEMBERSHIP,
    RETURN_CHECKS,
    check_membership,
    was_here,
)
from troth_client.errors import ClientError
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_cluster
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.membership import index_left, index_of_owner, index_to_serve
from troth_coordinator.rules.view import NetworkView

_UNMEASURED: Final = Tempo(STATED, Fraction(1))
_NOTHING: Final[WeightsProbe | ClientError] = WeightsProbe(0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Looked:
    """The run as it looked. A member that comes back has `is_member` and few rows.

    So has one that has left and may still be asked for something: it deposits nothing.
    `is_guarded`: the run is on a public cluster, so only public addresses are connected to.
    """

    rows: list[Row]
    view: NetworkView
    is_member: bool
    stake: int
    tempo: Tempo
    holders: tuple[str, ...]
    is_guarded: bool


async def approach(
    request: JoinRequest, session: Keypair, report: Report, *, is_asked: bool
) -> Looked:
    """Look at the run and make the cheap checks. `is_asked`: somebody agrees to a deposit.

    Raises InputError for a stake below the least, and the errors of a chain that cannot be asked.
    """
    settings = request.settings
    async with connect(settings.rpc_urls, request.program) as client:
        us = request.owner.pubkey()
        participant = await client.read_participant(request.run, us)
        view = await client.snapshot(request.run)
        cluster = None if settings.allow_private else await public_cluster(client.rpc)
        check_announced(settings.endpoint, cluster)
        place, left = index_of_owner(view.entries, bytes(us)), index_left(view, participant)
        if place is None:
            place = index_to_serve(view, participant)
        is_member = place is not None
        least = view.run.params.min_stake_lamports
        stake = 0 if is_member else checked_stake(settings.stake_lamports, least)
        tempo, weights = _UNMEASURED, _NOTHING
        if not is_member:  # a member that comes back may have a window to meet
            tempo, weights = await asyncio.gather(
                _tempo(client, view), _weights(client, view, request)
            )
        elif request.place is not None:  # its patience with the others follows from it
            tempo = replace(tempo, slot=await slot_time(client.rpc))
        newcomer = Newcomer(
            request=request,
            role=settings.role,
            session=session,
            owner=Owner(client, RunAddresses.of(view.run, client.program_id), request.owner),
            view=view,
            stake=stake,
            weights=weights,
            tempo=tempo,
            report=report,
            index=place,
            is_asked=is_asked,
        )
        checks = RETURN_CHECKS if is_member else CHECKS
        if left is not None and (is_member or was_here(request)):
            checks = [(MEMBERSHIP, check_membership), *checks]
        if request.fetches_data:
            checks = [one for one in checks if one[0] != DATA]
        rows = await run_checks(checks, newcomer)
        holders = () if is_member else tuple(await endpoints(client, view))
    return Looked(rows, view, is_member, stake, newcomer.tempo, holders, cluster is not None)


async def with_data(looked: Looked, request: JoinRequest, report: Report) -> Looked:
    """Return what was seen with the check of the data that was fetched; a member needs none."""
    if looked.is_member:
        return looked

    async def check(about: JoinRequest) -> CheckResult:
        return data_result(about, looked.view.run, report)

    return replace(looked, rows=[*looked.rows, *await run_checks([(DATA, check)], request)])


async def _tempo(client: CoordinatorClient, view: NetworkView) -> Tempo:
    return Tempo(await measure_slots(client.rpc), await measure_round(client, view))


async def _weights(
    client: CoordinatorClient, view: NetworkView, request: JoinRequest
) -> WeightsProbe | ClientError:
    settings = request.settings
    own = (*settings.hubs, *settings.stores)
    if settings.start is not None and view.run.root_round == 0:
        return _NOTHING
    try:
        private = settings.allow_private
        return await probe_weights(client, view, settings.config, own, allow_private=private)
    except ClientError as error:
        return error
