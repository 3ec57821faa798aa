"""anchorpy, behind the only module that imports it.

Owns: the texts of Anchor's own errors, and a second opinion on borsh.py that a test compares it
with, byte for byte.
Never: needed to build an instruction or to read the chain; importing anchorpy costs 0.3 s, so it
happens on the first use.
Next: idl.py for the form of the IDL that anchorpy reads. The decision record 0013 says when both
modules go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from troth_coordinator.chain.idl import legacy

if TYPE_CHECKING:
    from anchorpy.coder.accounts import AccountsCoder
    from anchorpy.coder.event import EventCoder
    from anchorpy.coder.instruction import InstructionCoder
    from anchorpy_core.idl import Idl


def framework_error_text(code: int) -> str | None:
    """Return what Anchor says about one of its own error codes (below 6000), or None."""
    from anchorpy.error import LangErrorMessage  # noqa: PLC0415  (0.3 s)

    text = LangErrorMessage.get(code)
    return None if text is None else str(text)


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
        from anchorpy_core.idl import Idl  # noqa: PLC0415

        return Idl.from_json(json.dumps(legacy(self._idl)))

    @cached_property
    def _instructions(self) -> InstructionCoder:
        from anchorpy.coder.instruction import InstructionCoder  # noqa: PLC0415

        return InstructionCoder(self._legacy)

    @cached_property
    def _events(self) -> EventCoder:
        from anchorpy.coder.event import EventCoder  # noqa: PLC0415

        return EventCoder(self._legacy)

    @cached_property
    def _accounts(self) -> AccountsCoder:
        from anchorpy.coder.accounts import AccountsCoder  # noqa: PLC0415

        return AccountsCoder(self._legacy)
