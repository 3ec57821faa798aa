"""`troth join` once PyTorch is needed: the machine's checks, the participant.

Owns: measuring before the stake is asked for, the event log, the question at the terminal.
Never: a step of the protocol.
Next: `machine_checks.py`; `troth_client.participant.process`.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
import typer

from troth_cli.view.amounts import sol
from troth_cli.view.checks import checks_lines
from troth_cli.view.output import Output
from troth_cli.view.terms import losses_lines
from troth_cli.workflows.approach import Looked
from troth_cli.workflows.checks import CheckResult, run_checks, untested
from troth_cli.workflows.helpers import helped
from troth_cli.workflows.join import Joined, asks, stop_if_refused
from troth_cli.workflows.join_request import JoinRequest
from troth_cli.workflows.kept_duties import keep_duties
from troth_cli.workflows.live_view import shown_events
from troth_cli.workflows.machine_checks import CHECKS, RETURN_CHECKS, Candidate, Measurement
from troth_cli.workflows.reach_checks import outbound_result, reach_result
from troth_client.errors import ClientError
from troth_client.model.device import Device, choose_device
from troth_client.participant.assembly import Ports
from troth_client.participant.ending import ParticipantEnd
from troth_client.participant.measuring import Measured, measure_machine
from troth_client.participant.process import participate
from troth_client.participant.settings import ParticipantSettings
from troth_client.telemetry.event_log import EVENTS_FILE, EventLog, Rotation
from troth_client.telemetry.events import EventSinks
from troth_client.train.errors import RanksError
from troth_client.train.ranks import Ranks
from troth_client.train.team import Team, meet, patience_of, start_seconds
from troth_client.transport.guard import is_outbound_only
from troth_client.transport.reach import is_reachable
from troth_coordinator.rules.oversight import oversight, warnings_of
from troth_coordinator.rules.view import Role


def take_part(request: JoinRequest, output: Output, looked: Looked) -> Joined:
    """Make the checks that need a device, ask for the stake, then take part.

    Raises as `join` does, and RanksError.
    """
    with team_of(request, looked, output) as team:
        return _checked(request, output, looked, team)


@contextlib.contextmanager
def team_of(request: JoinRequest, looked: Looked, output: Output) -> Iterator[Team | None]:
    """Start the other ranks, if there are any; end the exchange with them afterwards.

    A member meets them later, beside its reveals: it has a stake, and they may fail or hang. A
    newcomer meets them here: their start would slow what it measures. Raises RanksError to it.
    """
    place = request.place
    if place is None:
        yield None
        return
    seconds = patience_of(looked.tempo.slot.seconds(looked.view.run.params.commit_slots))
    starts = start_seconds(is_member=looked.is_member)
    with helped(place, request, output, starts) as helpers, contextlib.ExitStack() as met:

        @cache
        def meet_once() -> Ranks:
            try:
                ranks = meet(helpers.arrived(), seconds)
            except RanksError:
                helpers.end()
                raise
            return met.enter_context(contextlib.closing(ranks))

        if request.only_checks or not looked.is_member:
            meet_once()
        yield Team(place.size, meet_once, helpers.end)


def _checked(request: JoinRequest, output: Output, looked: Looked, team: Team | None) -> Joined:
    wanted = request.settings
    device = choose_device(wanted.device, wanted.microbatch_sequences, wanted.precision)
    checks = RETURN_CHECKS if looked.is_member else CHECKS
    candidate = _candidate(request, device, looked, output)
    rows = [*looked.rows, *asyncio.run(run_checks(checks, candidate))]
    stop_if_refused(rows, request, output)
    if not request.only_checks:
        for line in checks_lines(rows):
            output.note(line)
    for warning in [*warnings_of(oversight(looked.view)), *_unused(request, looked)]:
        output.warn(warning)
    if request.only_checks:
        return Joined(rows, None)
    if not looked.is_member:
        for line in losses_lines(looked.view.run.params, looked.stake):
            output.note(line)
        _ask(request, looked.stake, output)
    request = request.changed(may_deposit=not looked.is_member)
    return Joined(rows, _participate(request, team, output))


def _participate(request: JoinRequest, team: Team | None, output: Output) -> ParticipantEnd:
    settings, owner = request.settings, str(request.owner.pubkey())
    rotation = Rotation(removing=partial(keep_duties, settings.state))
    log = EventLog.open(settings.state / EVENTS_FILE, rotation, owner=owner)

    def spare_log(ports: Ports) -> Ports:
        ports.store.room.add(log.drop_older)
        return replace(ports, ranks=team)

    with (
        contextlib.closing(log),
        shown_events(request, output) as shown,
        request.recording.sinks(owner, output) as others,
    ):
        try:
            events = EventSinks(log, shown, *others)
            return asyncio.run(_ending(team, participate(settings, events, spare_log)))
        except asyncio.CancelledError:
            # The second signal cancels what is under way.
            raise KeyboardInterrupt from None


async def _ending(
    team: Team | None, participating: Coroutine[Any, Any, ParticipantEnd]
) -> ParticipantEnd:
    """Return how the participant ended; where it fails, no thread waits for its team any more."""
    try:
        return await participating
    except BaseException:
        if team is not None:
            team.end()
        raise


def _candidate(request: JoinRequest, device: Device, looked: Looked, output: Output) -> Candidate:
    """Measure this machine, unless it is a member's that comes back."""
    measured: Measurement = None
    if not looked.is_member:
        output.note("measuring a payload and a judgement on this machine…")
        measured = _measured(request, device)
    return Candidate(
        state=request.settings.state,
        config=request.settings.config,
        role=request.settings.role,
        view=looked.view,
        tempo=looked.tempo,
        measured=measured,
        reach=partial(reach, request.settings, looked),
        is_member=looked.is_member,
        slower_by=slower_by(request),
    )


