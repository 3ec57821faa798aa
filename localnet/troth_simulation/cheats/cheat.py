"""A cheat: what somebody does in place of the assigned work, and from when on.

Owns: the fields. Never: does any of it; `troth_simulation.cheats.ports` turns them into doors.
Next: `catalogue.py`, which names them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from troth_simulation.cheats.signed import Residual, same_openings, same_residual
from troth_simulation.cheats.work import Batch, Gradient, same_batch, same_gradient

HONEST_ROUNDS = 3
"""Cheats earn their way in first: so many included payloads are honest."""


class Hidden(StrEnum):
    """What a cheat keeps to itself: its payloads, opening sets whose root is on chain, its u."""

    PAYLOADS = "payloads"
    OPENINGS = "openings"
    RESIDUALS = "residuals"


@dataclass(frozen=True, slots=True)
class Cheat:
    """What somebody does from its fourth included payload on.

    `fault`: the penalty that it ends with (protocol section 8), empty where none is possible.
    `computes`: whether a gradient is computed at all; without, it is zero and what is sent is the
    decayed residual. `stale_rounds`: how many rounds old the weights are that it is computed on.
    `copies`: whether u is made of somebody else's payload of the round before. `is_once`: whether
    all later payloads are honest again. `residual` is what it commits to in place of u, `openings`
    what it shows in place of the opened tiles, `hides` what it never serves.
    """

    name: str
    story: str
    fault: str = "P3"
    honest_rounds: int = HONEST_ROUNDS
    computes: bool = True
    stale_rounds: int = 0
    copies: bool = False
    is_once: bool = False
    batch: Callable[[Batch], Batch] = same_batch
    gradient: Callable[[Gradient], Gradient] = same_gradient
    residual: Callable[[Residual], Residual] = same_residual
    openings: Callable[[bytes], bytes] = same_openings
    hides: Hidden | None = None
