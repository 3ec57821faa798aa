"""The request of `troth join`: the options of the command line, before anybody is asked.

Owns: the record, and the names of roles. Never: checks another value; `join.py` does.
Next: `join.py`, which passes it from step to step.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import InputError
from troth_cli.workflows.recording import Recording
from troth_client.participant.settings import ParticipantSettings
from troth_client.train.place import Place
from troth_coordinator.rules.view import Role

_ROLES: Final = {
    "trainer": Role.TRAINER,
    "witness": Role.WITNESS,
    "both": Role.TRAINER | Role.WITNESS,
}


def role_of(name: str) -> Role:
    """Return the role of this name; InputError where there is none."""
    if name not in _ROLES:
        raise InputError(", ".join(_ROLES), repr(name), "Choose one of these.", "--role")
    return _ROLES[name]


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """The options of the command line, read but not yet checked against the run."""

    settings: ParticipantSettings
    """Those of the participant. `join.py` adds the session key, host, port and a missing config."""
    listen: str
    """HOST:PORT as it was written, or none."""
    place: Place | None = None
    """Its place among the ranks of its participant, None for a process alone."""
    recording: Recording = field(default_factory=Recording)
    fetches_data: bool = False
    """The user named no folder with data: it comes from others."""
    data_from: tuple[str, ...] = ()
    """They are asked for the run's files, beside its members."""
    goes_on_anyway: bool = False
    only_checks: bool = False
    is_agreed: bool = False
    """The user agrees to a deposit unasked."""
    is_plain: bool = False
    """Events are lines, also on a terminal."""

    @property
    def run(self) -> Pubkey:
        """The address of the run."""
        return Pubkey.from_string(self.settings.run)

    @property
    def owner(self) -> Keypair:
        """The key of the owner."""
        return Keypair.from_bytes(self.settings.owner)

    @property
    def program(self) -> Pubkey | None:
        """The address of the program, None for the packaged one's."""
        return Pubkey.from_string(self.settings.program) if self.settings.program else None

    def changed(self, **changes: Any) -> Self:  # noqa: ANN401  of any of its fields
        """Return it with other settings of the participant."""
        return replace(self, settings=replace(self.settings, **changes))
