"""The end of a participant: final weights of a finished run, and where it stands otherwise.

Owns: which weights are exported. Never: ends anything; `supervisor.py` does.
Next: `../checkpoint/exporting.py`; `process.py`, which returns the record.
"""

from dataclasses import dataclass
from pathlib import Path

from troth_client.checkpoint.exporting import KeptTokenizer, Origin, export_state
from troth_client.data.errors import ManifestError
from troth_client.data.manifest import load_manifest
from troth_client.data.tokens import kept_tokenizer
from troth_client.member import Member
from troth_client.participant.settings import WEIGHTS, ParticipantSettings
from troth_coordinator.rules.ids import Digest, ParticipantIndex
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView


@dataclass(frozen=True, slots=True)
class ParticipantEnd:
    """How taking part ended: the last view, the index, and where the weights lie if Finished."""

    index: ParticipantIndex
    round: int
    root: Digest
    is_finished: bool
    weights: Path | None


def conclude(member: Member, settings: ParticipantSettings, view: NetworkView) -> ParticipantEnd:
    """Export the weights of a finished run and say where the participant stands.

    A member that left, or stopped early, holds older weights than the run ended with: those are
    not exported. `troth checkpoint fetch` brings the others.
    """
    is_finished = view.run.phase == Phase.FINISHED
    replica = member.state.replica
    root = replica.root()
    weights: Path | None = None
    if is_finished and (replica.round, root) == (view.run.root_round, view.run.root):
        weights = settings.state / WEIGHTS
        export_state(weights, _origin(member, settings), replica.arrays(), _tokenizer(settings))
    entry = view.entries[member.chain.index]
    member.chain.events.emit(
        "ended",
        rewards=entry.claimable + sum(entry.bucket_amount),
        round=replica.round,
        root=root.hex(),
        finished=is_finished,
        weights=None if weights is None else str(weights),
    )
    return ParticipantEnd(member.chain.index, replica.round, root, is_finished, weights)


def _origin(member: Member, settings: ParticipantSettings) -> Origin:
    replica, at = member.state.replica, member.chain.at
    root = replica.root().hex()
    return Origin(
        str(at.program), str(at.run), replica.round, replica.cursor, root, settings.config
    )


def _tokenizer(settings: ParticipantSettings) -> KeptTokenizer | None:
    """Return the tokenizer of the data set; None if it is not there any more."""
    try:
        manifest = load_manifest(settings.data, settings.config.manifest_digest())
        found = kept_tokenizer(settings.data, manifest)
    except (ManifestError, OSError):
        return None
    return None if found is None else KeptTokenizer(found, manifest.tokenizer.end_token)
