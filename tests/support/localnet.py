"""Transactions and chains for the localnet tests."""

from collections.abc import Sequence

from solders.account import Account
from solders.address_lookup_table_account import ID as LOOKUP_TABLE_PROGRAM
from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction

from troth_localnet.svm import Chain

SOL = 10**9
MEMO = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")


def pay(payer: Keypair, to: Pubkey, lamports: int) -> Instruction:
    return transfer(TransferParams(from_pubkey=payer.pubkey(), to_pubkey=to, lamports=lamports))


def memo(text: bytes, signer: Pubkey) -> Instruction:
    return Instruction(MEMO, text, [AccountMeta(signer, True, False)])


def signed(
    instructions: Sequence[Instruction], signers: Sequence[Keypair], blockhash: Hash
) -> VersionedTransaction:
    message = Message.new_with_blockhash(instructions, signers[0].pubkey(), blockhash)
    return VersionedTransaction(message, signers)


def signed_v0(
    instructions: Sequence[Instruction],
    signers: Sequence[Keypair],
    tables: Sequence[AddressLookupTableAccount],
    blockhash: Hash,
) -> VersionedTransaction:
    message = MessageV0.try_compile(signers[0].pubkey(), instructions, tables, blockhash)
    return VersionedTransaction(message, signers)


class Wallet:
    """A funded key on a chain."""

    def __init__(self, chain: Chain, lamports: int = 10 * SOL) -> None:
        self.chain = chain
        self.key = Keypair()
        self.pubkey = self.key.pubkey()
        chain.airdrop(self.pubkey, lamports)

    @property
    def lamports(self) -> int:
        return self.chain.accounts.balance(self.pubkey)

    def transaction(self, *instructions: Instruction, blockhash: Hash | None = None) -> bytes:
        latest = blockhash or self.chain.latest_blockhash()[0]
        return bytes(signed(instructions, [self.key], latest))

    def payment(self, to: Pubkey, lamports: int, blockhash: Hash | None = None) -> bytes:
        return self.transaction(pay(self.key, to, lamports), blockhash=blockhash)


def put_table(chain: Chain, table: Pubkey, addresses: Sequence[Pubkey]) -> None:
    """A table as the lookup program lays it out: active, extended in slot 0, no authority."""
    meta = (1).to_bytes(4, "little") + (2**64 - 1).to_bytes(8, "little") + bytes(44)
    data = meta + b"".join(bytes(address) for address in addresses)
    chain.accounts.set(table, Account(SOL, data, LOOKUP_TABLE_PROGRAM, False, 0))
