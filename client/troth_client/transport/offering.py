"""Offering: bytes that we show are offered to one holder, which takes what it wants and lacks.

Owns: trying again, and the record of what a holder answered. Never: insists: a holder that wants
nothing is no error, and what it has already it does not take twice.
Next: `exchange.py`, which offers once; `run_files/push.py` and `participant/checkpoints.py`.
"""

from dataclasses import dataclass, field
from typing import Final

from troth_client.transport.base import BlobId, Transport
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
