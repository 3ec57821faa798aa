"""Fixed-size structs to tuples of plain values, by the dtype strings that the program exported.

Owns: the meaning of those strings (`<u8`, `V32`, `(3,)<u8`, a struct's name) for `struct.unpack`.
Never: knows a field's name or meaning, or checks an account.
Next: layouts.py, which makes a record for chosen fields of a struct.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Values = tuple[Any, ...]
_Group = Callable[[Values], object]

_ARRAY: Final = re.compile(r"^\((\d+),\)(.+)$")
_BYTES: Final = re.compile(r"^(?:V(\d+)|\((\d+),\)\|?u1)$")
_CODES: Final = {"u1": "B", "<u2": "H", "<u4": "I", "<u8": "Q", "<i4": "i", "<i8": "q"}


@dataclass(frozen=True, slots=True)
class Form:
    """The unpacking of one field: format codes, size in bytes, and the number of values.

    group: makes the field's value of those values; None where there is just one.
    """

    code: str
    size: int
    num_values: int = 1
    group: _Group | None = None


def form_of(text: str, structs: Mapping[str, Sequence[str]]) -> Form:
    """Return the form of a dtype string; `structs` maps names to the strings of their fields.

    Byte arrays become bytes, other arrays and nested structs tuples. KeyError for a string that
    is none of these.
    """
    raw = _BYTES.match(text)
    if raw:
        size = int(raw[1] or raw[2])
        return Form(f"{size}s", size)
    array = _ARRAY.match(text)
    if array:
        return _joined([form_of(array[2], structs)] * int(array[1]))
    if text in structs:
        return _joined([form_of(inner, structs) for inner in structs[text]])
    code = _CODES[text.removeprefix("|")]
    return Form(code, struct.calcsize("<" + code))


class Record:
    """Unpacks chosen fields of a struct, any number of structs in a row.

    forms: offset and form of each field, in the order in which their values are returned.
    """

    def __init__(self, forms: Sequence[tuple[int, Form]], size: int) -> None:
        places = sorted(range(len(forms)), key=lambda place: forms[place][0])
        codes, position = ["<"], 0
        for offset, form in (forms[place] for place in places):
            codes += [f"{offset - position}x", form.code]
            position = offset + form.size
        self.size = size
        self._struct = struct.Struct("".join([*codes, f"{size - position}x"]))
        self._regroup = _regroup([forms[place][1] for place in places])
        self._order = [places.index(place) for place in range(len(forms))]
        self._is_ordered = self._order == sorted(self._order)

    def read(self, data: bytes | memoryview, count: int) -> list[Values]:
        """Return `count` records from the start of the data, one tuple of values each.

        Raises ValueError where the data holds fewer.
        """
        if len(data) < count * self._struct.size:
            raise ValueError(f"{count} records of {self._struct.size} bytes in {len(data)} bytes")
        rows: Iterable[Values] = self._struct.iter_unpack(data[: count * self._struct.size])
        if self._regroup is not None:
            rows = map(self._regroup, rows)
        if not self._is_ordered:
            rows = (tuple([row[place] for place in self._order]) for row in rows)
        return list(rows)


def _joined(forms: Sequence[Form]) -> Form:
    return Form(
        "".join(form.code for form in forms),
        sum(form.size for form in forms),
        sum(form.num_values for form in forms),
        _regroup(forms) or _same,
    )


def _same(values: Values) -> Values:
    return values


def _regroup(forms: Sequence[Form]) -> Callable[[Values], Values] | None:
    """Return what turns flat values into one value per form; None where they already are."""
    if all(form.group is None for form in forms):
        return None
    segments: list[tuple[slice, _Group | None]] = []
    position = 0
    for form in forms:
        place = slice(position, position + form.num_values)
        position = place.stop
        if form.group is None and segments and segments[-1][1] is None:
            segments[-1] = (slice(segments[-1][0].start, place.stop), None)
        else:
            segments.append((place, form.group))
    return lambda values: _grouped(values, segments)


def _grouped(values: Values, segments: Sequence[tuple[slice, _Group | None]]) -> Values:
    result: list[object] = []
    for place, group in segments:
        if group is None:
            result += values[place]
        else:
            result.append(group(values[place]))
    return tuple(result)
