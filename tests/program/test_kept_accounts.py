"""The embedded chain writes what a simulated transaction has left; the VM would keep the same."""

from support.program.audits import MISMATCH
from support.program.cases import CaseDriver

from troth_localnet import svm
from troth_localnet.execution import Executor


class Again(Executor):
    """Has the VM run once more what succeeds, and keep that."""

    num_runs = 0

    def commit(self, transaction, keys, simulated):
        if simulated.error is not None:
            return super().commit(transaction, keys, simulated)
        Again.num_runs += 1
        self._run(self._svm.send_transaction, transaction)
        return True


def everything_of_a_case():
    """Return all accounts of a chain with created and closed ones, after a case and its appeal."""
    driver = CaseDriver.build(12, 1)
    driver.judge(0, 3, [MISMATCH] * 5)
    driver.decide(driver.case(0, 3), MISMATCH)
    case = driver.case(0, 3)
    driver.appeal(case)
    driver.run_to(case.appeal_end)
    driver.reverse(case)
    driver.release(case)
    driver.leave(1)
    accounts = driver.chain.accounts
    return {address: accounts.get(address) for address in accounts.addresses()}


def test_what_is_kept_is_what_the_vm_would_keep(monkeypatch):
    kept = everything_of_a_case()
    monkeypatch.setattr(svm, "Executor", Again)
    assert everything_of_a_case() == kept
    assert Again.num_runs > 100
