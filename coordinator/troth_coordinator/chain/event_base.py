"""The base of the program's events.

Owns: the base record and its making from decoded borsh.
Never: names an event; event_types.py, generated from the program's IDL, does.
Next: events.py, which finds events in logs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from solders.pubkey import Pubkey

from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.rules.params_view import Admission, ParamsView


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. The chain hash absorbs those that carry a sequence (protocol section 11).

    kind: number inside the chain hash, None for the plain events that a close hashes itself.
    run: address of the run. slot: slot of the transaction.
    sequence: number of the absorbed event, None for plain ones.
    body: borsh bytes without the discriminator, as the chain hash takes them.
    """

    kind: ClassVar[int | None] = None

    run: Pubkey
    slot: int
    sequence: int | None = None
    body: bytes

    @classmethod
    def build(cls, decoded: Mapping[str, Any], body: bytes) -> Self:
        """Make the record from the decoded fields and the raw body.

        Raises ArtifactError for a number that stands for nothing.
        """
        values = {
            field.name: decoded[field.name]
            for field in dataclasses.fields(cls)
            if field.name in decoded
        }
        if "params" in values:
            values["params"] = _params_view(values["params"])
        return cls(**values, body=body)

    @property
    def name(self) -> str:
        """Name of the event in the program."""
        return type(self).__name__


def _params_view(decoded: Mapping[str, Any]) -> ParamsView:
    values = {field.name: decoded[field.name] for field in dataclasses.fields(ParamsView)}
    try:
        admission = Admission(values["admission"])
    except ValueError as error:
        step = "the program and this package may differ in version: reinstall troth"
        raise ArtifactError("params", "a kind of admission", str(error), step) from error
    return ParamsView(**{**values, "admission": admission})
