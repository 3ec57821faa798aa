"""The failure of a transaction as the chain reports it: one frozen record.

Owns: reading the RPC-shaped JSON of a transaction error, and nothing else.
Never: decides whether to retry, or words a message (errors.py does).
Next: errors.py turns a record into an exception; rpc.py and localnet's DirectRpc make records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionFailure:
    """A transaction error in the shape of the RPC, taken apart.

    kind: the outer name, such as "BlockhashNotFound" or "InstructionError".
    instruction: position of the failed instruction in the transaction, or None.
    reason: for an instruction error its name, such as "Custom" or "InvalidAccountOwner".
    code: the number of a custom error (Anchor: 6000 and up for the program's own), or None.
    """

    kind: str
    instruction: int | None = None
    reason: str | None = None
    code: int | None = None

    @staticmethod
    def from_json(error: object) -> TransactionFailure | None:
        """Read `err` as the RPC sends it; None stays None.

        Takes `"BlockhashNotFound"`, `{"InsufficientFundsForRent": {...}}`,
        `{"InstructionError": [0, "InvalidArgument"]}` and
        `{"InstructionError": [0, {"Custom": 6000}]}`. Any other shape becomes the kind "Unreadable"
        with its text as the reason: the transaction failed, and that must not be lost because the
        reason cannot be read.
        """
        if error is None:
            return None
        if isinstance(error, str):
            return TransactionFailure(error)
        if isinstance(error, Mapping) and len(error) == 1:
            ((kind, detail),) = error.items()
            if kind != "InstructionError":
                return TransactionFailure(str(kind))
            return _instruction_failure(detail)
        return TransactionFailure("Unreadable", reason=repr(error)[:200])

    def __str__(self) -> str:
        """One line for people."""
        if self.kind != "InstructionError":
            return self.kind if self.reason is None else f"{self.kind} ({self.reason})"
        detail = f"custom error {self.code}" if self.code is not None else str(self.reason)
        return f"instruction {self.instruction}: {detail}"


def _instruction_failure(detail: object) -> TransactionFailure:
    if isinstance(detail, Sequence) and not isinstance(detail, str) and len(detail) == 2:
        position, cause = detail
        if isinstance(position, int) and isinstance(cause, str):
            return TransactionFailure("InstructionError", position, cause)
        if isinstance(position, int) and isinstance(cause, Mapping) and len(cause) == 1:
            ((reason, value),) = cause.items()
            code = value if reason == "Custom" and isinstance(value, int) else None
            return TransactionFailure("InstructionError", position, str(reason), code)
    return TransactionFailure("InstructionError", reason=repr(detail)[:200])
