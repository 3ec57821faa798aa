"""Fetch: the pieces of a state from any holders, each checked under the root on chain.

Owns: what is asked for, and in which order.
Never: trusts a holder, or fetches a byte before the piece list has the root that the chain names.
Next: `transport/parallel.py` for the asking; `folder.py` for the draft; `steps/restore.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from troth_attestation.committed import CommittedState
from troth_attestation.pieces import Piece, PieceList, Shape, list_bytes
from troth_client.checkpoint.errors import CheckpointGoneError
from troth_client.checkpoint.folder import Draft
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.parallel import Goal, Source, fetch_each, persist

Take = Callable[[Piece, bytes], None]
_LATER = "Try again later, or take a newer checkpoint: members serve the newest two."
_FIRST = (
    "The run's creator gave the first weights: join after a member that has them, or name the"
    " folder with --start DIR."
)


async def fetch_list(
    source: Source, wanted: CommittedState, shapes: Mapping[str, Shape]
) -> PieceList:
    """Return the piece list of a state, from any holder. Raises CheckpointGoneError."""
    address = BlobId(wanted.round, BlobKind.PIECES, wanted.root)

    async def attempt(holders: Sequence[str]) -> PieceList:
        size = list_bytes(shapes)
        return await source.transport.fetch(
            address, holders, size, lambda data: wanted.check_pieces(data, shapes)
        )

    found = await persist(source, _goal(wanted.round, list_bytes(shapes)), attempt)
    source.on_progress()
    return found


async def fetch_draft(source: Source, draft: Draft) -> int:
    """Fill a draft with the pieces that it lacks; return the bytes that were fetched.

    The hashing of the draft is a step forward, like each piece. Raises CheckpointGoneError when
    nobody serves a piece, DiskFullError. Fetched pieces stay.
    """
    missing = await source.runtime.compute(draft.missing)
    source.on_progress()
    return await fetch_pieces(source, draft.pieces, missing, draft.put)


async def fetch_pieces(
    source: Source, pieces: PieceList, missing: Iterable[Piece], take: Take
) -> int:
    """Hand each missing piece of a state to `take`; return the bytes that were fetched.

    Pieces with equal bytes are fetched once. Raises CheckpointGoneError and what `take` raises.
    """
    return await fetch_each(source, _goal(pieces.state.round, pieces.num_bytes), missing, take)


def _goal(round_: int, num_bytes: int) -> Goal:
    return Goal(
        what=f"the weights of round {round_}",
        total_bytes=num_bytes,
        gone=CheckpointGoneError,
        next_step=_LATER if round_ else _FIRST,
        event="fetching",
        round=round_,
        fields={"round": round_},
    )
