"""Anchor's IDL spec 0.1.0, down-converted to the legacy form that anchorpy 0.21 reads.

Owns: the conversion, and refusing by name what the legacy form cannot say: generics, tuple
structs, 256-bit integers, aliases, custom discriminators, zero-copy types with padding.
Never: guesses. An IDL that converts means the same bytes in both forms.
Next: `anchorpy_codec.py`, which feeds the result to anchorpy. The codec reads the IDL as it is.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pyheck import snake

from troth_coordinator.chain.errors import ArtifactError

# The JSON of an IDL is a tree of unknowns; inside this module it is Any and checked as it is read.
_Json = Mapping[str, Any]
_Type = str | _Json
_T = TypeVar("_T")

_SIZES = {
    **dict.fromkeys(("bool", "u8", "i8"), 1),
    **dict.fromkeys(("u16", "i16"), 2),
    **dict.fromkeys(("u32", "i32", "f32"), 4),
    **dict.fromkeys(("u64", "i64", "f64"), 8),
    **dict.fromkeys(("u128", "i128"), 16),
    "pubkey": 32,
}
_UNSIZED = ("bytes", "string")


def legacy(idl: _Json) -> dict[str, object]:
    """Convert an IDL of spec 0.1.0; ArtifactError for what the legacy form cannot say.

    Names become camelCase, flags isMut, isSigner, isOptional; account and event bodies move out
    of `types`; docs, addresses, PDA seeds, relations and (derived) discriminators are dropped.
    A `bytemuck` marker is dropped after a check that C layout and borsh give the same bytes.
    """
    _expect(idl.get("metadata", {}).get("spec") == "0.1.0", "IDL spec 0.1.0", idl.get("metadata"))
    types = {entry["name"]: entry for entry in idl.get("types", [])}
    for entry in types.values():
        _check_type(entry, types)
    _check_discriminators(idl)
    outside = {entry["name"] for key in ("accounts", "events") for entry in idl.get(key, [])}
    bodies = {name: _body(name, entry["type"]) for name, entry in types.items()}
    return {
        "version": idl["metadata"]["version"],
        "name": idl["metadata"]["name"],
        "instructions": [
            {
                "name": _camel(entry["name"]),
                "accounts": [_account(account) for account in entry["accounts"]],
                "args": _fields(entry["name"], entry["args"]),
            }
            for entry in idl["instructions"]
        ],
        "accounts": [
            {"name": entry["name"], "type": _known(bodies, entry["name"])}
            for entry in idl.get("accounts", [])
        ],
        "events": [
            {
                "name": entry["name"],
                "fields": [
                    {**field, "index": False} for field in _known(bodies, entry["name"])["fields"]
                ],
            }
            for entry in idl.get("events", [])
        ],
        "types": [
            {"name": name, "type": body} for name, body in bodies.items() if name not in outside
        ],
        "errors": [
            {"code": entry["code"], "name": entry["name"], "msg": entry.get("msg", "")}
            for entry in idl.get("errors", [])
        ],
    }


def discriminator(namespace: str, name: str) -> bytes:
    """Return Anchor's 8-byte discriminator; namespace is global, account or event."""
    return hashlib.sha256(f"{namespace}:{name}".encode()).digest()[:8]


def _check_discriminators(idl: _Json) -> None:
    sections = (("instructions", "global"), ("accounts", "account"), ("events", "event"))
    for section, namespace in sections:
        for entry in idl.get(section, []):
            expected = discriminator(namespace, entry["name"])
            found = bytes(entry.get("discriminator", b""))
            _expect(
                found == expected,
                f"the derived discriminator {expected.hex()} of {entry['name']}",
                found.hex() or "none",
            )


def _check_type(entry: _Json, types: Mapping[str, _Json]) -> None:
    name = entry["name"]
    _expect(not entry.get("generics"), f"{name} without generics", entry.get("generics"))
    marker = entry.get("serialization", "borsh")
    _expect(marker in ("borsh", "bytemuck"), f"{name} in borsh or bytemuck", marker)
    if marker == "bytemuck":
        _expect(
            entry.get("repr", {}).get("kind") == "c",
            f"repr(C) on the zero-copy type {name}",
            entry.get("repr"),
        )
        _size_and_alignment({"defined": {"name": name}}, types)


