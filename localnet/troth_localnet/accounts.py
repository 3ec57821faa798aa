"""The accounts of the VM as a ledger with an index of owners.

Owns: reads, writes outside transactions, program images, and the owner index that LiteSVM 0.26
lacks (getProgramAccounts).
Never: runs transactions. Next: `svm.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from solders.account import Account
from solders.pubkey import Pubkey
from solders.solders import LiteSVM
from solders.system_program import ID as SYSTEM_PROGRAM

from troth_localnet.errors import ProgramImageError

_ELF_MAGIC: Final = b"\x7fELF"
_ELF_HEADER_BYTES: Final = 64
_ELF_FLAGS_OFFSET: Final = 48
_PRELOADED: Final = (
    "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
    "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
    "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL",
    "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
    "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo",
)


class Accounts:
    """Account reads and direct writes on one LiteSVM."""

    def __init__(self, svm: LiteSVM) -> None:
        self._svm = svm
        self._owner_of: dict[Pubkey, Pubkey] = {}
        self._owned: defaultdict[Pubkey, set[Pubkey]] = defaultdict(set)
        self.index(Pubkey.from_string(text) for text in _PRELOADED)

    def get(self, address: Pubkey) -> Account | None:
        """Return the account; one without lamports does not exist."""
        account = self._svm.get_account(address)
        return account if account is not None and account.lamports else None

    def balance(self, address: Pubkey) -> int:
        """Return lamports, 0 for no account."""
        return self._svm.get_balance(address) or 0

    def owner_and_data(self, address: Pubkey) -> tuple[Pubkey, bytes] | None:
        """Return owner and data of an account, for reading a lookup table."""
        account = self.get(address)
        return None if account is None else (account.owner, account.data)

    def of_program(self, program: Pubkey) -> list[tuple[Pubkey, Account]]:
        """Return all accounts the program owns, by ascending address."""
        found = ((key, self.get(key)) for key in sorted(self._owned.get(program, ()), key=bytes))
        return [(key, account) for key, account in found if account is not None]

    def set(self, address: Pubkey, account: Account) -> None:
        """Write an account outside any transaction, as genesis would."""
        self._svm.set_account(address, account)
        self.index([address])

    def restore(self, address: Pubkey, account: Account) -> None:
        """Write an account as it was kept; one that is so already stays as it is."""
        if self.get(address) != account:
            self.set(address, account)

    def addresses(self) -> list[Pubkey]:
        """Return every account that exists and was ever written, in no order."""
        return list(self._owner_of)

    def index(self, addresses: Iterable[Pubkey]) -> None:
        """Bring the owner index up to date for accounts that may have changed."""
        for address in addresses:
            account = self.get(address)
            if account is None:
                self._forget(address)
            owner = None if account is None else account.owner
            known = self._owner_of.get(address)
            if known == owner:
                continue
            if known is not None:
                self._owned[known].discard(address)
                del self._owner_of[address]
            if owner is not None:
                self._owned[owner].add(address)
                self._owner_of[address] = owner

    def _forget(self, address: Pubkey) -> None:
        """Remove what the VM keeps of an account without lamports; nobody could make it anew."""
        left = self._svm.get_account(address)
        if left is not None and (left.data or left.owner != SYSTEM_PROGRAM):
            self._svm.set_account(address, Account(0, b"", SYSTEM_PROGRAM))

    def add_program(self, program_id: Pubkey, image: bytes) -> None:
        """Install a program image as at genesis; ProgramImageError if the VM cannot run it."""
        _check_image(program_id, image)
        try:
            self._svm.add_program(program_id, image)
        except BaseException as error:
            # The VM unwraps load errors; PyO3 turns the panic into a BaseException of its own.
            if type(error).__name__ != "PanicException":
                raise
            raise _image_error(program_id, f"an image its loader refuses ({error})") from error
        self.index([program_id])


def _check_image(program_id: Pubkey, image: bytes) -> None:
    if not image.startswith(_ELF_MAGIC) or len(image) < _ELF_HEADER_BYTES:
        raise _image_error(program_id, f"{len(image)} bytes that are no ELF file")
    version = int.from_bytes(image[_ELF_FLAGS_OFFSET : _ELF_FLAGS_OFFSET + 4], "little")
    if version != 0:
        raise _image_error(program_id, f"an image of sBPF version {version}")


def _image_error(program_id: Pubkey, found: str) -> ProgramImageError:
    return ProgramImageError(
        f"a program image of sBPF version 0 for {program_id}",
        found,
        "Use the V0 image (troth ships coordinator_v0.so; `make program` builds it)",
    )
