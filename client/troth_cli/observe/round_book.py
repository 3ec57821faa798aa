"""The closed rounds that were seen, in bounded memory.

Owns: which rounds are kept when there are too many. Never: reads the chain.
Next: `observer.py`, which fills it.

The newest half is whole. When the book is full, every other round of its older half goes. So a run
of 100,000 rounds keeps its shape, with ever larger steps towards its beginning.
"""

from collections.abc import Iterable

from troth_audit.rounds import ClosedRound
from troth_cli.observe.record import RoundSeen
from troth_client.telemetry.losses import RoundLoss
from troth_client.telemetry.thinning import superfluous


class RoundBook:
    """Closed rounds by number, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = max(4, most)
        self._rounds: dict[int, RoundSeen] = {}
        self._first: int | None = None
        self.num_dropped = 0

    def __contains__(self, round_: int) -> bool:
        return round_ in self._rounds

    def add(self, found: Iterable[ClosedRound | None]) -> bool:
        """Take rounds in; return whether one is new or has changed. The loss of a round stays."""
        has_changed = False
        for one in found:
            if one is None:
                continue
            known = self._rounds.get(one.round)
            if known is not None and known.chain == one:
                continue
            # A payload that is struck later changes the round: its loss is computed again.
            self._rounds[one.round] = RoundSeen(one)
            self._first = one.round if self._first is None else min(self._first, one.round)
            has_changed = True
        if has_changed:
            self._rounds = dict(sorted(self._rounds.items()))
            self._thin_out()
        return has_changed

    def put_loss(self, chain: ClosedRound, loss: RoundLoss) -> bool:
        """Keep the loss of a round, if the round is still as it was; return whether it is new."""
        known = self._rounds.get(chain.round)
        if known is None or known.chain != chain or known.loss == loss:
            return False
        self._rounds[chain.round] = RoundSeen(chain, loss)
        return True

    def get(self, round_: int) -> RoundSeen | None:
        """Return a round, None if it is not kept."""
        return self._rounds.get(round_)

    @property
    def first(self) -> int | None:
        """The oldest round that was ever added."""
        return self._first

    def all(self) -> tuple[RoundSeen, ...]:
        """Return all, oldest first."""
        return tuple(self._rounds.values())

    def _thin_out(self) -> None:
        while dropped := superfluous(list(self._rounds), self._most):
            for round_ in dropped:
                del self._rounds[round_]
            self.num_dropped += len(dropped)