def slower_by(request: JoinRequest) -> str:
    """Return how a payload is measured otherwise than it will be made."""
    alone = "by rank 0 alone" if request.place is not None else ""
    eager = "without --compile" if request.settings.compiles else ""
    return ", ".join(filter(None, (alone, eager)))


async def reach(settings: ParticipantSettings, looked: Looked) -> CheckResult:
    """Ask whether others reach us; where we announce nothing, count those that serve for us."""
    network, is_guarded = settings.config.network, looked.is_guarded
    hubs = {*network.hubs, *settings.hubs}
    if is_outbound_only(settings.host, settings.endpoint, is_guarded=is_guarded):
        stores = {*network.stores, *settings.stores}
        return outbound_result(len(hubs | stores), len(looked.holders))
    if settings.endpoint:
        return untested("--endpoint is named by hand: a proxy may stand there")
    asked = (*hubs, *looked.holders)
    found = await is_reachable(asked, settings.host, settings.port, is_guarded=is_guarded)
    return reach_result(found)


def _measured(request: JoinRequest, device: Device) -> Measured | ClientError:
    settings = request.settings
    if settings.num_threads is not None:
        torch.set_num_threads(settings.num_threads)
    try:
        is_juror = Role.WITNESS in settings.role
        return measure_machine(settings.config, device, is_juror=is_juror)
    except ClientError as error:
        return error


def _ask(request: JoinRequest, stake: int, output: Output) -> None:
    """Ask at a terminal whether to deposit; typer.Abort for a no."""
    if request.is_agreed or not asks(output):
        return
    more = f"and move {sol(request.settings.session_lamports)} to the session key"
    typer.confirm(f"Deposit {sol(stake)} {more}?", abort=True, err=True)


def _unused(request: JoinRequest, looked: Looked) -> Iterator[str]:
    """Yield a warning where an option for joining comes after it."""
    if looked.is_member and request.settings.stake_lamports is not None:
        yield "--stake-sol is for joining, and this key has joined: troth stake top-up adds more."
