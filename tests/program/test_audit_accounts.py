"""Every account of every instruction of audits, swapped for one of another type, owner or run."""

import pytest
from program.audits import MISMATCH, OK, Court
from program.rounds import key
from program.test_accounts_swapped import AUDITS, Case, Scene, check


class AuditScene(Scene):
    """A court whose first round is frozen, and another run beside it."""

    def __init__(self) -> None:
        self.stage = self.court = Court.in_session(checkpoint_every=1)
        self.court.chain.airdrop(key("stranger").pubkey(), 10**9)
        self._open_other_run()
        self.court.open_audit(0, 5)
        self.cases = {}
        self.wrong = {
            **self._wrong(),
            "another audit": self.court.at.audit(0, 5),
            "copy of the audit": self._copy(self.court.at.audit(0, 5)),
        }

    def drive(self, name: str) -> Case:
        return getattr(self, f"_until_{name}")()

    def _until_request_audit(self) -> Case:
        self.court.commit_all()
        return Case(self.court.request_instruction(0), self.court.cranker)

    def _until_open_audit(self) -> Case:
        return Case(self.court.open_instruction(0, 0), self.court.cranker)

    def _until_post_openings(self) -> Case:
        return Case(self.court.post_instruction(0, 0), self.court.sessions[0])

    def _until_commit_verdict(self) -> Case:
        self.court.post(0, 0)
        audit = self.court.of(0, 0)
        index = audit.seats[0].index
        commit, _ = self.court.commit_instructions(audit, index, OK)
        return Case(commit, self.court.sessions[index])

    def _until_reveal_verdict(self) -> Case:
        commit = self._until_commit_verdict()
        self.court.send(commit.instruction, commit.signer)
        audit = self.court.of(0, 0)
        self.court.run_to(audit.stage_end)
        _, reveal = self.court.commit_instructions(audit, audit.seats[0].index, OK)
        return Case(reveal, commit.signer)

    def _until_extend_audit(self) -> Case:
        self.court.post(0, 0)
        self.court.hear(0, 0, [OK, MISMATCH, OK])
        return Case(self.court.extend_instruction(0, 0), self.court.cranker)

    def _until_settle_audit(self) -> Case:
        self.court.post(0, 0)
        self.court.hear(0, 0, [OK, OK, OK])
        return Case(self.court.settle_instruction(0, 0), self.court.cranker)


@pytest.mark.parametrize("name", AUDITS)
def test_no_wrong_account_is_accepted(name: str) -> None:
    check(AuditScene(), name)
