"""IDL spec 0.1.0 to the legacy form: same bytes, and a refusal for what cannot be said."""

import copy
import json
import re
import struct

import pytest
from anchorpy import AccountsCoder, EventCoder, Idl, InstructionCoder
from solders.pubkey import Pubkey
from support.legacy_idl import discriminator, legacy

from troth_coordinator import artifacts
from troth_coordinator.chain.addresses import event_authority_address
from troth_coordinator.chain.codec import ProgramCodec, program_codec
from troth_coordinator.chain.errors import ArtifactError

KEY = Pubkey.from_bytes(bytes(range(32)))


def marked(namespace, name, **rest):
    return {"name": name, "discriminator": list(discriminator(namespace, name)), **rest}


SMALL_IDL = {
    "address": str(KEY),
    "metadata": {"name": "coord", "version": "0.1.0", "spec": "0.1.0"},
    "instructions": [
        marked(
            "global",
            "submit_update",
            docs=["text"],
            accounts=[
                {"name": "run_state", "writable": True, "pda": {"seeds": []}},
                {"name": "member", "signer": True, "writable": True},
                {"name": "maybe", "optional": True},
                {"name": "group", "accounts": [{"name": "inner_one", "signer": True}]},
            ],
            args=[
                {"name": "run_id", "type": "u64"},
                {"name": "digest", "type": {"array": ["u8", 32]}},
                {"name": "kind", "type": {"defined": {"name": "UpdateKind"}}},
                {"name": "owner", "type": "pubkey"},
                {"name": "note", "type": {"option": "string"}},
                {"name": "tags", "type": {"vec": "u16"}},
            ],
        )
    ],
    "accounts": [marked("account", "RunState"), marked("account", "Flat")],
    "events": [marked("event", "UpdateSubmitted")],
    "errors": [{"code": 6000, "name": "BadDigest", "msg": "digest mismatch"}],
    "types": [
        {
            "name": "RunState",
            "type": {
                "kind": "struct",
                "fields": [
                    {"name": "authority", "type": "pubkey"},
                    {"name": "round", "type": "u64"},
                ],
            },
        },
        {
            "name": "Flat",
            "serialization": "bytemuck",
            "repr": {"kind": "c"},
            "type": {
                "kind": "struct",
                "fields": [
                    {"name": "round", "type": "u64"},
                    {"name": "slots", "type": {"array": [{"defined": {"name": "Inner"}}, 2]}},
                    {"name": "tail", "type": {"array": ["u8", 8]}},
                ],
            },
        },
        {
            "name": "Inner",
            "serialization": "bytemuck",
            "repr": {"kind": "c"},
            "type": {
                "kind": "struct",
                "fields": [
                    {"name": "count", "type": "u32"},
                    {"name": "small", "type": "u16"},
                    {"name": "pad", "type": {"array": ["u8", 2]}},
                ],
            },
        },
        {
            "name": "UpdateKind",
            "type": {
                "kind": "enum",
                "variants": [
                    {"name": "Full"},
                    {"name": "Delta", "fields": [{"name": "bits", "type": "u8"}]},
                    {"name": "Pair", "fields": ["u8", "u16"]},
                ],
            },
        },
        {
            "name": "UpdateSubmitted",
            "type": {"kind": "struct", "fields": [{"name": "run_round", "type": "u64"}]},
        },
    ],
}


def small_idl():
    return copy.deepcopy(SMALL_IDL)


def type_named(idl, name):
    return next(entry for entry in idl["types"] if entry["name"] == name)


def parsed(idl):
    return Idl.from_json(json.dumps(legacy(idl)))


