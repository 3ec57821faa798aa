"""Whether those who are there may go on in the name of a run (protocol section 3).

Owns: the rule of half, and how many members are expected. Never: counts anybody.
Next: `root.py`, whose majorities are of the members of one round.

All majorities are of a round's members. Without this rule a few that stay while the others are cut
off would be a majority of themselves.
"""


def is_half(there: int, expected: int) -> bool:
    """Tell whether so many are at least half of those that are expected."""
    return there * 2 >= expected


def expected(before: int, members: int, *, starts_epoch: bool) -> int:
    """Return the expected members once a round has opened: the most of an epoch so far."""
    return members if starts_epoch else max(before, members)


def least_to_begin(min_members: int, expected_members: int) -> int:
    """Return how many participants must be there before anybody may begin a Warmup."""
    return max(min_members, -(-expected_members // 2))
