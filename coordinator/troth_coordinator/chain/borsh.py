"""Borsh as the program's IDL describes it: values to bytes and back.

Owns: the types that the program uses: integers, booleans, addresses, text, arrays, vectors,
options and structs. A struct may be given as a mapping or as a record with the same names.
Never: guesses. A type that is not listed above is refused by name.
Next: codec.py, which turns every failure here into an error that says what to do.

Bytes become `bytes`, other arrays and vectors tuples, addresses `Pubkey`, structs mappings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from solders.pubkey import Pubkey

Kind = str | Mapping[str, Any]
"""A type as the IDL's JSON writes it: a word, or a mapping with one key."""
_Fields = Sequence[Mapping[str, Any]]
_T = TypeVar("_T")

RESERVED: Final = "reserved"
"""The name of struct fields that the program demands to be zero: callers leave them out."""
PUBKEY_BYTES: Final = 32
LENGTH_BYTES: Final = 4
_INTEGERS: Final = {
    f"{sign}{bits}": (bits // 8, sign == "i") for sign in "iu" for bits in (8, 16, 32, 64, 128)
}


class BorshTypes:
    """Encodes and decodes by the structs of one IDL. Raises KeyError, TypeError or ValueError."""

    def __init__(self, structs: Mapping[str, _Fields]) -> None:
        self._structs = structs

    @classmethod
    def of_idl(cls, idl: Mapping[str, Any]) -> BorshTypes:
        """Take the structs of an IDL of spec 0.1.0; its enums are not supported."""
        return cls(
            {
                str(entry["name"]): entry["type"].get("fields", ())
                for entry in idl.get("types", ())
                if entry["type"]["kind"] == "struct"
            }
        )

    def encode_fields(self, fields: _Fields, values: object) -> bytes:
        """Return the bytes of the fields, one behind the other."""
        return b"".join(self._encode(field["type"], _member(field, values)) for field in fields)

    def decode_struct(self, name: str, data: bytes) -> dict[str, object]:
        """Read a struct from the start of the data; bytes behind it are ignored."""
        return self._struct(name, _Source(data))

    def _encode(self, kind: Kind, value: object) -> bytes:
        if isinstance(kind, str):
            return _encode_simple(kind, value)
        ((form, inner),) = kind.items()
        if form == "defined":
            return self.encode_fields(self._structs[inner["name"]], value)
        if form == "option":
            return b"\0" if value is None else b"\1" + self._encode(inner, value)
        if form == "array":
            return self._encode_items(inner[0], _sized(value, inner[1]))
        if form == "vec":
            items = _items(value)
            return _little(len(items), LENGTH_BYTES) + self._encode_items(inner, items)
        raise ValueError(f"the type {form} is not supported")

    def _encode_items(self, kind: Kind, items: Sequence[object]) -> bytes:
        if isinstance(items, bytes):
            return items if kind == "u8" else _refuse("bytes for an array of", kind)
        return b"".join(self._encode(kind, item) for item in items)

    def _struct(self, name: str, source: _Source) -> dict[str, object]:
        return {
            str(field["name"]): self._decode(field["type"], source) for field in self._structs[name]
        }

    def _decode(self, kind: Kind, source: _Source) -> object:
        if isinstance(kind, str):
            return _decode_simple(kind, source)
        ((form, inner),) = kind.items()
        if form == "defined":
            return self._struct(inner["name"], source)
        if form == "option":
            return self._decode(inner, source) if source.take(1) != b"\0" else None
        if form == "array":
            return self._items(inner[0], inner[1], source)
        if form == "vec":
            return self._items(inner, source.integer(LENGTH_BYTES), source)
        raise ValueError(f"the type {form} is not supported")

    def _items(self, kind: Kind, count: int, source: _Source) -> object:
        if kind == "u8":
            return source.take(count)
        return tuple(self._decode(kind, source) for _ in range(count))


class _Source:
    """Bytes that are read from the front; ValueError at their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._offset : self._offset + count]
        if len(taken) != count:
            raise ValueError(f"{count} bytes at {self._offset}, found {len(taken)}")
        self._offset += count
        return taken

    def integer(self, num_bytes: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(num_bytes), "little", signed=signed)


def _encode_simple(kind: str, value: object) -> bytes:
    if kind in _INTEGERS:
        num_bytes, signed = _INTEGERS[kind]
        return _little(_typed(value, int), num_bytes, signed=signed)
    if kind == "bool":
        return bytes([_typed(value, bool)])
    if kind == "pubkey":
        return bytes(_typed(value, Pubkey))
    if kind == "string":
        text = _typed(value, str).encode()
        return _little(len(text), LENGTH_BYTES) + text
    if kind == "bytes":
        data = _typed(value, bytes)
        return _little(len(data), LENGTH_BYTES) + data
    return _refuse("a supported type, not", kind)


def _decode_simple(kind: str, source: _Source) -> object:
    if kind in _INTEGERS:
        num_bytes, signed = _INTEGERS[kind]
        return source.integer(num_bytes, signed=signed)
    if kind == "bool":
        return source.take(1) != b"\0"
    if kind == "pubkey":
        return Pubkey.from_bytes(source.take(PUBKEY_BYTES))
    if kind == "string":
        return source.take(source.integer(LENGTH_BYTES)).decode()
    if kind == "bytes":
        return source.take(source.integer(LENGTH_BYTES))
    return _refuse("a supported type, not", kind)


def _member(field: Mapping[str, Any], values: object) -> object:
    name = str(field["name"])
    if name == RESERVED:
        return bytes(field["type"]["array"][1])
    if isinstance(values, Mapping):
        return values[name]
    if not hasattr(values, name):
        raise TypeError(f"{type(values).__name__} without the field {name}")
    return getattr(values, name)


def _little(value: int, num_bytes: int, *, signed: bool = False) -> bytes:
    try:
        return value.to_bytes(num_bytes, "little", signed=signed)
    except OverflowError as error:
        raise ValueError(f"{value} does not fit into {num_bytes} bytes") from error


def _sized(value: object, length: int) -> Sequence[object]:
    items = _items(value)
    if len(items) != length:
        raise ValueError(f"{len(items)} items where the program takes {length}")
    return items


def _items(value: object) -> Sequence[object]:
    if not isinstance(value, Sequence):
        raise TypeError(f"a sequence expected, {type(value).__name__} given")
    return value


def _typed(value: object, kind: type[_T]) -> _T:
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} expected, {type(value).__name__} given")
    return value


def _refuse(expected: str, kind: Kind) -> bytes:
    raise ValueError(f"{expected} {kind}")