def test_names_flags_and_types_are_rewritten():
    converted = legacy(small_idl())
    (instruction,) = converted["instructions"]
    assert instruction["name"] == "submitUpdate"
    assert instruction["accounts"] == [
        {"name": "runState", "isMut": True, "isSigner": False},
        {"name": "member", "isMut": True, "isSigner": True},
        {"name": "maybe", "isMut": False, "isSigner": False, "isOptional": True},
        {
            "name": "group",
            "accounts": [{"name": "innerOne", "isMut": False, "isSigner": True}],
        },
    ]
    types = {argument["name"]: argument["type"] for argument in instruction["args"]}
    assert types["runId"] == "u64"
    assert types["owner"] == "publicKey"
    assert types["kind"] == {"defined": "UpdateKind"}
    assert types["digest"] == {"array": ["u8", 32]}
    assert types["note"] == {"option": "string"}
    assert [entry["name"] for entry in converted["accounts"]] == ["RunState", "Flat"]
    assert [entry["name"] for entry in converted["types"]] == ["Inner", "UpdateKind"]
    assert converted["events"][0]["fields"] == [{"name": "runRound", "type": "u64", "index": False}]


def test_anchorpy_encodes_the_same_bytes_as_borsh():
    coder = InstructionCoder(parsed(small_idl()))
    kinds = type(coder.ix_layout)
    assert kinds is dict
    arguments = {
        "run_id": 7,
        "digest": bytes(range(32)),
        "kind": 0,
        "owner": KEY,
        "note": "hey",
        "tags": [1, 513],
    }
    arguments["kind"] = coder.ix_layout["submit_update"].subcons[2].enum.Full()
    found = coder.encode("submit_update", arguments)
    expected = discriminator("global", "submit_update") + struct.pack("<Q", 7) + bytes(range(32))
    expected += b"\0" + bytes(KEY) + b"\1" + struct.pack("<I", 3) + b"hey"
    expected += struct.pack("<IHH", 2, 1, 513)
    assert found == expected


def test_zero_copy_without_padding_reads_as_borsh():
    data = discriminator("account", "Flat")
    data += struct.pack("<Q", 5) + struct.pack("<IHxx", 6, 7) * 2 + bytes(8)
    flat = AccountsCoder(parsed(small_idl())).decode(data)
    assert flat.round == 5
    assert flat.slots[1].count == 6
    assert flat.slots[1].small == 7


def test_events_decode():
    data = discriminator("event", "UpdateSubmitted") + struct.pack("<Q", 9)
    event = EventCoder(parsed(small_idl())).parse(data)
    assert event.name == "UpdateSubmitted"
    assert event.data.run_round == 9


def change(path, value):
    def apply(idl):
        place = idl
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return apply


def argument(kind):
    return change(["instructions", 0, "args", 0, "type"], kind)


def fields_of(name, fields):
    def apply(idl):
        type_named(idl, name)["type"]["fields"] = fields

    return apply


UNSPEAKABLE = {
    "other spec": (change(["metadata", "spec"], "0.2.0"), "spec 0.1.0"),
    "legacy IDL": (lambda idl: idl.pop("metadata"), "spec 0.1.0"),
    "256-bit integer": (argument("u256"), "a type that the legacy IDL has"),
    "generic argument": (
        argument({"defined": {"name": "UpdateKind", "generics": [{"kind": "type"}]}}),
        "no generic",
    ),
    "generic type": (change(["types", 0, "generics"], [{"kind": "type"}]), "without generics"),
    "generic length": (argument({"array": ["u8", {"generic": "N"}]}), "fixed array length"),
    "map": (argument({"hashMap": ["u8", "u8"]}), "option, vec, array"),
    "alias": (
        change(["types", 3, "type"], {"kind": "type", "alias": "u64"}),
        "a struct or an enum",
    ),
    "tuple struct": (fields_of("RunState", ["u64", "u8"]), "named fields in RunState"),
    "custom serialization": (change(["types", 0, "serialization"], "bytemuckunsafe"), "borsh"),
    "zero-copy without repr(C)": (change(["types", 1, "repr"], {"kind": "rust"}), "repr"),
    "custom discriminator": (
        change(["instructions", 0, "discriminator"], [1]),
        "derived discriminator",
    ),
    "no discriminator": (lambda idl: idl["events"][0].pop("discriminator"), "discriminator"),
    "name that is lost": (change(["instructions", 0, "args", 0, "name"], "run_2_id"), "survives"),
    "missing type": (lambda idl: idl["types"].pop(0), "definition of the type RunState"),
    "padding inside": (
        fields_of("Inner", [{"name": "a", "type": "u8"}, {"name": "b", "type": "u32"}]),
        "no padding before Inner.b",
    ),
    "padding at the end": (
        fields_of("Inner", [{"name": "a", "type": "u32"}, {"name": "b", "type": "u8"}]),
        "no padding at the end of Inner",
    ),
    "string in zero-copy": (
        fields_of("Inner", [{"name": "a", "type": "string"}]),
        "a fixed-size type in zero-copy",
    ),
    "enum in zero-copy": (
        fields_of("Inner", [{"name": "a", "type": {"defined": {"name": "UpdateKind"}}}]),
        "a struct as zero-copy",
    ),
    "option in zero-copy": (
        fields_of("Inner", [{"name": "a", "type": {"option": "u8"}}]),
        "only arrays and structs",
    ),
}


