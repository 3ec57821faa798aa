"""Push: offer the files of a run to holders, which take what the run names and they lack.

Owns: the order, and how many at a time. Never: tries again; `transport/offering.py` does.
Next: `files.py`, which says what is here.
"""

import asyncio
from collections.abc import Callable

from troth_client.run_files.files import KeptFiles
from troth_client.transport.base import BlobId, BlobKind, Transport
from troth_client.transport.offering import AT_A_TIME, Pushed, offer


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
        offered = (BlobId(0, BlobKind.PIECE, one.hash) for one in batch)
        await asyncio.gather(*(offer(transport, one, pushed) for one in offered))
        report(sum(one.num_bytes for one in batch))
    return pushed
