"""The inner loops of both kernels: sums of scaled rows, in vector registers.

Owns: the machine code of `out[i] = sum over s of left[s, i] * right[s]` and of one such step,
written with llvmlite.
Never: knows tiles. The processor may fuse a product with its sum, so callers bear both roundings.
Next: `encode.py`, `apply.py`; `saved.py`, since their saved machine code holds this one.

Numba's own vectoriser keeps such sums in memory and is several times slower.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.base import BaseContext
from numba.core.types import Type
from numba.core.types.containers import BaseTuple
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

_FEATURES = llvm.get_host_cpu_features()
_LANES = 16 if _FEATURES.get("avx512f") else 8 if _FEATURES.get("avx2") else 4
_VECTORS = 4 if _LANES == 16 else 2
_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, _LANES)
_SIDE = 64
_LINE = 16
"""Elements of a cache line."""
_BYTES = ir.IntType(8).as_pointer()
_MAY_FUSE = ("contract",)

Values = Sequence[ir.Value]
Generator = Callable[[BaseContext, ir.IRBuilder, Signature, Values], ir.Value]
Function = TypeVar("Function", bound=Callable[..., object])


def entry(function: Function) -> Function:
    """Compile a function when it is first called, or load it from the cache of another process.

    It runs without the interpreter's lock. Raises RuntimeError where no folder takes the cache.
    """
    decorated: Function = njit(nogil=True, cache=True)(function)
    return decorated


def part(function: Function) -> Function:
    """Compile a function into the entries that call it."""
    decorated: Function = njit(function)
    return decorated


class _Operand(NamedTuple):
    """A flat float32 array: the element at (s, i) is `data[at + s * by_s + i * by_i]`."""

    data: ir.Value
    at: ir.Value
    by_s: ir.Value
    by_i: ir.Value


def product(rows: int, columns: int) -> Callable[..., None]:
    """Return a function for compiled code, which writes `rows` x `columns` sums of n products.

    It takes (out, left, right, n). Each operand is (flat float32 array, place, step of s, step of
    i), counted in elements. A row of `out` and of `right` lies whole.
    """

    def typed(
        _context: BaseContext, out: Type, left: Type, right: Type, _count: Type
    ) -> tuple[Signature, Generator]:
        signature = types.void(out, left, right, types.intp)

        def generate(
            context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values
        ) -> ir.Value:
            operands = [
                _operand(context, builder, kind, value)
                for kind, value in zip(signature.args[:3], args[:3], strict=True)
            ]
            wide = min(columns, _LANES * _VECTORS)
            for first in range(0, columns, wide):
                _sums(builder, operands, args[3], rows, range(first, first + wide, _LANES))
            return context.get_dummy_value()

        return signature, generate

    made: Callable[..., None] = intrinsic(typed)
    return made


def scaled_row(columns: int) -> Callable[..., None]:
    """Return a function for compiled code, which adds `columns` scaled elements to others.

    It takes (out, place, factor, row, place): flat float32 arrays, places counted in elements.
    """

    def typed(
        _context: BaseContext, out: Type, at: Type, factor: Type, row: Type, of: Type
    ) -> tuple[Signature, Generator]:
        signature = types.void(out, at, factor, row, of)

        def generate(
            context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values
        ) -> ir.Value:
            total = _element(context, builder, signature.args[:2], args[:2])
            values = _element(context, builder, signature.args[3:], args[3:])
            spread = _spread(builder, args[2])
            for first in range(0, columns, _LANES):
                place = ir.Constant(ir.IntType(64), first)
                here, there = (builder.gep(start, [place]) for start in (total, values))
                scaled = builder.fmul(spread, _load(builder, there, _VECTOR), flags=_MAY_FUSE)
                found = builder.fadd(_load(builder, here, _VECTOR), scaled, flags=_MAY_FUSE)
                builder.store(found, builder.bitcast(here, _VECTOR.as_pointer()), align=4)
            return context.get_dummy_value()

        return signature, generate

    made: Callable[..., None] = intrinsic(typed)
    return made


def _prefetching(_context: BaseContext, data: Type, place: Type) -> tuple[Signature, Generator]:
    """Ask for the cache line of an element: flat float32 array, place. Nothing is read."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values
    ) -> ir.Value:
        address = builder.bitcast(_element(context, builder, signature.args, args), _BYTES)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, word, word, word])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
        builder.call(ask, [address, *(ir.Constant(word, n) for n in (1, 3, 1))])
        return context.get_dummy_value()

    return types.void(data, types.intp), generate


