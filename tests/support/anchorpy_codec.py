"""anchorpy's codec: a second opinion on `chain/borsh.py`, byte for byte.

Owns: the calls of anchorpy. Never: used by the product. The decision record 0013 says when it goes.
Next: `legacy_idl.py` for the form of the IDL that anchorpy reads.
"""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from anchorpy.coder.accounts import AccountsCoder
from anchorpy.coder.event import EventCoder
from anchorpy.coder.instruction import InstructionCoder
from anchorpy_core.idl import Idl

from support.legacy_idl import legacy


class AnchorCodec:
    """anchorpy's encoder and decoders for one IDL of spec 0.1.0; values are anchorpy's own."""

    def __init__(self, idl: Mapping[str, Any]) -> None:
        self._idl = idl

    def instruction_data(self, name: str, args: Mapping[str, object]) -> bytes:
        """Return discriminator and arguments; structs are mappings."""
        return bytes(self._instructions.encode(name, dict(args)))

    def event(self, data: bytes) -> object:
        """Return an event's fields as attributes."""
        return self._events.parse(data).data

    def account(self, data: bytes) -> object:
        """Return an account's fields as attributes."""
        return self._accounts.decode(data)

    @cached_property
    def _legacy(self) -> Idl:
        return Idl.from_json(json.dumps(legacy(self._idl)))

    @cached_property
    def _instructions(self) -> InstructionCoder:
        return InstructionCoder(self._legacy)

    @cached_property
    def _events(self) -> EventCoder:
        return EventCoder(self._legacy)

    @cached_property
    def _accounts(self) -> AccountsCoder:
        return AccountsCoder(self._legacy)
