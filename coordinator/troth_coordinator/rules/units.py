"""Units that a person uses, in place of the integers that are hashed and stored on chain.

Owns: which keys have a unit, their shorter names, and exact conversion both ways.
Never: a float; what no integer holds exactly is refused, never rounded.
Next: `settings.py`, which converts the sections of a config.

    lr = 0.003               lr_nano = 3_000_000
    p_new = "40%"            p_new_ppm = 400_000
    min_stake = "0.1 SOL"    min_stake_lamports = 100_000_000
    appeal = "24 h"          appeal_slots = 216_000, at 400 ms a slot
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from troth_coordinator.rules.errors import ContradictionError, InvalidValueError

_MOST_DIGITS: Final = 30
"""No number has more, and no exponent is larger: a short text never becomes a million digits."""
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z%]+)")


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a key. `parts`: how many of the integer's steps each unit holds, by its name.

    The name "" is a number without a unit. `step` says what the integer counts.
    """

    suffix: str
    parts: Mapping[str, Fraction]
    step: str
    example: str

    def steps(self, value: object) -> Fraction | None:
        """Return a value in steps, None if it is no quantity of this unit."""
        if isinstance(value, str):
            found = _QUANTITY.fullmatch(value.strip())
            number, name = (Decimal(found[1]), found[2]) if found else (Decimal("NaN"), "")
        elif isinstance(value, int | Decimal) and not isinstance(value, bool):
            number, name = Decimal(value), ""
        else:
            return None
        part = self.parts.get(name)
        if part is None or not number.is_finite() or not _is_short(number):
            return None
        return Fraction(number) * part

    def shown(self, steps: int) -> Decimal | str:
        """Return an integer in the largest unit that holds it in whole numbers, else the first."""
        names = list(self.parts)
        whole = [name for name in names if name and not (steps / self.parts[name]) % 1]
        name = whole[-1] if whole and steps and "" not in names else names[0]
        text = _decimal(steps / self.parts[name])
        return f"{text} {name}" if name else Decimal(text if "." in text else f"{text}.0")


_NANO: Final = Unit("_nano", {"": Fraction(10**9)}, "10^-9", "0.003")
_MICRO: Final = Unit("_micro", {"": Fraction(10**6)}, "10^-6", "0.95")
_PPM: Final = Unit("_ppm", {"": Fraction(10**6), "%": Fraction(10**4)}, "10^-6", '0.1 or "10%"')
_LAMPORTS: Final = Unit("_lamports", {"SOL": Fraction(10**9)}, "lamports", '"0.1 SOL"')
_SLOTS: Final = Unit(
    "_slots",
    {"s": Fraction(5, 2), "min": Fraction(150), "h": Fraction(9_000), "d": Fraction(216_000)},
    "slots of 400 ms",
    '"2 min"',
)
UNITS: Final = (_NANO, _MICRO, _PPM, _LAMPORTS, _SLOTS)
IN_LAMPORTS: Final = ("reward_per_payload", "absence_fee", "witness_fee", "recompute_cost")
"""Amounts whose names hold no unit: both spellings have the same key."""


def unit_of(key: str) -> Unit | None:
    """Return the unit of a key whose value is stored as an integer of its steps, else None."""
    if key in IN_LAMPORTS:
        return _LAMPORTS
    return next((unit for unit in UNITS if key.endswith(unit.suffix)), None)


def short_name(key: str) -> str:
    """Return the name under which a quantity with a unit is given; other keys stay as they are."""
    unit = unit_of(key)
    return key if unit is None else key.removesuffix(unit.suffix)


def in_integers(
    values: Mapping[str, object], keys: Collection[str], where: str
) -> dict[str, object]:
    """Return the values of a section with integers under the full keys; `keys` are all it has.

    Raises ContradictionError for a quantity that is given twice, and InvalidValueError for one of
    another unit, or that no integer holds exactly. Other keys and values pass unchanged.
    """
    full = {short_name(key): key for key in keys if unit_of(key)}
    found: dict[str, object] = {}
    for name, value in values.items():
        key = full.get(name, name)
        is_same = key == name
        if not is_same and key in values:
            raise ContradictionError(
                f"{where}.{name}", "one of two spellings", f"{key} beside it", f"remove {key}"
            )
        is_quantity = not is_same or (key in IN_LAMPORTS and not isinstance(value, int))
        found[key] = _integer(key, value, where) if is_quantity else value
    return found


def in_units(values: Mapping[str, object]) -> dict[str, object]:
    """Return a section with quantities as people write them, under the shorter names."""
    found: dict[str, object] = {}
    for key, value in values.items():
        unit = unit_of(key)
        is_quantity = unit is not None and isinstance(value, int)
        found[short_name(key)] = unit.shown(int(str(value))) if unit and is_quantity else value
    return found


def spellings(key: str) -> str:
    """Return how a key may be written, for a message: both ways where it has a unit."""
    unit = unit_of(key)
    if unit is None:
        return key
    short = short_name(key)
    return f"{short} = {unit.example}, or {key} as an integer in {unit.step}"


def names_of(keys: Iterable[str]) -> list[str]:
    """Return all names under which these keys may be given, in the order of the alphabet."""
    return sorted({*keys} | {short_name(key) for key in keys})


def _integer(key: str, value: object, where: str) -> int:
    unit = unit_of(key)
    steps = None if unit is None else unit.steps(value)
    if unit is None or steps is None:
        expected = "a quantity" if unit is None else f"a quantity like {unit.example}"
        found = value if isinstance(value, Decimal) else repr(value)
        name = f"{where}.{short_name(key)}"
        raise InvalidValueError(name, expected, found, f"write {spellings(key)}")
    if steps.denominator != 1:
        raise InvalidValueError(
            f"{where}.{short_name(key)}",
            f"a whole number of {unit.step}, which is what {key} holds",
            f"{value}",
            "round it: nothing is rounded in silence",
        )
    return int(steps)


def _is_short(number: Decimal) -> bool:
    exponent = abs(number.adjusted())
    return exponent <= _MOST_DIGITS and len(number.as_tuple().digits) <= _MOST_DIGITS


def _decimal(value: Fraction) -> str:
    """Return a fraction with a finite decimal expansion, without zeros at its end."""
    whole, part = divmod(value * 10**9, 10**9)
    digits = f"{int(part):09d}".rstrip("0")
    return f"{whole}.{digits}" if digits else f"{whole}"
