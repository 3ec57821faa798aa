"""Every account of every instruction of audits, swapped for one of another type, owner or run."""

import pytest
from support.program.audits import MISMATCH, OK, AuditDriver
from support.program.rounds import key
from support.program.swapped import AUDITS, Case, TwoRuns, check


class TwoRunsWithAudits(TwoRuns):
    """A run with audits whose first seed is frozen, and another run beside it."""

    driver: AuditDriver

    def __init__(self) -> None:
        self.driver = AuditDriver.started(checkpoint_every=1)
        self.driver.chain.airdrop(key("stranger").pubkey(), 10**9)
        self._open_other_run()
        self.driver.open_audit(0, 5)
        self.cases = {}
        self.wrong = {
            **self._wrong(),
            "another audit": self.driver.at.audit(0, 5),
            "copy of the audit": self._copy(self.driver.at.audit(0, 5)),
        }

    def drive(self, name: str) -> Case:
        return getattr(self, f"_until_{name}")()

    def _until_request_audit(self) -> Case:
        self.driver.commit_all()
        return Case(self.driver.request_instruction(0), self.driver.cranker)

    def _until_open_audit(self) -> Case:
        return Case(self.driver.open_instruction(0, 0), self.driver.cranker)

    def _until_post_openings(self) -> Case:
        return Case(self.driver.post_instruction(0, 0), self.driver.sessions[0])

    def _until_commit_verdict(self) -> Case:
        self.driver.post(0, 0)
        audit = self.driver.of(0, 0)
        index = audit.seats[0].index
        commit, _ = self.driver.commit_instructions(audit, index, OK)
        return Case(commit, self.driver.sessions[index])

    def _until_reveal_verdict(self) -> Case:
        commit = self._until_commit_verdict()
        self.driver.send(commit.instruction, commit.signer)
        audit = self.driver.of(0, 0)
        self.driver.run_to(audit.stage_end)
        _, reveal = self.driver.commit_instructions(audit, audit.seats[0].index, OK)
        return Case(reveal, commit.signer)

    def _until_extend_audit(self) -> Case:
        self.driver.post(0, 0)
        self.driver.take_verdicts(0, 0, [OK, MISMATCH, OK])
        return Case(self.driver.extend_instruction(0, 0), self.driver.cranker)

    def _until_settle_audit(self) -> Case:
        self.driver.post(0, 0)
        self.driver.take_verdicts(0, 0, [OK, OK, OK])
        return Case(self.driver.settle_instruction(0, 0), self.driver.cranker)


@pytest.mark.parametrize("name", AUDITS)
def test_no_wrong_account_is_accepted(name: str) -> None:
    check(TwoRunsWithAudits(), name)
