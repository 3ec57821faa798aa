"""The chosen coefficients of a payload, one sign each, as trainers send and judges compare them.

Owns: the one record of them, and that its three arrays belong together.
Never: chooses them (`selection.py` does for the judge, the client for the trainer) or packs them.
Next: `work.py`, which compares a payload with the opened tiles.

Shape legend: T tiles, k coefficients per tile.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from troth_attestation.errors import TensorError

Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of one trainer: T tiles with k coefficients each, T at least 1.

    present: bool [T], False where a tile is not sent; indices: int16 [T, k], ascending in a tile;
    negative: bool [T, k], in the order of the indices. Fields of absent tiles are zero. Nobody
    writes into the arrays. Raises TensorError for other dtypes or shapes; order and absent tiles
    are not checked here: the decoder of foreign bytes does, and names the tile that is wrong.
    """

    present: Bools
    indices: Indices
    negative: Bools

    def __post_init__(self) -> None:
        arrays = (self.present, self.indices, self.negative)
        shape = self.indices.shape
        are_alike = self.present.shape == shape[:1] and self.negative.shape == shape
        if not (are_alike and len(shape) == 2 and min(shape) > 0):
            raise TensorError(
                "signs",
                "present [T], indices [T, k] and negative [T, k] with T, k >= 1",
                [list(array.shape) for array in arrays],
                "choose them from the tiles of u",
            )
        are_bools = self.present.dtype == np.bool_ and self.negative.dtype == np.bool_
        if not (are_bools and self.indices.dtype == np.int16):
            raise TensorError(
                "signs",
                "bool, int16 and bool",
                [str(array.dtype) for array in arrays],
                "convert the arrays first",
            )

    @property
    def num_tiles(self) -> int:
        """T."""
        return len(self.indices)

    @property
    def k(self) -> int:
        """Coefficients per tile."""
        return int(self.indices.shape[1])
