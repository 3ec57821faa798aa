"""How many members a run expects, and whether those there may go on in its name (section 3).

Owns: the rule of half, and the memory of two epochs. Never: counts anybody.
Next: `root.py`, whose majorities are of the members of one round.

All majorities are of a round's members. Without this rule a few that stay while the others are cut
off would be a majority of themselves.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ExpectedMembers:
    """The members that a run expects.

    now: the most members of one round in this epoch and the one before. of_epoch: the most of
    `epoch` alone, which is the epoch of the last open.
    """

    now: int = 0
    of_epoch: int = 0
    epoch: int = 0

    def opened(self, members: int, epoch: int, *, is_first: bool) -> "ExpectedMembers":
        """Return them after an open. At the first one of a run nobody is expected from before."""
        if is_first:
            before = ExpectedMembers()
        elif epoch == self.epoch:
            before = self
        else:
            before = ExpectedMembers(self.of_epoch)
        return ExpectedMembers(max(before.now, members), max(before.of_epoch, members), epoch)

    def without(self, gone: int) -> "ExpectedMembers":
        """Return them without members that have left, or whose stake is short."""
        return replace(self, now=max(0, self.now - gone), of_epoch=max(0, self.of_epoch - gone))

    def is_half(self, there: int) -> bool:
        """Tell whether so many are at least half of them."""
        return there * 2 >= self.now

    def least_to_begin(self, min_members: int) -> int:
        """Return how many must be there before anybody may begin a Warmup."""
        return max(min_members, -(-self.now // 2))
