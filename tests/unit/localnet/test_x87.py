import ctypes
import ctypes.util
import platform

import numpy as np
import pytest
from solders.pubkey import Pubkey
from support.localnet import SOL, Wallet

from troth_localnet.execution import Executor
from troth_localnet.svm import Chain
from troth_localnet.x87 import empty_registers

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="no x87 registers here")

VALUES = np.array([5.0, 7.0, 9.0])
HALVES = [2.0, 3.0, 4.0]


def leave_registers_in_use() -> None:
    """As LiteSVM does now and then: nanl returns in a register that nobody takes it from."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    leave_one = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(("nanl", library))
    for _ in range(8):
        leave_one(b"")


class Careless:
    """A LiteSVM after each of whose transactions numpy would divide wrongly."""

    def __init__(self, svm):
        self.svm = svm
        self.num_runs = 0
        self.failure: BaseException | None = None

    def __getattr__(self, name):
        return getattr(self.svm, name)

    def simulate_transaction(self, transaction):
        return self._left_in_use(self.svm.simulate_transaction(transaction))

    def send_transaction(self, transaction):
        return self._left_in_use(self.svm.send_transaction(transaction))

    def _left_in_use(self, result):
        self.num_runs += 1
        leave_registers_in_use()
        if self.failure is not None:
            raise self.failure
        return result


def test_numpy_divides_rightly_when_the_registers_are_empty_again():
    leave_registers_in_use()
    try:
        with np.errstate(invalid="ignore"):
            assert np.isnan(VALUES // 2.0).any(), "what is repaired here would not show"
    finally:
        empty_registers()
    assert (VALUES // 2.0).tolist() == HALVES


class Panic(BaseException):
    """PyO3's, for what LiteSVM cannot run."""


def test_a_transaction_that_panics_leaves_them_empty_too():
    chain = Chain()
    wallet = Wallet(chain)
    careless = Careless(chain._svm)
    careless.failure = Panic()
    chain._executor = Executor(careless)
    with pytest.raises(Panic):
        chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    assert (VALUES // 2.0).tolist() == HALVES


def test_transactions_leave_the_registers_empty():
    chain = Chain()
    wallet = Wallet(chain)
    careless = Careless(chain._svm)
    chain._executor = Executor(careless)
    chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    assert careless.num_runs == 1
    assert (VALUES // 2.0).tolist() == HALVES
