"""Our borsh against anchorpy's, over everything that the program's IDL describes."""

import random

import pytest
from solders.pubkey import Pubkey
from support.anchorpy_codec import AnchorCodec

from troth_coordinator import artifacts
from troth_coordinator.chain.borsh import BorshTypes
from troth_coordinator.chain.codec import ProgramCodec, program_codec
from troth_coordinator.chain.errors import ArtifactError

IDL = artifacts.read_json(artifacts.IDL)
ANCHOR = AnchorCodec(IDL)
STRUCTS = {entry["name"]: entry["type"]["fields"] for entry in IDL["types"]}
DISCRIMINATORS = {
    entry["name"]: bytes(entry["discriminator"])
    for section in ("instructions", "events", "accounts")
    for entry in IDL[section]
}
BORSH_ACCOUNTS = ["Checkpoint", "Participant"]
EVERY_KIND = {
    **{f"{sign}{bits}": f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64, 128)},
    "bool": "bool",
    "pubkey": "pubkey",
    "string": "string",
    "bytes": "bytes",
    "option": {"option": "u16"},
    "digest": {"array": ["u8", 32]},
    "numbers": {"array": ["i32", 3]},
    "vec": {"vec": "u64"},
    "raw": {"vec": "u8"},
    "struct": {"defined": {"name": "Ticket"}},
}


def sample(kind, rng):
    """A value of an IDL type."""
    if isinstance(kind, str):
        return simple(kind, rng)
    ((form, inner),) = kind.items()
    if form == "defined":
        return {field["name"]: member(field, rng) for field in STRUCTS[inner["name"]]}
    if form == "option":
        return rng.choice([None, sample(inner, rng)])
    item, length = inner if form == "array" else (inner, rng.randrange(4))
    if item == "u8":
        return rng.randbytes(length)
    return tuple(sample(item, rng) for _ in range(length))


def member(field, rng):
    """A value of a struct's field; what is reserved is zero."""
    return bytes(6) if field["name"] == "reserved" else sample(field["type"], rng)


def simple(kind, rng):
    if kind == "pubkey":
        return Pubkey.from_bytes(rng.randbytes(32))
    if kind in ("string", "bytes"):
        text = "".join(rng.choice("ab\u00e9\u4e16/:") for _ in range(rng.randrange(20)))
        return text if kind == "string" else text.encode()
    if kind == "bool":
        return rng.random() < 0.5
    bits = int(kind[1:])
    number = rng.choice([0, 2**bits - 1, rng.randrange(2**bits)])
    return number - 2 ** (bits - 1) if kind[0] == "i" else number


def plain(value):
    """Records as mappings, and all sequences as tuples: anchorpy's values and ours alike."""
    if isinstance(value, bytes | list | tuple):
        return tuple(plain(item) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


@pytest.mark.parametrize("entry", IDL["instructions"], ids=lambda entry: entry["name"])
def test_instructions_are_encoded_as_anchorpy_encodes_them(entry):
    rng, name = random.Random(entry["name"]), entry["name"]
    for _ in range(20):
        args = {one["name"]: sample(one["type"], rng) for one in entry["args"]}
        assert program_codec().instruction_data(name, args) == ANCHOR.instruction_data(name, args)


@pytest.mark.parametrize("name", sorted(entry["name"] for entry in IDL["events"]))
def test_events_are_decoded_as_anchorpy_decodes_them(name):
    rng = random.Random(name)
    for _ in range(10):
        data = encoded(name, rng)
        found, fields = program_codec().decode_event(data)
        assert found == name
        assert plain(fields) == plain(ANCHOR.event(data))


@pytest.mark.parametrize("name", BORSH_ACCOUNTS)
def test_accounts_are_decoded_as_anchorpy_decodes_them(name):
    rng = random.Random(name)
    for _ in range(50):
        data = encoded(name, rng) + bytes(40)
        fields = program_codec().decode_account(name, data)
        assert plain(fields) == plain(ANCHOR.account(data))


def encoded(name, rng):
    """Bytes of an event or account with random contents."""
    values = {field["name"]: member(field, rng) for field in STRUCTS[name]}
    return DISCRIMINATORS[name] + BorshTypes(STRUCTS).encode_fields(STRUCTS[name], values)


def test_every_type_reads_back_what_it_wrote():
    fields = [{"name": name, "type": kind} for name, kind in EVERY_KIND.items()]
    types, rng = BorshTypes({**STRUCTS, "Every": fields}), random.Random(1)
    for _ in range(50):
        values = {field["name"]: sample(field["type"], rng) for field in fields}
        assert types.decode_struct("Every", types.encode_fields(fields, values)) == values


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("u8", 256),
        ("u8", -1),
        ("i8", 128),
        ("u64", "1"),
        ("u64", None),
        ("bool", 1),
        ("pubkey", bytes(32)),
        ("string", b"text"),
        ("bytes", "text"),
        ("f64", 1.0),
        ({"array": ["u8", 4]}, bytes(3)),
        ({"array": ["u16", 4]}, bytes(4)),
        ({"array": ["u8", 1]}, [256]),
        ({"vec": "u8"}, 3),
        ({"hashMap": ["u8", "u8"]}, {}),
        ({"defined": {"name": "Ticket"}}, {"lamports": 1}),
        ({"defined": {"name": "Ticket"}}, object()),
        ({"defined": {"name": "Absent"}}, {}),
    ],
)
def test_values_that_do_not_fit_are_refused(kind, value):
    fields = [{"name": "value", "type": kind}]
    with pytest.raises((KeyError, TypeError, ValueError)):
        BorshTypes(STRUCTS).encode_fields(fields, {"value": value})


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("u64", bytes(7)),
        ("string", b"\xff\xff\xff\xff"),
        ("string", b"\1\0\0\0\xff"),
        ({"vec": "u64"}, b"\xff\xff\xff\xff" + bytes(16)),
        ({"vec": {"defined": {"name": "Ticket"}}}, b"\1\0\0\0"),
        ("f64", bytes(8)),
        ({"hashMap": ["u8", "u8"]}, bytes(8)),
    ],
)
def test_bytes_that_do_not_fit_are_refused(kind, data):
    types = BorshTypes({**STRUCTS, "One": [{"name": "value", "type": kind}]})
    with pytest.raises(ValueError):
        types.decode_struct("One", data)


def test_a_short_account_is_named():
    with pytest.raises(ArtifactError, match="Checkpoint"):
        program_codec().decode_account("Checkpoint", bytes(100))


def test_an_instruction_with_a_type_that_is_not_supported_is_refused_by_name():
    entry = {**IDL["instructions"][0], "args": [{"name": "index", "type": "u256"}]}
    codec = ProgramCodec({**IDL, "instructions": [entry]})
    with pytest.raises(ArtifactError, match="u256"):
        codec.instruction_data(entry["name"], {"index": 1})
