"""One transaction in the VM, with the two checks that solders' LiteSVM leaves out.

Owns: running and simulating, priority fees, and the rule that no account may end below its
rent-exempt minimum; turning VM results into `Outcome`.
Never: knows of slots, blockhash age, duplicates or history; svm.py does.
Next: `svm.py`, which uses the Outcome.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from solders.account import Account
from solders.pubkey import Pubkey
from solders.solders import LiteSVM
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import (
    FailedTransactionMetadata,
    InnerInstruction,
    SimulatedTransactionInfo,
    TransactionMetadata,
)

from troth_localnet.fees import priority_fee, signature_fee
from troth_localnet.message import AccountKeys
from troth_localnet.values import Json
from troth_localnet.x87 import empty_registers

Result = TypeVar("Result")
_INCINERATOR: Final = Pubkey.from_string("1nc1nerator11111111111111111111111111111111")


@dataclass(frozen=True, slots=True)
class InnerCall:
    """An instruction that a program invoked: indexes into the transaction's keys."""

    program_index: int
    account_indexes: bytes
    data: bytes
    stack_height: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of running or simulating a transaction. `error` is RPC-shaped, None on success.

    A transaction that was not `executed` was refused before its fee was taken.
    """

    error: Json
    executed: bool = True
    logs: tuple[str, ...] = ()
    compute_units: int = 0
    inner_calls: tuple[tuple[InnerCall, ...], ...] = ()
    return_data: tuple[Pubkey, bytes] | None = None
    post_accounts: Mapping[Pubkey, Account] = field(default_factory=dict)

    def without_accounts(self) -> Outcome:
        """Return the outcome without the accounts, for the history."""
        return replace(self, post_accounts={})


class Executor:
    """Runs transactions on one LiteSVM. The caller has checked signatures and blockhash."""

    def __init__(self, svm: LiteSVM) -> None:
        self._svm = svm
        # Signatures are checked once by the caller, age and duplicates against 150 blocks;
        # LiteSVM would check each run again, and against its newest blockhash only.
        svm.set_sigverify(False)
        svm.set_blockhash_check(False)
        svm.set_transaction_history(0)

    def simulate(self, transaction: VersionedTransaction, keys: AccountKeys) -> Outcome:
        """Run without keeping anything. Signatures are not looked at."""
        refusal = self._fee_refusal(transaction, keys)
        if refusal is not None:
            return Outcome(refusal, executed=False)
        with self._priority_fee_taken(transaction, keys):
            result = self._run(self._svm.simulate_transaction, transaction)
        outcome = _outcome(result)
        rent_error = self._rent_error(keys, outcome)
        if rent_error is None:
            return outcome
        return replace(outcome, error=rent_error, post_accounts={})

    def commit(
        self, transaction: VersionedTransaction, keys: AccountKeys, simulated: Outcome
    ) -> bool:
        """Keep what a simulated transaction did; False if it cannot land and took no fee."""
        payer = keys.static[0]
        priority = priority_fee(transaction.message)
        if not simulated.executed:
            return False
        if simulated.error is None:
            self._keep(simulated.post_accounts)
            return True
        if _is_rent_error(simulated.error):
            # The VM would accept it, so only the fee of the failure is booked.
            self._take(payer, signature_fee(transaction.message) + priority)
            return True
        before = self._total(keys)
        self._take(payer, priority)
        self._run(self._svm.send_transaction, transaction)
        landed = before - self._total(keys) > priority
        if not landed:
            self._take(payer, -priority)
        return landed

    def _keep(self, accounts: Mapping[Pubkey, Account]) -> None:
        """Write the accounts that a simulation has left: to send is to run the same once more.

        None of them is a new program: this VM deploys none by a transaction.
        """
        for key, account in accounts.items():
            self._svm.set_account(key, account)

    def _run(
        self, run: Callable[[VersionedTransaction], Result], transaction: VersionedTransaction
    ) -> Result:
        try:
            return run(transaction)
        finally:
            empty_registers()

    def balances(self, keys: AccountKeys) -> tuple[int, ...]:
        """Return the lamports of every key, in order."""
        return tuple(self._svm.get_balance(key) or 0 for key in keys.all)

    def _total(self, keys: AccountKeys) -> int:
        return sum(self._svm.get_balance(key) or 0 for key in set(keys.all))

    def _fee_refusal(self, transaction: VersionedTransaction, keys: AccountKeys) -> Json:
        """Return the runtime's error for a payer that cannot pay, None if it can."""
        payer = self._svm.get_account(keys.static[0])
        if payer is None or payer.lamports == 0:
            return "AccountNotFound"
        fee = signature_fee(transaction.message) + priority_fee(transaction.message)
        left = payer.lamports - fee
        if left < 0:
            return "InsufficientFundsForFee"
        minimum = self._svm.minimum_balance_for_rent_exemption(len(payer.data))
        if payer.lamports >= minimum > left > 0:
            return {"InsufficientFundsForRent": {"account_index": 0}}
        return None

    @contextmanager
    def _priority_fee_taken(
        self, transaction: VersionedTransaction, keys: AccountKeys
    ) -> Iterator[None]:
        fee = priority_fee(transaction.message)
        self._take(keys.static[0], fee)
        try:
            yield
        finally:
            self._take(keys.static[0], -fee)

    def _take(self, payer: Pubkey, lamports: int) -> None:
        account = self._svm.get_account(payer) if lamports else None
        if account is not None:
            self._svm.set_account(payer, _with_lamports(account, account.lamports - lamports))

    def _rent_error(self, keys: AccountKeys, outcome: Outcome) -> Json:
        """Apply the runtime's rule: each account is empty, exempt, or was below and got nothing."""
        if outcome.error is not None:
            return None
        for index, key in keys.writable:
            after = outcome.post_accounts.get(key)
            if after is None or after.lamports == 0 or key == _INCINERATOR:
                continue
            if after.lamports >= self._svm.minimum_balance_for_rent_exemption(len(after.data)):
                continue
            before = self._svm.get_account(key)
            if before is None or not self._was_paying_rent(before, after):
                return {"InsufficientFundsForRent": {"account_index": index}}
        return None

    def _was_paying_rent(self, before: Account, after: Account) -> bool:
        minimum = self._svm.minimum_balance_for_rent_exemption(len(before.data))
        return (
            0 < before.lamports < minimum
            and len(before.data) == len(after.data)
            and after.lamports <= before.lamports
        )


