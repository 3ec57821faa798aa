"""Following: a hub reads the run, and from that knows which bytes it takes, serves and forgets.

Owns: what a view of the chain makes a hub accept and release. Never: sends a transaction, has a
key, or serves bytes of a round before the chain shows the end of its Commit phase.
Next: `process.py`, which looks again and again; `../network/expecting.py`.
"""

from dataclasses import dataclass, field
from functools import partial

from solders.pubkey import Pubkey

from troth_attestation import header as headers
from troth_attestation.committed import newest_state
from troth_attestation.errors import HeaderFieldError
from troth_attestation.header import Header
from troth_client.hub.keeping import KeptSets
from troth_client.hub.states import KeptStates
from troth_client.network.expecting import expect_submissions, is_commit_over
from troth_client.state.audit_tracker import AuditTracker
from troth_client.transport.blob_cache import BlobCache
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView


@dataclass(slots=True)
class Follower:
    """A hub's knowledge of one run. `keep_rounds` are served; older ones are forgotten.

    `round_bytes` bounds the payloads of one round. Each of its trainers has an equal part.
    """

    client: CoordinatorClient
    run: Pubkey
    cache: BlobCache
    sets: KeptSets
    states: KeptStates
    tracker: AuditTracker
    keep_rounds: int
    round_bytes: int
    expected: set[int] = field(default_factory=set)

    async def take(self, view: NetworkView) -> None:
        """Accept what this view names, and forget what it does not any more. Raises RpcError."""
        self.states.want(newest_state(view.run))
        for round_ in await self._rounds(view):
            self.cache.release(round_.round)
            share = self.round_bytes // max(1, bitmap.count(round_.committed))
            expect_submissions(self.cache, round_, partial(_check_header, share))
            self.expected.add(round_.round)
        oldest = max(0, view.run.round - self.keep_rounds + 1)
        self.cache.drop_before(oldest)
        self.expected = {round_ for round_ in self.expected if round_ >= oldest}
        await self.tracker.refresh(view)
        self.sets.want(
            {
                audit.openings_root
                for audit in self.tracker.audits(view)
                if audit.kind == AuditKind.WORK and audit.openings_root != ZERO_DIGEST
            },
            view.slot,
        )

    async def _rounds(self, view: NetworkView) -> list[RoundView]:
        """Return the rounds whose Commit phase has ended since, as the chain has them now."""
        last, run = view.run.round, view.run
        if self.expected and max(self.expected) > last:
            self.expected.clear()  # a fork: rounds may have other commitments now
        first = max(0, last - min(self.keep_rounds, run.params.ring) + 1)
        over = [r for r in range(first, last + 1) if is_commit_over(view, r)]
        fresh = [r for r in over if r not in self.expected]
        found = [view.round] if last in fresh and view.round is not None else []
        closed = [r for r in fresh if r != last]
        for round_ in await self.client.read_rounds(self.run, closed) if closed else []:
            # An RPC node that lags may show fewer commitments: it is asked again.
            if round_ is not None and round_.flags & RoundFlag.CLOSED:
                found.append(round_)
        return found


def _check_header(max_bytes: int, _index: int, header: Header, signature: bytes) -> None:
    """Check what the commitment on chain leaves open: the signature. Bound the payload."""
    headers.verify_signature(header, signature)
    if not 0 < header.payload_bytes <= max_bytes:
        raise HeaderFieldError(
            "payload_bytes",
            f"1 to {max_bytes}, a trainer's part of the hub's room",
            str(header.payload_bytes),
            "give the hub more room with --max-gb",
        )
