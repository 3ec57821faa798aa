"""The program's IDL at work: instruction bytes, account lists, events, error names.

Owns: what the IDL says by name, and the errors for values and bytes that do not fit it.
Never: signs, sends, knows addresses or imports anchorpy.
Next: borsh.py for the bytes; instructions.py and events.py for the typed face.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from solders.pubkey import Pubkey

from troth_coordinator import artifacts
from troth_coordinator.chain.borsh import BorshTypes
from troth_coordinator.chain.errors import ArtifactError

DISCRIMINATOR_BYTES = 8

# Constant addresses by the program's account names, for IDLs that leave them out.
_WELL_KNOWN = {
    "system_program": Pubkey.from_string("11111111111111111111111111111111"),
    "slot_hashes": Pubkey.from_string("SysvarS1otHashes111111111111111111111111111"),
}


@dataclass(frozen=True, slots=True)
class AccountSlot:
    """One place in an instruction's account list; `address` is set where it is a constant."""

    name: str
    writable: bool
    signer: bool
    optional: bool
    address: Pubkey | None


@dataclass(frozen=True, slots=True)
class InstructionSpec:
    """An instruction's name, its first 8 bytes and its accounts in order."""

    name: str
    discriminator: bytes
    accounts: tuple[AccountSlot, ...]


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """One variant of the program's error enum."""

    code: int
    name: str
    text: str


class ProgramCodec:
    """Encoder and decoder made from one IDL (spec 0.1.0). ArtifactError for a bad IDL."""

    def __init__(self, idl: Mapping[str, Any]) -> None:
        try:
            self._types = BorshTypes.of_idl(idl)
            self._arguments = {entry["name"]: entry["args"] for entry in idl["instructions"]}
            self.program_id = Pubkey.from_string(idl["address"])
            self.instructions = {
                entry["name"]: InstructionSpec(
                    entry["name"],
                    bytes(entry["discriminator"]),
                    tuple(_account_slot(account) for account in entry["accounts"]),
                )
                for entry in idl["instructions"]
            }
            self.errors = {
                entry["code"]: ErrorSpec(entry["code"], entry["name"], entry.get("msg", ""))
                for entry in idl.get("errors", [])
            }
            self.event_names = {
                bytes(entry["discriminator"]): str(entry["name"]) for entry in idl.get("events", [])
            }
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                "program IDL",
                "Anchor spec 0.1.0",
                f"{type(error).__name__}: {error}",
                "rebuild it with `make program`",
            ) from error

    @cached_property
    def instruction_names(self) -> dict[bytes, str]:
        """Instruction name by its first 8 bytes."""
        return {spec.discriminator: name for name, spec in self.instructions.items()}

    def instruction_data(self, name: str, args: Mapping[str, object]) -> bytes:
        """Return discriminator and borsh arguments.

        Arguments go by the program's names; structs are mappings or records, keys `Pubkey`, byte
        arrays bytes of the exact length. Raises ArtifactError for values that do not fit the IDL.
        """
        try:
            head = self.instructions[name].discriminator
            return head + self._types.encode_fields(self._arguments[name], args)
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"arguments of {name}",
                "values that fit the IDL",
                f"{type(error).__name__}: {error}"[:200],
                "the program and this package may differ in version: reinstall troth",
            ) from error

    def decode_event(self, data: bytes) -> tuple[str, Mapping[str, object]] | None:
        """Return name and fields of an event with its discriminator; None if unknown.

        Raises ArtifactError when a known event's bytes cannot be read.
        """
        name = self.event_names.get(data[:DISCRIMINATOR_BYTES])
        return None if name is None else (name, self._decoded(name, data))

    def decode_account(self, kind: str, data: bytes) -> Mapping[str, object]:
        """Return the fields of a borsh account after its discriminator; ArtifactError if short."""
        return self._decoded(kind, data)

    def _decoded(self, name: str, data: bytes) -> Mapping[str, object]:
        try:
            return self._types.decode_struct(name, data[DISCRIMINATOR_BYTES:])
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                name,
                "bytes that fit the IDL",
                f"{type(error).__name__} in {len(data)} bytes"[:200],
                "the program and this package may differ in version: reinstall troth",
            ) from error


@cache
def program_codec(program: Pubkey | None = None) -> ProgramCodec:
    """Return the codec of the packaged IDL, for the program at another address if one is named.

    It is made once per process and program.
    """
    idl = artifacts.read_json(artifacts.IDL)
    return ProgramCodec(idl if program is None else {**idl, "address": str(program)})


def _account_slot(entry: Mapping[str, Any]) -> AccountSlot:
    name = str(entry["name"])
    address = entry.get("address")
    return AccountSlot(
        name=name,
        writable=bool(entry.get("writable", False)),
        signer=bool(entry.get("signer", False)),
        optional=bool(entry.get("optional", False)),
        address=_WELL_KNOWN.get(name) if address is None else Pubkey.from_string(address),
    )
