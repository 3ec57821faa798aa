"""How a participant computes its gradients, from its settings.

Owns: the choice. Never: computes. Next: `../train/learner.py`.
"""

from troth_client.participant.settings import ParticipantSettings
from troth_client.telemetry.events import EventSink
from troth_client.train.compiled import CompiledPass
from troth_client.train.learner import DEFAULT, Learner, OneDevice
from troth_client.train.passes import eager_pass
from troth_coordinator.rules.view import Role


def learner_of(settings: ParticipantSettings, events: EventSink) -> Learner:
    """Return the learner of a trainer; a participant that only judges computes nothing with it."""
    if Role.TRAINER not in settings.role:
        return DEFAULT

    def report(reason: str) -> None:
        events.emit("compile_failed", reason=reason, goes_on="without --compile")

    one_pass = CompiledPass(report) if settings.compiles else eager_pass
    return OneDevice(settings.microbatch_sequences, one_pass)
