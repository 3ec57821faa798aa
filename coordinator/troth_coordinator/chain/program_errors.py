"""From "custom error 6007" to a named exception that says what to do.

Owns: sorting a TransactionFailure and its logs into the classes of errors.py.
Never: retries; sender.py asks first whether the failed transaction is a repetition.
Next: errors.py for the classes; the program's own names and sentences come from its IDL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from solders.pubkey import Pubkey

from troth_coordinator.chain.codec import ProgramCodec
from troth_coordinator.chain.errors import (
    ChainError,
    ForeignProgramError,
    InsufficientFundsError,
    ProgramMissingError,
    ProgramRefusedError,
    TransactionFailedError,
    TransactionRejectedError,
)
from troth_coordinator.chain.failure import TransactionFailure

_SYSTEM_PROGRAM = "11111111111111111111111111111111"
_SYSTEM_INSUFFICIENT = 1
_FIRST_PROGRAM_CODE = 6000
_LOOK_UP = "look at the run with `troth status`; docs/reference/errors.md lists every refusal"

_FAILED = re.compile(r"^Program (\w+) failed: custom program error: 0x([0-9a-f]+)$")
_SHORT_TRANSFER = re.compile(r"insufficient lamports (\d+), need (\d+)")
_ANCHOR_ACCOUNT = re.compile(r"AnchorError caused by account: (\w+)\.")
_ANCHOR_NAME = re.compile(r"Error Code: (\w+)\. Error Number: (\d+)\.")

_SHORT_OF_FUNDS = {
    "AccountNotFound": "an account that never held any",
    "InsufficientFundsForFee": "less than the transaction fee",
    "InsufficientFundsForRent": "an account that would be left below the rent-exempt minimum",
    "InvalidRentPayingAccount": "an account that would be left below the rent-exempt minimum",
}
# The runtime's words for an absent program, and for an account that is no program.
_MISSING_PROGRAM = ("ProgramAccountNotFound", "UnsupportedProgramId")
_NO_PROGRAM = ("InvalidProgramForExecution", "AccountNotExecutable", "IncorrectProgramId")


def sort_failure(
    failure: TransactionFailure,
    logs: Sequence[str],
    payer: Pubkey,
    codec: ProgramCodec,
    *,
    landed: bool,
) -> ChainError:
    """Return the exception for a failed transaction; `payer` is the fee payer.

    The program's own codes become ProgramRefusedError with the name and sentence of its IDL,
    Anchor's framework codes the same with Anchor's. Codes of other programs stay numbers, except
    the system program's "not enough lamports". landed: it failed on chain, not in preflight.
    """
    if failure.kind in _SHORT_OF_FUNDS:
        found = _SHORT_OF_FUNDS[failure.kind]
        return InsufficientFundsError(str(payer), found).with_logs(logs)
    if failure.kind in _MISSING_PROGRAM or failure.reason in _MISSING_PROGRAM:
        return ProgramMissingError(str(codec.program_id))
    if failure.kind in _NO_PROGRAM or failure.reason in _NO_PROGRAM:
        return ForeignProgramError(str(codec.program_id), "an account that is not executable")
    refused = _custom(failure, logs, payer, codec) if failure.code is not None else None
    if refused is not None:
        return refused
    unnamed = TransactionFailedError if landed else TransactionRejectedError
    return unnamed(failure, logs)


def _custom(
    failure: TransactionFailure, logs: Sequence[str], payer: Pubkey, codec: ProgramCodec
) -> ChainError | None:
    code = -1 if failure.code is None else failure.code
    program = _failing_program(logs, code) or str(codec.program_id)
    if program == _SYSTEM_PROGRAM and code == _SYSTEM_INSUFFICIENT:
        return InsufficientFundsError(str(payer), _short_by(logs)).with_logs(logs)
    if program != str(codec.program_id):
        return None
    known = codec.errors.get(code)
    if known is not None:
        text, _, step = known.text.partition(": ")
        refused = ProgramRefusedError(known.name, code, text, step or _LOOK_UP, failure)
        return refused.with_logs(logs)
    if code < _FIRST_PROGRAM_CODE:
        return _framework(failure, code, logs)
    return None


def _framework(
    failure: TransactionFailure, code: int, logs: Sequence[str]
) -> ProgramRefusedError | None:
    from troth_coordinator.chain.anchor import framework_error_text  # noqa: PLC0415  (anchorpy)

    text = framework_error_text(code)
    if text is None:
        return None
    name, where = f"AnchorError{code}", ""
    for line in logs:
        named = _ANCHOR_NAME.search(line)
        if named and int(named[2]) == code:
            account = _ANCHOR_ACCOUNT.search(line)
            name, where = named[1], f" (account {account[1]})" if account else ""
    step = "check the accounts and keys passed: " + _LOOK_UP
    return ProgramRefusedError(name, code, text + where, step, failure).with_logs(logs)


def _failing_program(logs: Sequence[str], code: int) -> str | None:
    """Return the innermost program that failed with this code; its callers repeat the code."""
    for line in logs:
        found = _FAILED.match(line)
        if found and int(found[2], 16) == code:
            return found[1]
    return None


def _short_by(logs: Sequence[str]) -> str:
    for line in logs:
        found = _SHORT_TRANSFER.search(line)
        if found:
            return f"{found[1]} lamports, {found[2]} needed"
    return "less than the transfer needs"