def _size_and_alignment(kind: _Type, types: Mapping[str, _Json]) -> tuple[int, int]:
    """Size and alignment in bytes of a zero-copy type; refuses padding and unsized members."""
    if isinstance(kind, str):
        _expect(kind in _SIZES, "a fixed-size type in zero-copy data", kind)
        return _SIZES[kind], 1 if kind == "pubkey" else _SIZES[kind]
    ((form, inner),) = kind.items()
    if form == "array":
        size, alignment = _size_and_alignment(inner[0], types)
        return size * inner[1], alignment
    _expect(form == "defined", "only arrays and structs in zero-copy data", form)
    body = _known(types, inner["name"])["type"]
    _expect(body["kind"] == "struct", f"a struct as zero-copy {inner['name']}", body["kind"])
    offset, widest = 0, 1
    for field in body.get("fields", []):
        size, alignment = _size_and_alignment(field["type"], types)
        where = f"{inner['name']}.{field['name']}"
        _expect(offset % alignment == 0, f"no padding before {where}", f"offset {offset}")
        offset, widest = offset + size, max(widest, alignment)
    _expect(offset % widest == 0, f"no padding at the end of {inner['name']}", f"size {offset}")
    return offset, widest


def _body(name: str, kind: _Json) -> dict[str, Any]:
    if kind["kind"] == "struct":
        return {"kind": "struct", "fields": _fields(name, kind.get("fields", []))}
    _expect(kind["kind"] == "enum", f"a struct or an enum as {name}", kind["kind"])
    return {"kind": "enum", "variants": [_variant(name, entry) for entry in kind["variants"]]}


def _variant(owner: str, entry: _Json) -> dict[str, Any]:
    fields = entry.get("fields")
    if not fields:
        return {"name": entry["name"]}
    if isinstance(fields[0], Mapping) and "name" in fields[0]:
        return {"name": entry["name"], "fields": _fields(owner, fields)}
    return {"name": entry["name"], "fields": [_type(field) for field in fields]}


def _fields(owner: str, fields: Sequence[Any]) -> list[dict[str, Any]]:
    for field in fields:
        named = isinstance(field, Mapping) and "name" in field
        _expect(named, f"named fields in {owner}", field)
    return [{"name": _camel(field["name"]), "type": _type(field["type"])} for field in fields]


def _type(kind: _Type) -> _Type:
    if isinstance(kind, str):
        _expect(kind in _SIZES or kind in _UNSIZED, "a type that the legacy IDL has", kind)
        return "publicKey" if kind == "pubkey" else kind
    ((form, inner),) = kind.items()
    if form == "defined":
        _expect(not inner.get("generics"), "no generic arguments", inner)
        return {"defined": inner["name"]}
    if form == "array":
        _expect(isinstance(inner[1], int), "a fixed array length", inner[1])
        return {"array": [_type(inner[0]), inner[1]]}
    _expect(form in ("option", "vec"), "option, vec, array or a defined type", form)
    return {form: _type(inner)}


def _account(entry: _Json) -> dict[str, Any]:
    if "accounts" in entry:
        inner = [_account(account) for account in entry["accounts"]]
        return {"name": _camel(entry["name"]), "accounts": inner}
    flags = {"isMut": entry.get("writable", False), "isSigner": entry.get("signer", False)}
    optional = {"isOptional": True} if entry.get("optional") else {}
    return {"name": _camel(entry["name"]), **flags, **optional}


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    camel = head + "".join(part[:1].upper() + part[1:] for part in tail)
    # anchorpy turns names back with pyheck; a name that does not survive would be unreachable.
    _expect(snake(camel) == name, f"a name that survives camelCase: {name}", snake(camel))
    return camel


def _known(bodies: Mapping[str, _T], name: str) -> _T:
    _expect(name in bodies, f"a definition of the type {name}", "none in the IDL")
    return bodies[name]


def _expect(condition: bool, expected: str, found: object) -> None:
    if not condition:
        raise ArtifactError(
            "program IDL", expected, repr(found), "anchorpy 0.21 cannot read this IDL: change it"
        )
