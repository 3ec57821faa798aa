"""The doctor's question to hubs: a payload of a closed round.

Owns: what is asked for, and the advice. Never: trusts a hub: the chain names the header's hash, and
the header the payload's.
Next: `doctor_run.py`, which lists the check.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation import header as headers
from troth_attestation.header import Header
from troth_cli.workflows.checks import CheckResult, Level, untested
from troth_cli.workflows.members import Members
from troth_cli.workflows.probes import SLOW_BYTES_PER_SECOND
from troth_client.network.expecting import SIGNED_HEADER_BYTES
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import FetchError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import NetworkView

SECONDS: Final = 5.0
_ROUNDS: Final = 4
"""So many closed rounds are looked at for one with a payload."""


async def hubs_result(
    client: CoordinatorClient, view: NetworkView, hubs: Sequence[str]
) -> CheckResult:
    """Fetch a payload of a closed round from each hub."""
    if not hubs:
        return untested("no hub: neither the config nor --hub names one")
    wanted = await _included_header(client, view)
    if wanted is None:
        return untested("no closed round has a payload yet")
    members = Members(client, Pubkey(view.run.address), SECONDS)
    tried = await asyncio.gather(*(_measured(members, hub, wanted) for hub in hubs))
    times = [one for one in tried if not isinstance(one, str)]
    silent = [one for one in tried if isinstance(one, str)]
    found = f"{len(times)} of {len(tried)} hubs"
    if times:
        found += f", {min(size / seconds for size, seconds in times) / 1e6:.2f} MB/s the slowest"
    if silent:
        found += f"; {'; '.join(silent)}"
    values = {"hubs": len(tried), "silent": len(silent)}
    # A small payload says nothing about the line: a second is for the way there and back.
    if not silent and all(took <= 1 + size / SLOW_BYTES_PER_SECOND for size, took in times):
        return CheckResult(Level.OK, found, values=values)
    advice = "Ask whoever runs it, or name another with --hub; members help out meanwhile."
    return CheckResult(Level.WARNING, found, "all of them", advice, values=values)


async def _included_header(client: CoordinatorClient, view: NetworkView) -> BlobId | None:
    """Return a header of the newest closed round that includes one."""
    last = view.run.round
    rounds = range(max(0, last - _ROUNDS), last)
    found = await client.read_rounds(Pubkey(view.run.address), list(rounds))
    for round_ in reversed([one for one in found if one is not None]):
        for index in bitmap.indices_of(round_.included):
            return BlobId(round_.round, BlobKind.HEADER, round_.ballots[index].header_hash)
    return None


async def _measured(members: Members, hub: str, wanted: BlobId) -> tuple[int, float] | str:
    """Return the bytes of a payload, and the seconds for it and its header; or what failed."""
    async with await members.transport() as transport:
        began = time.monotonic()
        try:
            header = await transport.fetch(wanted, [hub], SIGNED_HEADER_BYTES, _read)
            payload = BlobId(wanted.round, BlobKind.PAYLOAD, header.payload_root)
            await transport.fetch(payload, [hub], header.payload_bytes, bytes)
        except FetchError as error:
            return str(error.failures[-1][1]) if error.failures else str(error)
        return header.payload_bytes, max(time.monotonic() - began, 1e-6)


def _read(data: bytes) -> Header:
    return headers.decode(data[: headers.HEADER_BYTES])
