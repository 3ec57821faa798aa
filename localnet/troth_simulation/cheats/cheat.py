"""A cheat: the work that replaces the assigned work, and its first round.

Owns: the fields. Never: acts; `ports.py` makes ports of them.
Next: `catalogue.py`, which names them.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from troth_attestation.verdict import Verdict
from troth_coordinator.rules.view import Role
from troth_simulation.cheats.signed import Residual, same_openings, same_residual
from troth_simulation.cheats.tiles import Tiles, same_tiles
from troth_simulation.cheats.votes import as_found
from troth_simulation.cheats.work import Batch, Gradient, same_batch, same_gradient

HONEST_ROUNDS = 3
"""Cheats begin honestly: this many included payloads are honest."""
ONCE = sys.maxsize
"""The period of a cheat whose first dishonest payload is its last one."""


class Hidden(StrEnum):
    """The bytes that a cheat withholds: payloads, opening sets whose root is on chain, or u.

    UNTIL_JURY: opening sets too, but only until a jury asks for them.
    """

    PAYLOADS = "payloads"
    OPENINGS = "openings"
    UNTIL_JURY = "until-jury"
    RESIDUALS = "residuals"


@dataclass(frozen=True, slots=True)
class Cheat:
    """The conduct of a cheat from its fourth included payload on.

    - fault: the penalty in which it ends (protocol section 8), empty where none is possible.
    - computes: whether it computes a gradient; if not, it sends the decayed residual.
    - stale_rounds: the age in rounds of the weights on which it computes.
    - copies: whether u is made of somebody else's payload of the round before.
    - period: of so many included payloads the first is dishonest, the others are honest.
    - gradient: makes tensors by name in place of the gradient; tiles: its coefficients, likewise.
    - residual: makes the tensor that it commits to in place of u.
    - openings: makes the bytes that it shows in place of the opened tiles.
    - hides: the bytes that it does not serve.
    - vote: makes its vote on a jury about work in place of its finding.
    """

    name: str
    story: str
    fault: str = "P3"
    honest_rounds: int = HONEST_ROUNDS
    computes: bool = True
    stale_rounds: int = 0
    copies: bool = False
    period: int = 1
    batch: Callable[[Batch], Batch] = same_batch
    gradient: Callable[[Gradient], Gradient] = same_gradient
    tiles: Callable[[Tiles], Tiles] = same_tiles
    residual: Callable[[Residual], Residual] = same_residual
    openings: Callable[[bytes], bytes] = same_openings
    hides: Hidden | None = None
    vote: Callable[[Verdict], Verdict] = as_found

    @property
    def role(self) -> Role:
        """The role in which it cheats: trainers only train, but one that lies on juries judges."""
        is_juror = self.vote is not as_found
        return Role.TRAINER | Role.WITNESS if is_juror else Role.TRAINER
