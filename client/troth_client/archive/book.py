"""The book: what the events of a run say that an archive must hold, and whom to ask for it.

Owns: which header, opening set or file becomes due with which event; endpoints, seeds, commits.
Never: reads a chain or a disk, or grows with the run: old rounds are forgotten.
Next: `keeper.py`, which feeds it and fetches.

Nobody serves bytes of a round before its Commit phase has ended on chain. So headers wait here
until an event, or the caller, says that it has.
"""

from functools import singledispatchmethod
from typing import Final

from troth_client.archive.items import Item
from troth_client.transport.base import BlobKind
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain import event_types_life as of_life
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.ids import ZERO_DIGEST, Digest
from troth_coordinator.rules.lateness import least_ring
from troth_coordinator.rules.params_view import ParamsView

MOST_ROUNDS: Final = 4_096
"""Seeds and header hashes of so many rounds are known; no audit is open for longer."""
SPARE_ROUNDS: Final = 4
"""Members are asked for so many rounds more than they promise to keep."""


class Book:
    """The things that the events so far have named.

    `endpoints` are those of members by index, also of some that have left: they serve until their
    last audit ends. `newest` is the open round, or the last one.
    """

    def __init__(self) -> None:
        self.params: ParamsView | None = None
        self.config_hash: bytes | None = None
        self.genesis_root = b""
        self.newest = 0
        self.endpoints: dict[int, str] = {}
        self.open_audits: set[tuple[int, int]] = set()
        self._headers: dict[int, dict[int, bytes]] = {}
        self._seeds: dict[int, Digest] = {}
        self._waiting: list[Item] = []

    def take(self, event: Event) -> list[Item]:
        """Take in the next event; return what can be asked for since."""
        return self._take(event)

    def commit_is_over(self) -> list[Item]:
        """Return the headers of the open round: the chain shows that its Commit phase has ended."""
        found, self._waiting = self._waiting, []
        return found

    def header_of(self, round_: int, index: int) -> bytes | None:
        """Return the header hash that a trainer committed in a round."""
        return self._headers.get(round_, {}).get(index)

    def seed_of(self, round_: int) -> Digest | None:
        """Return the frozen seed of a round."""
        return self._seeds.get(round_)

    def is_past(self, item: Item) -> bool:
        """Tell whether members need not have an item any more."""
        if item.kind is BlobKind.OPENINGS:
            return (item.round, item.participant) not in self.open_audits
        if item.participant is None or self.params is None:
            return False
        kept = max(self.params.ring, 2 * least_ring(self.params.checkpoint_every))
        return item.round < self.newest - kept - SPARE_ROUNDS

    @singledispatchmethod
    def _take(self, event: Event) -> list[Item]:
        """Most events name nothing that lies outside the ledger."""
        return []

    @_take.register
    def _(self, event: of_life.RunCreated) -> list[Item]:
        self.params, self.config_hash = event.params, event.config_hash
        self.genesis_root = event.genesis_root
        return [
            Item(BlobKind.CONFIG, event.config_hash),
            Item(BlobKind.MANIFEST, event.manifest_hash),
        ]

    @_take.register
    def _(self, event: of_life.ParamsApplied) -> list[Item]:
        self.params = event.params
        return []

    @_take.register
    def _(self, event: of_life.ParticipantJoined) -> list[Item]:
        self.endpoints[event.index] = event.endpoint
        return []

    @_take.register
    def _(self, event: of_life.EndpointSet) -> list[Item]:
        self.endpoints[event.index] = event.endpoint
        return []

    @_take.register
    def _(self, event: of_rounds.RoundOpened) -> list[Item]:
        self.newest = event.round
        for known in (self._headers, self._seeds):
            for old in [one for one in known if one < event.round - MOST_ROUNDS]:
                del known[old]
        return self.commit_is_over()  # of a round that was given up

    @_take.register
    def _(self, event: of_rounds.PayloadCommitted) -> list[Item]:
        if event.header_hash != ZERO_DIGEST:
            self._headers.setdefault(event.round, {})[event.index] = event.header_hash
            item = Item(BlobKind.HEADER, event.header_hash, event.round, event.index)
            self._waiting.append(item)
        return []

    @_take.register
    def _(self, event: of_rounds.RoundClosed) -> list[Item]:
        return self.commit_is_over()

    @_take.register
    def _(self, event: of_rounds.SeedFrozen) -> list[Item]:
        self._seeds[event.round] = Digest(event.seed)
        return []

    @_take.register
    def _(self, event: of_audits.OpeningsPosted) -> list[Item]:
        self.open_audits.add((event.round, event.target))
        return [Item(BlobKind.OPENINGS, event.root, event.round, event.target)]

    @_take.register
    def _(self, event: of_audits.AuditOpened) -> list[Item]:
        self.open_audits.add((event.round, event.target))
        return []

    @_take.register
    def _(self, event: of_audits.AuditClosed) -> list[Item]:
        if event.audit_kind == AuditKind.WORK:
            self.open_audits.discard((event.round, event.target))
        return []
