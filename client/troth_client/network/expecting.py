"""Expecting: the headers and payloads of a round that anybody may push, by what the chain names.

Owns: which bytes of a round are accepted, and in which order: the committed headers first, and
then the payloads that they name.
Never: judges a header beyond its place on chain; the caller's check may.
Next: `submissions.py` for participants, `../hub/follow.py` for hubs.
"""

from collections.abc import Callable
from typing import Protocol

from troth_attestation import header as headers
from troth_attestation.header import Header
from troth_client.transport.base import BlobId, BlobKind, Check
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, RoundView, RunView

SIGNED_HEADER_BYTES = headers.HEADER_BYTES + headers.SIGNATURE_BYTES
CheckHeader = Callable[[int, Header, bytes], None]
"""Judges a committed header of a trainer's index, with its signature. Raises AttestationError."""


class Expecting(Protocol):
    """Takes pushes: a transport, or its blob cache."""

    def expect(self, blob: BlobId, num_bytes: int, check: Check[object]) -> None:
        """Accept a push of these bytes from anybody."""


def last_over(run: RunView) -> int:
    """Return the last round whose Commit phase the chain shows as ended; -1 before the first."""
    return run.round if run.phase == Phase.ATTEST else run.round - 1


def is_commit_over(view: NetworkView, round_: int) -> bool:
    """Whether the chain shows it; an RPC node that lags shows an earlier round or phase."""
    return round_ <= last_over(view.run)


def expect_submissions(taker: Expecting, round_: RoundView, check_header: CheckHeader) -> None:
    """Accept the committed headers of a round, and then their payloads, from anybody.

    A header that passes `check_header` names the size of its payload, and the root.
    """

    def check_of(index: int) -> Check[object]:
        def check(data: bytes) -> None:
            header = headers.decode(data[: headers.HEADER_BYTES])
            check_header(index, header, data[headers.HEADER_BYTES :])
            payload = BlobId(round_.round, BlobKind.PAYLOAD, header.payload_root)
            taker.expect(payload, header.payload_bytes, bytes)

        return check

    for index in bitmap.indices_of(round_.committed):
        blob = BlobId(round_.round, BlobKind.HEADER, round_.ballots[index].header_hash)
        taker.expect(blob, SIGNED_HEADER_BYTES, check_of(index))
