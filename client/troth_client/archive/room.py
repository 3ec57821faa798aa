"""The room of an archive: how much lies there, and which rounds give way.

Owns: the cap, the number of rounds to keep, the bytes of each round that may be forgotten.
Never: gives up a ledger, a header or a file of the run, or a newer round for an older one.
Next: `keeper.py`, which asks before it stores.
"""

from dataclasses import dataclass, field

from troth_client.archive.folder import ByteStore
from troth_client.archive.items import FORGETTABLE, Item


@dataclass(frozen=True, slots=True)
class Keeping:
    """The limits of an archive; None is none. `max_bytes` counts bytes of all kinds, and ledger."""

    max_bytes: int | None = None
    rounds: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether anything may ever be forgotten."""
        return self.max_bytes is not None or self.rounds is not None


@dataclass(slots=True)
class Room:
    """The bytes in a store. `forgotten_before` is the first round that was never forgotten.

    Rounds are listed only where something may be forgotten, so this does not grow otherwise.
    """

    store: ByteStore
    keeping: Keeping
    forgotten_before: int = 0
    num_bytes: int = 0
    _rounds: dict[int, dict[str, Item]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def refuses(self, item: Item) -> bool:
        """Tell whether an item belongs to a round that was forgotten."""
        return item.kind in FORGETTABLE and item.round < self.forgotten_before

    def add(self, item: Item, num_bytes: int) -> None:
        """Take note of bytes that lie here now."""
        self.num_bytes += num_bytes
        if self.keeping.is_limited and item.kind in FORGETTABLE:
            self._rounds.setdefault(item.round, {})[item.address] = item
            self._sizes[item.address] = num_bytes

    def make(self, item: Item, num_bytes: int, ledger_bytes: int) -> bool:
        """Forget older rounds until so many bytes fit; False if that is not enough."""
        most = self.keeping.max_bytes
        while most is not None and self.num_bytes + ledger_bytes + num_bytes > most:
            oldest = min(self._rounds, default=item.round)
            if oldest >= item.round or item.kind not in FORGETTABLE:
                return item.kind not in FORGETTABLE
            self.forget_before(oldest + 1)
        return True

    def keep_newest(self, newest: int) -> None:
        """Forget the rounds that the rule does not keep."""
        if self.keeping.rounds is not None:
            self.forget_before(newest - self.keeping.rounds + 1)

    def forget_before(self, round_: int) -> None:
        """Forget payloads and opening sets of earlier rounds."""
        self.forgotten_before = max(self.forgotten_before, round_)
        for old in [one for one in self._rounds if one < self.forgotten_before]:
            for address, item in self._rounds.pop(old).items():
                self.store.forget(item.kind, item.key)
                self.num_bytes -= self._sizes.pop(address)
