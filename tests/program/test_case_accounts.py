"""Every account of every instruction of cases, swapped for one of another type, owner or run."""

import pytest
from program.audits import MISMATCH, OK
from program.cases import CLEARED, WORK, Trial
from program.rounds import key
from program.test_accounts_swapped import CASES, Case, Scene, check
from solders.keypair import Keypair

from troth_coordinator.chain import case_instructions as make
from troth_coordinator.rules.audit_view import AuditView


class CaseScene(Scene):
    """A run that has accused somebody, and another run beside it."""

    def __init__(self) -> None:
        self.stage = self.trial = Trial.in_session(checkpoint_every=1)
        self.trial.chain.airdrop(key("stranger").pubkey(), 10**9)
        self._open_other_run()
        self.trial.judge(0, 5, CLEARED)
        self.case = self.trial.accuse(0, 3)
        self.wrong = {
            **self._wrong(),
            "another audit": self.trial.at.audit(0, 5),
            "copy of the audit": self._copy(self.trial.at.audit(0, 3)),
        }

    def drive(self, name: str) -> Case:
        return getattr(self, f"_until_{name}")()

    def _until_open_case(self) -> Case:
        self.trial.judge(0, 4, CLEARED)
        who = self.trial.outsider("challenger")
        return Case(self.trial.challenge_instruction(who, 0, 4, WORK), who)

    def _until_draw_committee(self) -> Case:
        self.trial.chain.advance(self.trial.params.seed_delay_slots + 1)
        return Case(self.trial.draw_instruction(self.case), self.trial.cranker)

    def _until_vote_case(self) -> Case:
        seated = self.trial.seat_jury(self.case)
        index = seated.jurors[0].index
        commit, _ = self.trial.vote_instructions(seated, index, OK)
        return Case(commit, self.trial.sessions[index])

    def _until_settle_case(self) -> Case:
        seated = self.trial.seat_jury(self.case)
        self.trial.poll(seated, [MISMATCH] * len(seated.jurors))
        return Case(self.trial.settle_case_instruction(seated), self.trial.cranker)

    def _until_appeal_case(self) -> Case:
        self._convict()
        owner = self.trial.owners[3]
        return Case(make.appeal_case(self.trial.at, owner.pubkey(), self.case), owner)

    def _until_resolve_appeal(self) -> Case:
        appeal_end = self._convict().appeal_end
        self.trial.appeal(self.case)
        self.trial.run_to(appeal_end)
        council: Keypair = self.trial.outsider("council")
        return Case(self.trial.reverse_instruction(self.case), council)

    def _until_release_escrow(self) -> Case:
        decided = self._convict()
        self.trial.run_to(max(decided.stage_end, decided.case_end))
        return Case(self.trial.release_instruction(self.case), self.trial.cranker)

    def _convict(self) -> AuditView:
        self.trial.decide(self.case, MISMATCH)
        self.case = self.trial.case(0, 3)
        return self.case


@pytest.mark.parametrize("name", CASES)
def test_no_wrong_account_is_accepted(name: str) -> None:
    check(CaseScene(), name)
