"""The losses of a round, from the signed headers that members, hubs and stores serve.

Owns: for how long holders are asked for a header, and its checks.
Never: trusts a holder: a header has its hash on chain, and its signature is checked.
Next: `troth_client/telemetry/losses.py` for the mean, which one odd loss cannot spoil.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from troth_attestation import header as headers
from troth_attestation.errors import HeaderFieldError
from troth_client.errors import ClientError
from troth_client.transport.base import BlobId, BlobKind, Transport
from troth_client.transport.exchange import Patience
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import RoundView

PATIENCE: Final = Patience(grace_seconds=3.0, hedge_seconds=0.7, parallel=8)
"""Nobody waits for a header, so a slow holder is passed over soon."""
ROUND_SECONDS: Final = 12.0
"""All headers of a round may take so long together."""
MOST_HOLDERS: Final = 6
"""So many are asked for one header: its trainer first."""
SIGNED_BYTES: Final = headers.HEADER_BYTES + headers.SIGNATURE_BYTES

HoldersOf = Callable[[int], Sequence[str]]
"""Returns whom to ask for the header of a participant, the best first."""


async def read_losses(
    transport: Transport, round_: RoundView, holders_of: HoldersOf, known: Mapping[int, int]
) -> dict[int, int]:
    """Return the loss in micro-nats by index, of each included payload whose header was found.

    `known` are those of an earlier try. Returns after `ROUND_SECONDS` at the latest.
    """
    missing = [int(i) for i in bitmap.indices_of(round_.included) if i not in known]
    asked = {
        asyncio.create_task(_read(transport, round_, index, holders_of(index))): index
        for index in missing
    }
    try:
        done = (await asyncio.wait(asked, timeout=ROUND_SECONDS))[0] if asked else set()
        found = {asked[one]: one.result() for one in done}
    finally:
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    return {**known, **{index: loss for index, loss in found.items() if loss is not None}}


async def _read(
    transport: Transport, round_: RoundView, index: int, holders: Sequence[str]
) -> int | None:
    """Return the loss in one header; None if nobody has it, or it is not what it should be."""
    wanted = BlobId(round_.round, BlobKind.HEADER, round_.ballots[index].header_hash)

    def check(data: bytes) -> int:
        return checked_loss(data, round_, index)

    try:
        return await transport.fetch(wanted, holders[:MOST_HOLDERS], SIGNED_BYTES, check)
    except ClientError:
        return None


def checked_loss(data: bytes, round_: RoundView, index: int) -> int:
    """Return the loss in a signed header that has the hash on chain. Raises AttestationError."""
    header = headers.decode(data[: headers.HEADER_BYTES])
    headers.verify_signature(header, data[headers.HEADER_BYTES :])
    found = (bytes(header.run), header.round, header.index)
    if found != (bytes(round_.run), round_.round, index):
        raise HeaderFieldError(
            "run, round and index",
            f"round {round_.round}, index {index} of this run",
            f"round {header.round}, index {header.index}",
            "ask another holder",
        )
    return header.mean_loss
