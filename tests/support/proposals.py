"""A proposal of drawn or given coefficients, made by torch as an honest trainer makes it.

Owns: the way from D(g) to `ResidualState.offer`. Never: settles it. Next: the tests of that state.
"""

from torch import Tensor

from troth_client.compression.kernels.base import Encoded
from troth_client.compression.residual import Residual
from troth_client.compression.topk import top_k
from troth_client.state.residual_state import Proposal, ResidualState
from troth_coordinator.rules.ids import RoundIndex


def proposed(
    state: ResidualState, rule: Residual, round_: int, coefficients: Tensor, k: int
) -> Proposal:
    """Offer u = beta * M + D(g) of a round, on the momentum of the state."""
    moved = rule.accumulate(state.momentum.carried, coefficients)
    encoded = Encoded(moved.u, top_k(moved.u, k), rule.is_sent(moved))
    return state.offer(RoundIndex(round_), encoded)
