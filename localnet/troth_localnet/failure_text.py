"""Transaction errors in the words a node uses, for messages read by people and by old tools.

Owns: the wording. Never: decides anything; programs read the error itself.
Next: `methods/transactions.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from troth_localnet.values import Json

_TRANSACTION_TEXTS: Final = {
    "AccountNotFound": "Attempt to debit an account but found no record of a prior credit.",
    "AlreadyProcessed": "This transaction has already been processed",
    "BlockhashNotFound": "Blockhash not found",
    "InsufficientFundsForFee": "Insufficient funds for fee",
    "ProgramAccountNotFound": "Attempt to load a program that does not exist",
    "SanitizeFailure": "Transaction failed to sanitize accounts offsets correctly",
    "SignatureFailure": "Transaction did not pass signature verification",
}
_INSTRUCTION_TEXTS: Final = {
    "ComputationalBudgetExceeded": "Computational budget exceeded",
    "InvalidAccountData": "invalid account data for instruction",
    "InvalidArgument": "invalid program argument",
    "InvalidInstructionData": "invalid instruction data",
    "MissingRequiredSignature": "missing required signature for instruction",
    "ProgramFailedToComplete": "Program failed to complete",
}


def failure_text(error: Json) -> str:
    """Word an RPC-shaped transaction error in one line."""
    if isinstance(error, str):
        return _TRANSACTION_TEXTS.get(error) or _spaced(error)
    if not isinstance(error, Mapping) or len(error) != 1:
        return str(error)
    ((name, detail),) = error.items()
    if name == "InsufficientFundsForRent" and isinstance(detail, Mapping):
        index = detail.get("account_index")
        return f"Transaction results in an account ({index}) with insufficient funds for rent"
    if name == "InstructionError" and isinstance(detail, Sequence) and len(detail) == 2:
        return f"Error processing Instruction {detail[0]}: {_instruction_text(detail[1])}"
    return _spaced(name)


def _instruction_text(error: Json) -> str:
    if isinstance(error, str):
        return _INSTRUCTION_TEXTS.get(error) or _spaced(error)
    if isinstance(error, Mapping) and isinstance(error.get("Custom"), int):
        return f"custom program error: {error['Custom']:#x}"
    return str(error)


def _spaced(name: str) -> str:
    """`InvalidAccountOwner` as `invalid account owner`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
