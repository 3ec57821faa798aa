"""Seeded schedules of faults, by slots of the chain.

Owns: who has which fault when. Never: causes one; `soak.py` does. Next: `trouble.py`.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from troth_simulation.faults.trouble import Kind

KILLED_SLOTS: Final = (2, 4)
"""A killed process is started again after so many slots: a supervisor does it at once."""


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault: it begins at a slot, counted from the start of the soak, and lasts some slots."""

    slot: int
    num_slots: int
    member: int
    kind: Kind

    @property
    def end_slot(self) -> int:
        """The first slot without it."""
        return self.slot + self.num_slots


@dataclass(frozen=True, slots=True)
class Weather:
    """How a schedule is drawn.

    A fault begins every `period_slots`, from the first period on, for `num_slots` slots. Kinds come
    in shuffled rounds, so that each comes equally often. The fault lasts `lengths` slots, ends
    included; a process that is killed lasts `KILLED_SLOTS`. At most `most_at_once` members of
    `members` have a fault at a time, and each has one.
    """

    kinds: Sequence[Kind]
    members: Sequence[int]
    num_slots: int
    period_slots: int
    seed: int
    lengths: tuple[int, int] = (3, 25)
    most_at_once: int = 2

    def __post_init__(self) -> None:
        """Refuse weather that cannot be drawn; ValueError."""
        if not self.kinds or not self.members:
            raise ValueError("expected a kind of fault and a member, found none: name at least one")
        if self.period_slots < 1 or self.lengths[0] < 1 or self.lengths[0] > self.lengths[1]:
            raise ValueError(
                f"expected a period and lengths of 1 slot or more, found {self.period_slots} and"
                f" {self.lengths}: choose larger ones"
            )


def schedule(weather: Weather) -> tuple[Fault, ...]:
    """Return the faults in order of their slots; equal weather gives equal faults.

    Where all that may have a fault have one, the moment passes without a new one.
    """
    draw = random.Random(weather.seed)
    faults: list[Fault] = []
    bag: list[Kind] = []
    for slot in range(weather.period_slots, weather.num_slots, weather.period_slots):
        struck = {fault.member for fault in faults if fault.end_slot > slot}
        fit = [member for member in weather.members if member not in struck]
        if not fit or len(struck) >= weather.most_at_once:
            continue
        if not bag:
            bag = list(weather.kinds)
            draw.shuffle(bag)
        kind = bag.pop()
        lengths = KILLED_SLOTS if kind is Kind.KILL else weather.lengths
        faults.append(Fault(slot, draw.randint(*lengths), draw.choice(fit), kind))
    return tuple(faults)
