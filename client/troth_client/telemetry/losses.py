"""The losses that trainers sign in their headers, as one number that an odd one cannot spoil.

Owns: which losses count, their mean and median. Never: decides anything; losses are telemetry, and
nothing checks them. Next: `steps/settle.py` and `troth_cli/observe/losses.py`, which report it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import median
from typing import Final

MOST_MICRO: Final = 1_000 * 10**6
"""No loss is larger: at 1,000 nats a model gives each right token the chance e^-1000."""
ODD_FACTOR: Final = 10
ODD_MICRO: Final = 10**6
"""A loss is odd above ten times the median and one nat."""


@dataclass(frozen=True, slots=True)
class RoundLoss:
    """The training loss of a round, from the signed headers of its included payloads.

    Telemetry: a trainer writes what it likes, and nothing checks it. `num_known`: headers that were
    found. `num_odd` of them are left out of the mean: no loss can be like that, or it is far from
    the others.
    """

    mean_micro: int | None = None
    median_micro: int | None = None
    num_known: int = 0
    num_odd: int = 0


def is_sound(loss: int) -> bool:
    """Tell whether a model can have such a loss, in micro-nats."""
    return 0 <= loss <= MOST_MICRO


def round_loss(losses: Collection[int]) -> RoundLoss:
    """Return mean and median, in micro-nats, of the losses that a trainer can have had."""
    sound = [loss for loss in losses if is_sound(loss)]
    if not sound:
        return RoundLoss(num_known=len(losses), num_odd=len(losses))
    middle = median(sound)
    near = [loss for loss in sound if loss <= ODD_FACTOR * middle + ODD_MICRO]
    return RoundLoss(
        mean_micro=round(sum(near) / len(near)),
        median_micro=round(middle),
        num_known=len(losses),
        num_odd=len(losses) - len(near),
    )
