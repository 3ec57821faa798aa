"""The residual: DeMo's momentum, kept at home in the DCT domain (protocol section 5.2).

Owns: how M becomes u, and u becomes the next M. Never: decides whether a payload was included, or
subtracts what was sent before the chain has included it: nothing unaudited enters a residual.
Next: `topk.py`, which chooses from u; `apply.py`, which adds up the signs of all trainers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_COEFFICIENTS
from troth_client.compression.dct import check_tiles


@dataclass(frozen=True, slots=True)
class Residual:
    """The rule of a run: decay `beta_micro`, forgotten share of what was sent `alpha_micro`.

    Both are in millionths. The tensors stay with the caller, who must keep u until the audit.
    """

    beta_micro: int
    alpha_micro: int = 1_000_000

    @torch.no_grad()
    def accumulate(self, residual: Tensor | None, coefficients: Tensor) -> Tensor:
        """Return u = beta * M + D(g), a new fp32 [T, 64, 64]; None stands for a zero residual.

        Raises TileShapeError unless both are fp32 tiles: in bf16 a decay of 0.999 changes nothing.
        """
        check_tiles(coefficients)
        if residual is None:
            return coefficients.clone()
        check_tiles(residual)
        return torch.mul(residual, self.beta_micro / 1_000_000).add_(coefficients)

    @torch.no_grad()
    def after_included(self, u: Tensor, sent: Signs) -> Tensor:
        """Return the next M: a copy of u whose sent entries are multiplied by 1 - alpha.

        If the payload was not included, M stays what it was before that round: do not call this.
        """
        check_tiles(u)
        residual = u.clone()
        flat = residual.view(-1, TILE_COEFFICIENTS)
        indices = torch.from_numpy(sent.indices).to(u.device, torch.int64)
        kept = (1_000_000 - self.alpha_micro) / 1_000_000
        flat.scatter_(1, indices, flat.gather(1, indices) * kept)
        return residual
