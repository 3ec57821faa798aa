"""Exact fp32 constants (protocol section 5.5), by integer arithmetic.

Owns: the fp32 number nearest to a rational, the two constants of a weight step, the initial scale
and the definition of the initial weights, one value at a time.
Never: lets a float decide: each returned float is exactly an fp32 number, made from integers.
Next: `schedule.py` for the learning rate that goes into them.
"""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.hashing import H, b32, u64, var
from troth_coordinator.rules.ids import Digest

NANO = 10**9
_SIGNIFICAND_BITS = 24
_MIN_EXPONENT = -149
_MAX_EXPONENT = 104
VALUES_PER_DIGEST = 8


@dataclass(frozen=True, slots=True)
class StepConstants:
    """w <- w * a, then w <- w - b * d; a and b are exactly fp32."""

    a: float
    b: float


def nearest_fp32(numerator: int, denominator: int) -> float:
    """Return the fp32 number nearest to numerator / denominator, ties to even.

    RangeError unless the ratio is 0 or in the normal range of fp32 (2^-126 to about 2^128).
    """
    if numerator < 0 or denominator <= 0:
        raise RangeError(
            "fp32 constant",
            "a ratio >= 0",
            f"{numerator}/{denominator}",
            "pass a non-negative ratio",
        )
    if numerator == 0:
        return 0.0
    exponent = numerator.bit_length() - denominator.bit_length() - _SIGNIFICAND_BITS
    quotient, rest, unit = _divide(numerator, denominator, exponent)
    if quotient >= 1 << _SIGNIFICAND_BITS:
        exponent += 1
        quotient, rest, unit = _divide(numerator, denominator, exponent)
    if 2 * rest > unit or (2 * rest == unit and quotient & 1):
        quotient += 1
    if not _MIN_EXPONENT <= exponent <= _MAX_EXPONENT or (
        exponent == _MAX_EXPONENT and quotient == 1 << _SIGNIFICAND_BITS
    ):
        raise RangeError(
            "fp32 constant",
            "a ratio in the normal range of fp32",
            f"{numerator}/{denominator}",
            "choose a constant of ordinary size",
        )
    return math.ldexp(quotient, exponent)


def _divide(numerator: int, denominator: int, exponent: int) -> tuple[int, int, int]:
    unit = denominator << max(0, exponent)
    return *divmod(numerator << max(0, -exponent), unit), unit


def fp32_bytes(value: float) -> bytes:
    """Return the 4 little-endian bytes of a float that is exactly an fp32 number."""
    return struct.pack("<f", value)


def step_constants(lr_nano: int, wd_nano: int) -> StepConstants:
    """Return a = 1 - lr * wd and b = lr as fp32; RangeError unless lr * wd is below one."""
    rest = 10**18 - lr_nano * wd_nano
    if rest <= 0:
        raise RangeError("lr_nano * wd_nano", "below 10^18", lr_nano * wd_nano, "lower one of them")
    return StepConstants(nearest_fp32(rest, 10**18), nearest_fp32(lr_nano, NANO))


def init_scale(std_nano: int) -> float:
    """Return the fp32 factor from a uniform int32 to a value of standard deviation std_nano."""
    return nearest_fp32(math.isqrt(3 * std_nano**2 * 10**18), 2**31 * 10**18)


def init_digest(run: bytes, name: str, counter: int) -> Digest:
    """Return H("troth:init", run, name, counter): eight little-endian int32 of a tensor."""
    return H("troth:init", b32(run, "run"), var(name.encode()), u64(counter))


def initial_values(run: bytes, name: str, size: int, std_nano: int) -> Iterator[float]:
    """Yield the first `size` initial values of a tensor, row-major, each exactly fp32.

    This is the definition, one value at a time; the model builds the same with numpy.
    """
    scale = init_scale(std_nano)
    for at in range(size):
        counter, lane = divmod(at, VALUES_PER_DIGEST)
        block = struct.unpack("<8i", init_digest(run, name, counter))
        # Both roundings happen in struct.pack: int32 -> fp32, and the 48-bit product -> fp32.
        yield _round_fp32(_round_fp32(block[lane]) * scale)


def _round_fp32(value: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded
