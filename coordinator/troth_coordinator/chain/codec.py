"""The program's IDL at work: instruction bytes, account lists, events, error names.

Owns: the one use of anchorpy, imported on the first encoding or decoding because it costs 0.3 s.
Never: signs, sends or knows addresses.
Next: instructions.py and events.py for the typed face; idl.py for the conversion.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from solders.pubkey import Pubkey

from troth_coordinator import artifacts
from troth_coordinator.chain.errors import ArtifactError

if TYPE_CHECKING:
    from anchorpy.coder.accounts import AccountsCoder
    from anchorpy.coder.event import EventCoder
    from anchorpy.coder.instruction import InstructionCoder
    from anchorpy_core.idl import Idl

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
        self._idl = idl
        try:
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

        Arguments go by the program's names; structs are mappings, keys `Pubkey`, byte arrays
        bytes of the exact length. Raises ArtifactError for values that do not fit the IDL.
        """
        from construct import ConstructError  # noqa: PLC0415  (comes with anchorpy)

        try:
            return bytes(self._instruction_coder.encode(name, dict(args)))
        except (ConstructError, KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"arguments of {name}",
                "values that fit the IDL",
                f"{type(error).__name__}: {error}"[:200],
                "the program and this package may differ in version: reinstall troth",
            ) from error

    def decode_event(self, data: bytes) -> tuple[str, object] | None:
        """Return name and decoded fields of an event with its discriminator; None if unknown.

        Raises ArtifactError when a known event's bytes cannot be read.
        """
        name = self.event_names.get(data[:DISCRIMINATOR_BYTES])
        if name is None:
            return None
        return name, _decoded(name, self._event_coder, data)

    def decode_account(self, kind: str, data: bytes) -> object:
        """Return the fields of a borsh account after its discriminator; ArtifactError if short."""
        return _decoded(kind, self._account_coder, data)

    @cached_property
    def _legacy(self) -> Idl:
        from anchorpy_core.idl import Idl  # noqa: PLC0415

        from troth_coordinator.chain.idl import legacy  # noqa: PLC0415  (pyheck, from anchorpy)

        return Idl.from_json(json.dumps(legacy(self._idl)))

    @cached_property
    def _instruction_coder(self) -> InstructionCoder:
        from anchorpy.coder.instruction import InstructionCoder  # noqa: PLC0415

        return InstructionCoder(self._legacy)

    @cached_property
    def _event_coder(self) -> EventCoder:
        from anchorpy.coder.event import EventCoder  # noqa: PLC0415

        return EventCoder(self._legacy)

    @cached_property
    def _account_coder(self) -> AccountsCoder:
        from anchorpy.coder.accounts import AccountsCoder  # noqa: PLC0415

        return AccountsCoder(self._legacy)


@cache
def program_codec() -> ProgramCodec:
    """Return the codec of the packaged IDL; read once per process."""
    return ProgramCodec(artifacts.read_json(artifacts.IDL))


def _decoded(name: str, coder: AccountsCoder | EventCoder, data: bytes) -> object:
    from construct import ConstructError  # noqa: PLC0415  (comes with anchorpy)

    try:
        return coder.parse(data).data
    except (ConstructError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            name,
            "bytes that fit the IDL",
            f"{type(error).__name__} in {len(data)} bytes"[:200],
            "the program and this package may differ in version: reinstall troth",
        ) from error


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
