"""From a gradient and the momentum to u, its top k, and what of it is sent (protocol section 5.2).

Owns: the way through torch, and when compiled kernels do the same in one pass.
Never: keeps a tensor from one round to the next; `state/residual_state.py` does.
Next: `tiles.py`, `dct.py`, `residual.py` and `topk.py` in this order; `kernels/encode.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from troth_client.compression.dct import check_tiles, dct2
from troth_client.compression.errors import TileShapeError
from troth_client.compression.kernels.base import Encoded, Kernels
from troth_client.compression.limits import check_k
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import top_k


@dataclass(frozen=True, slots=True)
class Encoder:
    """How a trainer encodes: tiles of its model, rule and k of its run, compiled kernels or None.

    Momentum and u live on `device`; None: where the gradient is.

    For one D(g) both ways give the same bits. Their D(g) may differ in the last bits, so places may
    differ where two coefficients are that close (`kernels.base.MAX_ERROR`); audits allow for it.
    """

    layout: TileLayout
    rule: Residual
    k: int
    kernels: Kernels | None = None
    device: torch.device | None = None

    def encode(
        self,
        gradient: Mapping[str, Tensor],
        carried: Carried | None,
        *,
        in_place: bool = False,
    ) -> Encoded:
        """Return u = F(b + D(g)) and its choice; `carried` is M, None for zero.

        `gradient`: name -> fp32. `in_place`: the new u may take the memory of the one that is
        carried, which an error then leaves undefined. That is for DeMo alone, as an optimizer: a
        participant may need both for an audit. Otherwise nothing is written into either. Raises
        NonFiniteError, TensorMismatchError, TileShapeError, UnsupportedKError.
        """
        if carried is not None:
            self._check(carried)
        if self.kernels is not None and self.kernels.take(gradient.values()):
            self.layout.check(gradient)
            can_hold = in_place and carried is not None and carried.u.is_contiguous()
            into = carried.u if carried is not None and can_hold else None
            k = check_k(self.k)
            return self.kernels.encode(gradient, carried, self.layout, self.rule, k, into)
        coefficients = dct2(self.layout.to_tiles(gradient), in_place=True)
        return self.encode_tiles(coefficients.to(self.device), carried)

    def encode_tiles(self, coefficients: Tensor, carried: Carried | None) -> Encoded:
        """Return the same for D(g), fp32 [T, 64, 64], by torch. Errors as in `encode`."""
        moved = self.rule.accumulate(carried, coefficients)
        return Encoded(moved.u, top_k(moved.u, self.k), self.rule.is_sent(moved))

    def _check(self, carried: Carried) -> None:
        """Raise TileShapeError unless M has the tiles of the layout and k places of each.

        Compiled kernels would read behind a shorter one, and torch would stretch a single tile.
        """
        check_tiles(carried.u)
        wanted, found = self.layout.num_tiles, carried.indices.shape
        if len(carried.u) != wanted or found != (wanted, self.k):
            raise TileShapeError(
                f"a momentum of {wanted} tiles, and {self.k} places of each",
                f"{len(carried.u)} tiles, and places of shape {list(found)}",
                "Use the momentum of this model and run.",
            )