_prefetch: Callable[..., None] = intrinsic(_prefetching)


@part
def fetch_tile(matrix: NDArray[np.float32], top: int, first: int) -> None:
    """Ask for a tile, whole or cut off, so that it arrives while another one is computed.

    Its rows lie far apart, where the processor does not ask by itself.
    """
    columns = matrix.shape[1]
    for row in range(top, min(top + _SIDE, matrix.shape[0])):
        for column in range(first, min(first + _SIDE, columns), _LINE):
            _prefetch(matrix, row * columns + column)


def _element(
    context: BaseContext, builder: ir.IRBuilder, kinds: Sequence[Type], values: Values
) -> ir.Value:
    """Return the address of an element: a flat float32 array and a place."""
    array = context.make_array(kinds[0])(context, builder, values[0])
    return builder.gep(array.data, [context.cast(builder, values[1], kinds[1], types.intp)])


def _operand(
    context: BaseContext, builder: ir.IRBuilder, kind: BaseTuple, value: ir.Value
) -> _Operand:
    parts = [builder.extract_value(value, n) for n in range(4)]
    array = context.make_array(kind.types[0])(context, builder, parts[0])
    places = (
        context.cast(builder, part, part_kind, types.intp)
        for part, part_kind in zip(parts[1:], kind.types[1:], strict=True)
    )
    return _Operand(array.data, *places)


def _sums(
    builder: ir.IRBuilder,
    operands: list[_Operand],
    count: ir.Value,
    rows: int,
    starts: range,
) -> None:
    """Write the loop over s for the columns from each of `starts` on, one vector each."""
    out, left, right = operands
    entry = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    s = builder.phi(count.type)
    s.add_incoming(ir.Constant(count.type, 0), entry)
    sums = [[builder.phi(_VECTOR) for _ in starts] for _ in range(rows)]
    for total in (total for row in sums for total in row):
        total.add_incoming(ir.Constant(_VECTOR, [0.0] * _LANES), entry)
    builder.cbranch(builder.icmp_signed("<", s, count), body, end)

    builder.position_at_end(body)
    loaded = [_load(builder, _address(builder, right, s, 0, start), _VECTOR) for start in starts]
    for i, row in enumerate(sums):
        factor = _spread(builder, _load(builder, _address(builder, left, s, i, 0), _FLOAT))
        for total, values in zip(row, loaded, strict=True):
            scaled = builder.fmul(factor, values, flags=_MAY_FUSE)
            total.add_incoming(builder.fadd(total, scaled, flags=_MAY_FUSE), body)
    s.add_incoming(builder.add(s, ir.Constant(count.type, 1)), body)
    builder.branch(head)

    builder.position_at_end(end)
    for i, row in enumerate(sums):
        for total, start in zip(row, starts, strict=True):
            address = _address(builder, out, ir.Constant(count.type, 0), i, start)
            builder.store(total, builder.bitcast(address, _VECTOR.as_pointer()), align=4)


def _address(
    builder: ir.IRBuilder, operand: _Operand, s: ir.Value, i: int, column: int
) -> ir.Value:
    """Return where element (s, i) of an operand lies, `column` elements further on."""
    kind = operand.at.type
    by_i = builder.mul(operand.by_i, ir.Constant(kind, i))
    place = builder.add(builder.add(operand.at, by_i), builder.mul(operand.by_s, s))
    return builder.gep(operand.data, [builder.add(place, ir.Constant(kind, column))])


def _load(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.load(builder.bitcast(address, kind.as_pointer()), align=4)


def _spread(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    """Return a vector that holds one number everywhere."""
    blank = ir.Constant(_VECTOR, ir.Undefined)
    word = ir.IntType(32)
    one = builder.insert_element(blank, number, ir.Constant(word, 0))
    return builder.shuffle_vector(
        one, blank, ir.Constant(ir.VectorType(word, _LANES), [0] * _LANES)
    )