@pytest.mark.parametrize("case", UNSPEAKABLE)
def test_what_the_legacy_form_cannot_say_is_refused(case):
    apply, expected = UNSPEAKABLE[case]
    idl = small_idl()
    apply(idl)
    with pytest.raises(ArtifactError) as caught:
        legacy(idl)
    assert expected in str(caught.value)


def test_the_packaged_idl_converts_and_anchorpy_reads_it():
    idl = artifacts.read_json(artifacts.IDL)
    read = parsed(idl)
    names = [spec["name"] for spec in idl["instructions"]]
    assert [re.sub("[A-Z]", r"_\g<0>", each.name).lower() for each in read.instructions] == names
    assert sorted(program_codec().instruction_names.values()) == sorted(names)
    errors = [(error["code"], error["name"]) for error in idl["errors"]]
    assert {each.code: each.name for each in read.errors} == dict(errors)
    assert {event.name for event in read.events} == {event["name"] for event in idl["events"]}


def test_codec_reads_specs_of_the_packaged_idl():
    codec = program_codec()
    commit = codec.instructions["commit_payload"]
    own, events = commit.accounts[:4], commit.accounts[4:]
    assert [slot.name for slot in own] == ["session", "run", "roster", "round"]
    assert [slot.signer for slot in own] == [True, False, False, False]
    assert [slot.name for slot in events] == ["event_authority", "program"]
    assert [slot.address for slot in events] == [event_authority_address(), codec.program_id]
    assert codec.instruction_names[commit.discriminator] == "commit_payload"
    close = {slot.name: slot for slot in codec.instructions["close_round"].accounts}
    assert close["checkpoint"].optional
    assert str(close["system_program"].address) == "1" * 32
    assert codec.errors[6000].code == 6000


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"index": 1, "round": 2, "header_hash": bytes(31), "root_vote": bytes(32)},
        {"index": 1 << 16, "round": 2, "header_hash": bytes(32), "root_vote": bytes(32)},
        {"index": -1, "round": 2, "header_hash": bytes(32), "root_vote": bytes(32)},
        {"index": 1, "round": "2", "header_hash": bytes(32), "root_vote": bytes(32)},
        {"index": 1, "round": 2, "header_hash": None, "root_vote": bytes(32)},
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments):
    with pytest.raises(ArtifactError, match="arguments of commit_payload"):
        program_codec().instruction_data("commit_payload", arguments)


@pytest.mark.parametrize(
    "idl", [{}, {"address": "x"}, {**small_idl(), "instructions": [{"name": "a"}]}]
)
def test_something_that_is_no_idl(idl):
    with pytest.raises(ArtifactError, match="program IDL"):
        ProgramCodec(idl)
