"""Where each weight lies in the stack of 64x64 tiles (protocol section 5.1).

Owns: name order, the shared matrix of 1-D tensors, padding, both directions of the cut.
Never: changes a value; it only moves values.
Next: `dct.py`, which transforms the tiles.

Shape legend: T tiles, R and C tile rows and columns of one matrix.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from troth_attestation.sizes import TILE_SIDE
from troth_client.compression.errors import (
    EmptyTensorError,
    NoTensorsError,
    TensorMismatchError,
    TileShapeError,
)
from troth_client.compression.matrices import Shape, grid_of, matrices_of


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix that is cut into tiles; `names` has several tensors only in the 1-D matrix."""

    names: tuple[str, ...]
    rows: int
    columns: int
    first_tile: int

    @property
    def grid(self) -> tuple[int, int]:
        """Tile rows and tile columns."""
        return grid_of(self.rows, self.columns)

    @property
    def tiles(self) -> slice:
        """The part of the stack that this matrix fills."""
        return slice(self.first_tile, self.first_tile + math.prod(self.grid))


@dataclass(frozen=True, slots=True)
class TileLayout:
    """The layout of a model: made once by `from_shapes`, equal on every participant.

    `shapes` is in name order (UTF-8 bytes), which is also the order of `from_tiles`.
    """

    shapes: Mapping[str, Shape]
    matrices: tuple[Matrix, ...]
    num_tiles: int
    num_parameters: int

    @property
    def tensor_tiles(self) -> tuple[int, ...]:
        """How many tiles each matrix has, in their order."""
        return tuple(math.prod(matrix.grid) for matrix in self.matrices)

    @classmethod
    def from_shapes(cls, shapes: Mapping[str, Iterable[int]]) -> "TileLayout":
        """Lay out trainable tensors: name -> shape, tied ones once.

        Raises NoTensorsError for an empty model and EmptyTensorError for a zero dimension.
        """
        ordered = {n: tuple(shapes[n]) for n in sorted(shapes, key=str.encode)}
        if not ordered:
            raise NoTensorsError(
                "at least one trainable tensor", "none", "Check which parameters require gradients."
            )
        for name, shape in ordered.items():
            if min(shape, default=1) < 1:
                raise EmptyTensorError(
                    "tensors with elements", f"{name!r} of shape {shape}", "Leave it out."
                )
        matrices: list[Matrix] = []
        first = 0
        for names, rows, columns in matrices_of(ordered):
            matrices.append(Matrix(names, rows, columns, first))
            first = matrices[-1].tiles.stop
        return cls(ordered, tuple(matrices), first, sum(map(math.prod, ordered.values())))

    def to_tiles(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Cut tensors of one dtype and device into a new zero-padded stack [T, 64, 64].

        Raises TensorMismatchError if names or shapes are not those of the layout.
        """
        self.check(tensors)
        one = next(iter(tensors.values()))
        stack = one.new_zeros((self.num_tiles, TILE_SIDE, TILE_SIDE))
        for matrix in self.matrices:
            grid_rows, grid_columns = matrix.grid
            tiles = (
                stack[matrix.tiles]
                .view(grid_rows, grid_columns, TILE_SIDE, TILE_SIDE)
                .transpose(1, 2)
            )
            tiles.copy_(
                _padded(matrix, tensors).view(grid_rows, TILE_SIDE, grid_columns, TILE_SIDE)
            )
        return stack

    def from_tiles(self, stack: Tensor) -> dict[str, Tensor]:
        """Put a stack [T, 64, 64] together again, padding dropped: name -> tensor, in name order.

        The tensors may share memory with the stack. Raises TileShapeError for another shape.
        """
        if stack.shape != (self.num_tiles, TILE_SIDE, TILE_SIDE):
            raise TileShapeError(
                f"a stack of shape [{self.num_tiles}, 64, 64]",
                f"{list(stack.shape)}",
                "Check that the payload was made for this model.",
            )
        found: dict[str, Tensor] = {}
        for matrix in self.matrices:
            rows, columns = matrix.grid
            tiles = stack[matrix.tiles].view(rows, columns, TILE_SIDE, TILE_SIDE).transpose(1, 2)
            whole = tiles.reshape(rows * TILE_SIDE, columns * TILE_SIDE)
            found |= self._split(matrix, whole[: matrix.rows, : matrix.columns])
        return {name: found[name] for name in self.shapes}

    def whole(self, matrix: Matrix, tensors: Mapping[str, Tensor]) -> Tensor:
        """Return the values of a matrix, [rows, columns] in any layout, zeros behind 1-D tensors.

        It shares the memory of a 2-D tensor; otherwise it may be a copy (see `put_back`).
        """
        parts = [tensors[name].detach() for name in matrix.names]
        if not self._is_flat(matrix):
            return parts[0].reshape(matrix.rows, matrix.columns)
        values = parts[0].new_zeros((matrix.rows, matrix.columns))
        flat = torch.cat([part.reshape(-1) for part in parts])
        values.view(-1)[: flat.numel()] = flat
        return values

    def put_back(self, matrix: Matrix, values: Tensor, tensors: Mapping[str, Tensor]) -> None:
        """Copy the values of `whole` into its tensors, unless they share their memory."""
        if values.data_ptr() == tensors[matrix.names[0]].data_ptr():
            return
        for name, part in self._split(matrix, values).items():
            tensors[name].detach().copy_(part)

    def _is_flat(self, matrix: Matrix) -> bool:
        """Whether a matrix is the one of all tensors below 2-D."""
        return len(self.shapes[matrix.names[0]]) < 2

    def _split(self, matrix: Matrix, values: Tensor) -> dict[str, Tensor]:
        if not self._is_flat(matrix):
            return {name: values.reshape(self.shapes[name]) for name in matrix.names}
        flat = values.reshape(-1)
        sizes = [math.prod(self.shapes[name]) for name in matrix.names]
        parts = torch.split(flat[: sum(sizes)], sizes)
        return {n: p.reshape(self.shapes[n]) for n, p in zip(matrix.names, parts, strict=True)}

    def check(self, tensors: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> None:
        """Raise TensorMismatchError unless names, shapes, one device and one dtype are right."""
        if tensors.keys() != self.shapes.keys():
            odd = sorted(tensors.keys() ^ self.shapes.keys())
            raise TensorMismatchError(
                f"the {len(self.shapes)} tensors of the layout",
                f"{len(tensors)} tensors; missing or unknown: {', '.join(odd[:5])}",
                "Use the model that the run's config names.",
            )
        kinds = {(x.dtype, x.device) for x in tensors.values()}
        if len(kinds) > 1 or (dtype is not None and next(iter(kinds))[0] != dtype):
            raise TensorMismatchError(
                f"one device and one dtype{f', {dtype}' if dtype else ''}",
                f"{sorted(map(str, kinds))}",
                "Convert the tensors first.",
            )
        for name, shape in self.shapes.items():
            if tuple(tensors[name].shape) != shape:
                raise TensorMismatchError(
                    f"{name!r} of shape {shape}",
                    f"{tuple(tensors[name].shape)}",
                    "Use the model that the run's config names.",
                )


def _padded(matrix: Matrix, tensors: Mapping[str, Tensor]) -> Tensor:
    """Return the values of a matrix [64 R, 64 C], zeros where the tensors do not reach."""
    rows, columns = (n * TILE_SIDE for n in matrix.grid)
    parts = [tensors[name].reshape(-1) for name in matrix.names]
    if len(parts) == 1 and parts[0].numel() == rows * columns:
        return parts[0].view(rows, columns)
    whole = parts[0].new_zeros((rows, columns))
    if tensors[matrix.names[0]].ndim < 2:
        flat = torch.cat(parts)
        whole.view(-1)[: flat.numel()] = flat
    else:
        whole[: matrix.rows, : matrix.columns] = parts[0].view(matrix.rows, matrix.columns)
    return whole
