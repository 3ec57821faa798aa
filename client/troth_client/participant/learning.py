"""How a participant computes its gradients, from its settings.

Owns: the choice. Never: computes. Next: `../train/learner.py`, `../train/team.py`.
"""

from functools import partial

from troth_client.participant.settings import ParticipantSettings
from troth_client.telemetry.events import EventSink
from troth_client.train.compiled import CompiledPass
from troth_client.train.learner import DEFAULT, Learner, OneDevice
from troth_client.train.passes import Pass, eager_pass
from troth_client.train.team import FAILED, Leader, Team
from troth_coordinator.rules.view import Role


def learner_of(
    settings: ParticipantSettings,
    events: EventSink,
    team: Team | None = None,
    *,
    is_member: bool = False,
) -> Learner:
    """Return the learner of a trainer; a participant that only judges computes nothing with it.

    `is_member`: it comes back, and goes on alone where its team does not meet.
    """
    if Role.TRAINER not in settings.role:
        return DEFAULT
    alone = OneDevice(pass_of(events, compiles=settings.compiles))
    if team is None:
        return alone
    return Leader(alone, team, partial(_report_ranks, events), is_member=is_member)


def pass_of(events: EventSink, *, compiles: bool) -> Pass:
    """Return the compiled pass or the eager one."""
    report = partial(_report, events, "compile_failed", "without --compile")
    return CompiledPass(report) if compiles else eager_pass


def _report_ranks(events: EventSink, event: str, reason: str) -> None:
    _report(events, event, "on one device" + " in this round" * (event == FAILED), reason)


def _report(events: EventSink, event: str, goes_on: str, reason: str) -> None:
    events.emit(event, reason=reason, goes_on=goes_on)
