"""Texts to values: addresses, amounts of SOL, shares; and back for people to read.

Owns: exact decimal arithmetic on amounts. Never: a float.
Next: `commands/`, which all take these as text.
"""

import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from troth_cli.errors import InputError
from troth_coordinator.rules.ids import NONE

if TYPE_CHECKING:
    from solders.pubkey import Pubkey

LAMPORTS_PER_SOL = 10**9
PPM = 10**6
GB = 10**9
MAX_GB = 10**9
"""An exabyte: more than one disk or store of a run has."""
MAX_SOL = 10**9
"""More than all SOL in existence."""


def address(text: str, what: str, advice: str = "Copy the address again, whole.") -> "Pubkey":
    """Return the address that a text spells in base58; `what` names it in the InputError."""
    from solders.pubkey import Pubkey

    try:
        return Pubkey.from_string(text.strip())
    except ValueError as error:
        raise InputError(
            "32 bytes in base58 (43 or 44 letters and digits)",
            repr(text),
            advice,
            what,
        ) from error


def address_of_run(text: str, what: str = "RUN") -> "Pubkey":
    """Return the address of a run, where its file may stand as well; InputError."""
    return address(text, what, "Copy the address again, whole, or name the run's file.")


def lamports(text: str, what: str) -> int:
    """Return the lamports of an amount of SOL like `1.5`; `what` names it in the InputError."""
    try:
        amount = Decimal(text.strip().removesuffix("SOL").strip())
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount <= MAX_SOL:
        raise InputError("an amount of SOL like 1.5", repr(text), "Correct the amount.", what)
    exact = amount * LAMPORTS_PER_SOL
    if exact != int(exact):
        raise InputError(
            "at most nine decimals: the smallest part of a SOL is 0.000000001",
            repr(text),
            "Round the amount.",
            what,
        )
    return int(exact)


def gigabytes(number: float | None, what: str) -> int | None:
    """Return a bound in bytes, None for none; `what` names it in the InputError."""
    if number is None:
        return None
    if not math.isfinite(number) or not 0 <= number <= MAX_GB:
        step = "Write a number; leave the option out for no bound."
        raise InputError(f"gigabytes from 0 to {MAX_GB}, like 2.5", f"{number:g}", step, what)
    return int(number * GB)


def ppm(text: str, what: str) -> int:
    """Return a share like `0.05` or `5%` in parts per million; `what` names it in InputError."""
    number = text.strip()
    is_percent = number.endswith("%")
    try:
        share = Decimal(number.removesuffix("%").strip()) / (100 if is_percent else 1)
    except InvalidOperation:
        share = Decimal("NaN")
    if not share.is_finite() or not 0 <= share <= 1:
        raise InputError(
            "a share from 0 to 1, like 0.05 or 5%", repr(text), "Correct the share.", what
        )
    exact = share * PPM
    if exact != int(exact):
        raise InputError("whole parts per million", repr(text), "Round the share.", what)
    return int(exact)


def sol(amount: int) -> str:
    """Return lamports as SOL, without zeros at the end: `1.5 SOL`, or `-1.5 SOL` for a loss."""
    return f"{sol_number(amount)} SOL"


def sol_number(amount: int) -> str:
    """Return the number of it, as an option takes it: `1.5`."""
    whole, part = divmod(abs(amount), LAMPORTS_PER_SOL)
    sign, decimals = "-" if amount < 0 else "", f"{part:09d}".rstrip("0")
    return f"{sign}{whole}.{decimals}" if decimals else f"{sign}{whole}"


def number_or_none(value: int) -> int | None:
    """Return a u64 field of the chain, or None where it holds the mark for "no round, no slot"."""
    return None if value == NONE else value
