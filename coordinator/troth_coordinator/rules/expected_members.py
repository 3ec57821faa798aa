"""Which members a run expects, and whether those there may go on in its name (section 3).

Owns: the rule of half, and the memory of two epochs. Never: decides who is there.
Next: `root.py`, whose majorities are of the members of one round.

All majorities are of a round's members. Without this rule a few that stay while the others are cut
off would be a majority of themselves.
"""

from dataclasses import dataclass, replace

from troth_coordinator.rules.bitmap import count
from troth_coordinator.rules.view import RunView


@dataclass(frozen=True, slots=True)
class ExpectedMembers:
    """The members that a run expects.

    admitted: how many owners were admitted before the first round, when nobody is a member yet.
    of_epoch: all that were members in `epoch`, without those that have gone since.
    before: those of the epoch before. epoch: that of the last open.
    """

    admitted: int = 0
    of_epoch: int = 0
    before: int = 0
    epoch: int = 0

    @classmethod
    def of(cls, run: RunView) -> "ExpectedMembers":
        """Return those that a Run account keeps."""
        return cls(
            run.expected_admitted, run.expected_members, run.expected_before, run.expected_epoch
        )

    @property
    def number(self) -> int:
        """How many: those of the epoch with more, or before the first round the admitted."""
        return max(count(self.of_epoch), count(self.before), self.admitted)

    def opened(self, members: int, epoch: int, *, is_first: bool) -> "ExpectedMembers":
        """Return them after an open. At the first one of a run nobody is expected from before."""
        if is_first:
            of_epoch = before = 0
        elif epoch == self.epoch:
            of_epoch, before = self.of_epoch, self.before
        else:
            of_epoch, before = 0, self.of_epoch
        return ExpectedMembers(0, of_epoch | members, before, epoch)

    def only(self, there: int) -> "ExpectedMembers":
        """Return them once the authority has begun with those who are there."""
        return ExpectedMembers(0, there, 0, self.epoch)

    def without(self, gone: int) -> "ExpectedMembers":
        """Return them without members that have left, are barred, or whose stake is short."""
        return replace(self, of_epoch=self.of_epoch & ~gone, before=self.before & ~gone)

    def is_half(self, there: int) -> bool:
        """Tell whether so many are at least half of them."""
        return there * 2 >= self.number

    def least_to_begin(self, min_members: int) -> int:
        """Return how many must be there before anybody may begin a Warmup."""
        return max(min_members, -(-self.number // 2))
