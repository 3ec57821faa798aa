"""Every account of every instruction of cases, swapped for one of another type, owner or run."""

import pytest
from program.audits import MISMATCH
from program.cases import PAYLOAD, ROOT, Trial
from program.rounds import key
from program.test_accounts_swapped import CASES, Case, Scene, check

from troth_coordinator.chain import case_instructions as make
from troth_coordinator.rules.audit_view import AuditView


class CaseScene(Scene):
    """A trial with a case under way against 5, and another run beside it."""

    def __init__(self) -> None:
        self.stage = self.trial = trial = Trial.in_session(checkpoint_every=1)
        trial.chain.airdrop(key("stranger").pubkey(), 10**9)
        self._open_other_run()
        trial.challenge(trial.outsider("challenger"), 0, 5, ROOT)
        self.cases = {}
        self.wrong = {
            **self._wrong(),
            "another case": trial.at.audit(0, 5, ROOT),
            "copy of the case": self._copy(trial.at.audit(0, 5, ROOT)),
        }

    def drive(self, name: str) -> Case:
        return self.cases[name] if name in self.cases else getattr(self, f"_until_{name}")()

    def _until_open_case(self) -> Case:
        who = self.trial.outsider("challenger")
        return Case(self.trial.challenge_instruction(who, 0, 3, PAYLOAD), who)

    def _opened(self) -> AuditView:
        self.trial.challenge(self.trial.outsider("challenger"), 0, 3, PAYLOAD)
        return self.trial.case(0, 3, PAYLOAD)

    def _until_draw_committee(self) -> Case:
        case = self._opened()
        self.trial.seat_jury(self.trial.case(0, 5, ROOT))
        return Case(self.trial.draw_instruction(case), self.trial.cranker)

    def _until_vote_case(self) -> Case:
        case = self.trial.seat_jury(self._opened())
        index = case.jurors[0].index
        commit, _ = self.trial.vote_instructions(case, index, MISMATCH)
        return Case(commit, self.trial.sessions[index])

    def _until_reveal(self) -> Case:
        case = self.trial.seat_jury(self._opened())
        index = case.jurors[0].index
        commit, reveal = self.trial.vote_instructions(case, index, MISMATCH)
        self.trial.send(commit, self.trial.sessions[index])
        self.trial.run_to(case.stage_end)
        return Case(reveal, self.trial.sessions[index])

    def _until_settle_case(self) -> Case:
        case = self.trial.seat_jury(self._opened())
        self.trial.poll(case, [MISMATCH] * len(case.jurors))
        return Case(self.trial.settle_case_instruction(case), self.trial.cranker)

    def _convicted(self) -> AuditView:
        settle = self._until_settle_case()
        self.trial.send(settle.instruction, settle.signer)
        return self.trial.case(0, 3, PAYLOAD)

    def _until_appeal_case(self) -> Case:
        owner = self.trial.owners[3]
        return Case(make.appeal_case(self.trial.at, owner.pubkey(), self._convicted()), owner)

    def _until_resolve_appeal(self) -> Case:
        case = self._convicted()
        self.trial.appeal(case)
        self.trial.run_to(case.appeal_end)
        return Case(self.trial.reverse_instruction(case), self.trial.outsider("council"))

    def _until_release_escrow(self) -> Case:
        case = self._convicted()
        self.trial.run_to(max(case.stage_end, case.case_end))
        return Case(self.trial.release_instruction(case), self.trial.cranker)


@pytest.mark.parametrize("name", CASES)
def test_no_wrong_account_is_accepted(name: str) -> None:
    check(CaseScene(), name)


def test_no_wrong_account_is_accepted_where_a_vote_is_shown() -> None:
    """`vote_case` hides a vote and shows it: by now the case is in its second window."""
    scene = CaseScene()
    scene.cases["vote_case"] = scene.drive("reveal")
    check(scene, "vote_case")
