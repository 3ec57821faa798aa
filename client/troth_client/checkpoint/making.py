"""Making a checkpoint: from the weights of a round on our own disk to shards and a manifest.

Owns: the check against the root on chain, and the writing. Slow, for a thread: training goes on.
Never: reads the live weights: those of each round are on disk before the next round begins.
Next: `folder.py`; `participant/checkpoints.py` decides when.
"""

from collections.abc import Callable

from troth_attestation.committed import CommittedState
from troth_attestation.manifest import CheckpointManifest
from troth_attestation.pieces import PieceList, bytes_of, pieces_of
from troth_client.checkpoint.folder import CheckpointFolder, write_weights
from troth_client.checkpoint.state_store import StateStore
from troth_client.storage import Store


def make_checkpoint(
    store: Store,
    states: StateStore,
    wanted: CommittedState,
    manifest_of: Callable[[PieceList], CheckpointManifest],
) -> CheckpointFolder | None:
    """Write the checkpoint of a state that the chain names; None if its weights are not on disk.

    Raises PieceListError if our weights of that round have another root, CheckpointFileError if
    something else lies in its place, FolderInUseError while it is being fetched, DiskFullError.
    """
    saved = store.load_weights(wanted.round)
    if saved is None:
        return None
    pieces = pieces_of(saved.tensors, wanted.state)
    wanted.check(pieces)
    tensors = {name: bytes_of(name, value) for name, value in saved.tensors.items()}
    return write_weights(states.path(wanted.round), manifest_of(pieces), pieces, tensors)
