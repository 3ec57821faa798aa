"""The residuals that a trainer may still have to open: u of its own rounds, with its tree.

Owns: which of them are kept and for how long. The store has each u on disk, whole, before its round
is committed to; the newest are in memory as well, up to a limit in bytes.
Never: changes a u, nor opens one (`openings_store.py` does). A restarted process finds all its
residuals again, none of them released. Next: `residual_state.py`, which has M.

A round is kept until `release`. The audit calls it when the seed of the round asked for nothing,
was lost, or got its opening set. No round is kept longer than its Round account, and every round is
kept for at least `keep_rounds` rounds. A kept round also keeps the u that it builds on, and every u
from which M may be carried on after a rewind.
"""

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

from troth_attestation.openings import Residual, Sampled
from troth_attestation.pieces import Float32
from troth_attestation.state import residual_tree
from troth_client.state.errors import ResidualLostError
from troth_client.state.past_states import MEMORY_BYTES
from troth_client.storage import ResidualEntry, Store
from troth_coordinator.rules.ids import RoundIndex


@dataclass(frozen=True, slots=True)
class KeptRounds:
    """How much is kept: rounds in any case, rounds without a release (`ring`), bytes in memory."""

    keep_rounds: int
    ring: int
    memory_bytes: int = MEMORY_BYTES


class ResidualArchive:
    """Every u that a seed, a later round or a rewind may ask for."""

    def __init__(self, store: Store, keeping: KeptRounds) -> None:
        self._store = store
        self._keeping = keeping
        self._recent: OrderedDict[RoundIndex, Float32] = OrderedDict()
        self._released: set[RoundIndex] = set()
        self._previous = {
            RoundIndex(round_): RoundIndex(previous)
            for round_, previous in store.residual_links().items()
        }
        # An audit that asks for one of these is answered with the reason, not with silence.
        lost = set(store.submission_rounds()) - self._previous.keys()
        self._previous |= {RoundIndex(round_): RoundIndex(round_) for round_ in lost}

    @property
    def memory_bytes(self) -> int:
        """Bytes of u that are held in memory now."""
        return sum(u.nbytes for u in self._recent.values())

    def put(self, entry: ResidualEntry) -> None:
        """Add the u of a proposed round that the store has just saved."""
        round_ = RoundIndex(entry.round)
        self._previous[round_] = RoundIndex(entry.previous_round)
        self._recent[round_] = entry.u
        while self.memory_bytes > self._keeping.memory_bytes:
            self._recent.popitem(last=False)

    def waiting(self) -> list[RoundIndex]:
        """Return the rounds that were not released, ascending: ask the chain about each."""
        return sorted(self._previous.keys() - self._released)

    def load(self, round_: int, root: bytes) -> Residual:
        """Return u of a round with its tree; ResidualLostError if the u with that root is lost.

        Hashes all of u, and reads it from disk if it is not in memory: call it in a thread.
        """
        u = self._recent.get(RoundIndex(round_))
        if u is None:
            entry = self._store.load_residual(round_)
            if entry is None:
                raise _lost(round_, root, "no file of it that is whole")
            u = entry.u
        tree = residual_tree(u)
        if tree.root != root:
            raise _lost(round_, root, f"root {tree.root.hex()}")
        return Residual(u, tree)

    def pair(self, sampled: Sampled) -> tuple[Residual, Residual | None]:
        """Return u of a sampled round and the u before it, as `OpeningsStore.make` takes them.

        Raises ResidualLostError, as `load` does.
        """
        after = self.load(sampled.round, sampled.root_after)
        if not sampled.has_previous:
            return after, None
        return after, self.load(sampled.previous_included, sampled.root_before)

    def release(self, round_: RoundIndex) -> None:
        """Mark a round as not needed by its seed; `tidy` forgets it when it may."""
        self._released.add(round_)

    def rewind(self, round_: RoundIndex) -> None:
        """Take back the releases from a round on: their seeds may be drawn anew."""
        self._released = {r for r in self._released if r < round_}

    def tidy(self, closed: RoundIndex, origins: Collection[RoundIndex]) -> None:
        """Forget every u that nobody can ask for any more, now that round `closed` is closed.

        `origins` are the rounds that M may be carried on from (`ResidualState.origins`).
        """
        keep = {r for r in self._previous if r > closed - self._keeping.keep_rounds}
        keep |= {r for r in self.waiting() if r > closed - self._keeping.ring}
        keep |= {self._previous[r] for r in keep} | set(origins)
        self._store.drop_residuals(keep)
        self._previous = {r: p for r, p in self._previous.items() if r in keep}
        self._released &= self._previous.keys()
        for round_ in self._recent.keys() - keep:
            del self._recent[round_]


def _lost(round_: int, root: bytes, found: str) -> ResidualLostError:
    return ResidualLostError(
        f"u of round {round_} with root {root.hex()}",
        found,
        "An audit that asks for it counts as without openings: check the disk of this machine.",
    )
