"""Push: offer the files of a run to holders, which take what the run names and they lack.

Owns: the order, how many at a time, trying again. Never: insists: a holder that wants nothing is no
error, and what it has already it does not take twice.
Next: `files.py`, which says what is here; `transport/exchange.py`, which offers.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from troth_client.run_files.files import KeptFiles
from troth_client.transport.base import BlobId, BlobKind, Transport
from troth_client.transport.errors import HolderError, HolderRefusedError

AT_A_TIME: Final = 4
"""So many pieces are offered to a holder at a time: it has places for others too."""
TRIES: Final = 3


@dataclass(slots=True)
class Pushed:
    """The answers of one holder; after `error` nothing more was offered to it."""

    holder: str
    num_accepted: int = 0
    refused: list[str] = field(default_factory=list)
    error: HolderError | None = None

    @property
    def has_taken(self) -> bool:
        """Whether it took all that it was offered, or had it."""
        return self.error is None and not self.refused


async def push_files(
    transport: Transport,
    kept: KeptFiles,
    holder: str,
    report: Callable[[int], None],
    *,
    with_shards: bool = True,
) -> Pushed:
    """Offer config, manifest and tokenizer to a holder, then the shards; return what it did.

    `transport` shows the files. `report` gets the number of bytes of shards after each step.
    """
    pushed = Pushed(holder)
    for one in kept.files():  # in this order: the manifest says which shards are wanted
        await offer(transport, one, pushed)
    if not with_shards or kept.data is None:
        return pushed
    pieces = kept.data.here()
    for first in range(0, len(pieces), AT_A_TIME):
        batch = pieces[first : first + AT_A_TIME]
        await offer_pieces(transport, [one.hash for one in batch], pushed)
        report(sum(one.num_bytes for one in batch))
    return pushed


async def offer_pieces(transport: Transport, hashes: Sequence[bytes], pushed: Pushed) -> None:
    """Offer pieces that `transport` shows to the holder, some at a time."""
    for first in range(0, len(hashes), AT_A_TIME):
        batch = (BlobId(0, BlobKind.PIECE, one) for one in hashes[first : first + AT_A_TIME])
        await asyncio.gather(*(offer(transport, one, pushed) for one in batch))


async def offer(transport: Transport, offered: BlobId, pushed: Pushed) -> None:
    """Offer one file or piece to the holder, and again where it was not reached."""
    for _ in range(TRIES):
        if pushed.error is not None:
            return
        results = await transport.offer(offered, [pushed.holder])
        error = results[0].error if results else None
        if error is None:
            pushed.num_accepted += len(results)
            return
        if isinstance(error, HolderRefusedError):
            pushed.refused.append(f"{offered.address}: {error.found}")
            return
    pushed.error = error