def _is_rent_error(error: Json) -> bool:
    return isinstance(error, Mapping) and "InsufficientFundsForRent" in error


def _with_lamports(account: Account, lamports: int) -> Account:
    return Account(lamports, account.data, account.owner, account.executable, account.rent_epoch)


def _outcome(
    result: SimulatedTransactionInfo | TransactionMetadata | FailedTransactionMetadata,
) -> Outcome:
    meta = result if isinstance(result, TransactionMetadata) else result.meta()
    error: Json = None
    post_accounts: dict[Pubkey, Account] = {}
    if isinstance(result, FailedTransactionMetadata):
        # err().to_json() differs between solders versions; this shape is the RPC's in all.
        error = json.loads(result.to_json())["err"]
    elif isinstance(result, SimulatedTransactionInfo):
        post_accounts = dict(result.post_accounts())
    returned = meta.return_data()  # type: ignore[attr-defined]  # the stubs misname it
    return Outcome(
        error=error,
        logs=tuple(meta.logs()),
        compute_units=meta.compute_units_consumed(),
        inner_calls=tuple(
            tuple(_inner_call(call) for call in calls) for calls in meta.inner_instructions()
        ),
        return_data=(returned.program_id, bytes(returned.data)) if returned.data else None,
        post_accounts=post_accounts,
    )


def _inner_call(call: InnerInstruction) -> InnerCall:
    instruction = call.instruction()
    return InnerCall(
        program_index=instruction.program_id_index,
        account_indexes=bytes(instruction.accounts),
        data=bytes(instruction.data),
        stack_height=call.stack_height(),  # type: ignore[attr-defined]  # not in the stubs
    )
