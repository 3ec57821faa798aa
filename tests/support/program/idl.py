"""Instructions from the IDL alone and accounts from layout.json alone, on a bare LiteSVM.

Independent of the chain client on purpose: what both read in the same way is what the program
says, not what one codec believes. Also lists every account of every instruction, so that tests
can pass the wrong one.
"""

import json
import struct
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey

ARTIFACTS = resources.files("troth_coordinator") / "artifacts"
IDL: dict[str, Any] = json.loads((ARTIFACTS / "coordinator.idl.json").read_text())
LAYOUT: dict[str, Any] = json.loads((ARTIFACTS / "layout.json").read_text())
PROGRAM = Pubkey.from_string(LAYOUT["program_id"])
INSTRUCTIONS: dict[str, Any] = {spec["name"]: spec for spec in IDL["instructions"]}
_TYPES = {spec["name"]: spec["type"] for spec in IDL["types"]}
_INTEGERS = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "i64": "<q", "bool": "<?"}


def encode(kind: Any, value: Any) -> bytes:
    """Borsh bytes of a value of an IDL type."""
    match kind:
        case str() if kind in _INTEGERS:
            return struct.pack(_INTEGERS[kind], value)
        case "pubkey":
            return bytes(value)
        case "string":
            text: bytes = value.encode()
            return struct.pack("<I", len(text)) + text
        case {"array": [inner, length]}:
            assert len(value) == length
            return b"".join(encode(inner, item) for item in value)
        case {"defined": {"name": name}}:
            fields = _TYPES[name]["fields"]
            return b"".join(encode(f["type"], value[f["name"]]) for f in fields)
    raise AssertionError(f"unknown IDL type {kind}")


def instruction(
    name: str, accounts: Mapping[str, Pubkey | None], args: Mapping[str, Any]
) -> Instruction:
    """One instruction; an optional account that is absent is the program id."""
    spec = INSTRUCTIONS[name]
    metas = []
    for slot in spec["accounts"]:
        fixed = slot.get("address")
        key = Pubkey.from_string(fixed) if fixed else accounts.get(slot["name"])
        is_absent = key is None
        assert not is_absent or slot.get("optional"), slot["name"]
        metas.append(
            AccountMeta(
                PROGRAM if key is None else key,
                is_signer=slot.get("signer", False) and not is_absent,
                is_writable=slot.get("writable", False) and not is_absent,
            )
        )
    body = b"".join(encode(arg["type"], args[arg["name"]]) for arg in spec["args"])
    return Instruction(PROGRAM, bytes(spec["discriminator"]) + body, metas)


def dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of a struct, as layout.json describes it."""
    spec = LAYOUT["structs"][name]
    return np.dtype(
        {
            "names": [field[0] for field in spec["fields"]],
            "formats": [_format(field[2]) for field in spec["fields"]],
            "offsets": [field[1] for field in spec["fields"]],
            "itemsize": spec["size"],
        }
    )


def _format(form: str) -> Any:
    if form.startswith("("):
        count, inner = form[1:].split(",)")
        return (_format(inner), (int(count),))
    return dtype(form) if form in LAYOUT["structs"] else np.dtype(form)


def decode(name: str, data: bytes) -> np.void:
    """One account or struct; checks discriminator and size of an account."""
    known = LAYOUT["accounts"][name]
    assert data[:8] == bytes(known["discriminator"]), name
    assert len(data) == known["size"], name
    found: np.void = np.frombuffer(data, dtype(name), count=1, offset=8)[0]
    return found
