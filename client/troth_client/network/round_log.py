"""The round log: closed rounds as the chain showed them, kept while the ring moves on.

Owns: the accounts of closed rounds that a participant replays once it has fetched the weights.
Never: replaces the chain: an account that the ring still holds is read there.
Next: `chain.py`, which falls back on it; `steps/restore.py`, which fills it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView

ReadRounds = Callable[[Sequence[int]], Awaitable[list[RoundView | None]]]


@dataclass(slots=True)
class RoundLog:
    """Closed rounds by number."""

    rounds: dict[int, RoundView] = field(default_factory=dict)

    async def follow(self, read: ReadRounds, view: NetworkView, first: int) -> None:
        """Take in the closed rounds from `first` on that the ring holds and the log does not.

        Rounds that a report of missing payloads may still correct are read again. `read` returns
        the accounts of rounds, None for those that the ring does not hold.
        """
        run = view.run
        oldest = max(first, run.round - run.params.ring + 1)
        correctable = min(run.round - 1, run.base_round)
        wanted = [r for r in range(oldest, run.round) if r not in self.rounds or r >= correctable]
        for found in await read(wanted) if wanted else []:
            if found is not None and found.flags & RoundFlag.CLOSED:
                self.rounds[found.round] = found

    def drop_before(self, round_: int) -> None:
        """Forget earlier rounds."""
        self.rounds = {r: view for r, view in self.rounds.items() if r >= round_}
