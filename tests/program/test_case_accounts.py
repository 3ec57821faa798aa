"""Every account of every instruction of cases, swapped for one of another type, owner or run."""

import pytest
from support.program.audits import MISMATCH
from support.program.cases import PAYLOAD, ROOT, CaseDriver
from support.program.rounds import key
from support.program.swapped import CASES, Case, TwoRuns, check

from troth_coordinator.chain import case_instructions as make
from troth_coordinator.rules.audit_view import AuditView


class TwoRunsWithCases(TwoRuns):
    """A run with a case under way against 5, and another run beside it."""

    driver: CaseDriver

    def __init__(self) -> None:
        self.driver = driver = CaseDriver.started(checkpoint_every=1)
        driver.chain.airdrop(key("stranger").pubkey(), 10**9)
        self._open_other_run()
        driver.challenge(driver.outsider("challenger"), 0, 5, ROOT)
        self.cases = {}
        self.wrong = {
            **self._wrong(),
            "another case": driver.at.audit(0, 5, ROOT),
            "copy of the case": self._copy(driver.at.audit(0, 5, ROOT)),
        }

    def drive(self, name: str) -> Case:
        return self.cases[name] if name in self.cases else getattr(self, f"_until_{name}")()

    def _until_open_case(self) -> Case:
        who = self.driver.outsider("challenger")
        return Case(self.driver.challenge_instruction(who, 0, 3, PAYLOAD), who)

    def _opened(self) -> AuditView:
        self.driver.challenge(self.driver.outsider("challenger"), 0, 3, PAYLOAD)
        return self.driver.case(0, 3, PAYLOAD)

    def _until_draw_jury(self) -> Case:
        case = self._opened()
        self.driver.seat_jury(self.driver.case(0, 5, ROOT))
        return Case(self.driver.draw_instruction(case), self.driver.cranker)

    def _until_vote_case(self) -> Case:
        case = self.driver.seat_jury(self._opened())
        index = case.jurors[0].index
        commit, _ = self.driver.vote_instructions(case, index, MISMATCH)
        return Case(commit, self.driver.sessions[index])

    def _until_reveal(self) -> Case:
        case = self.driver.seat_jury(self._opened())
        index = case.jurors[0].index
        commit, reveal = self.driver.vote_instructions(case, index, MISMATCH)
        self.driver.send(commit, self.driver.sessions[index])
        self.driver.run_to(case.stage_end)
        return Case(reveal, self.driver.sessions[index])

    def _until_settle_case(self) -> Case:
        case = self.driver.vote_all(self._opened(), MISMATCH)
        return Case(self.driver.settle_case_instruction(case), self.driver.cranker)

    def _convicted(self) -> AuditView:
        settle = self._until_settle_case()
        self.driver.send(settle.instruction, settle.signer)
        return self.driver.case(0, 3, PAYLOAD)

    def _until_appeal_case(self) -> Case:
        owner = self.driver.owners[3]
        return Case(make.appeal_case(self.driver.at, owner.pubkey(), self._convicted()), owner)

    def _until_reverse_case(self) -> Case:
        case = self._convicted()
        self.driver.appeal(case)
        self.driver.run_to(case.appeal_end)
        return Case(self.driver.reverse_instruction(case), self.driver.outsider("council"))

    def _until_release_escrow(self) -> Case:
        case = self._convicted()
        self.driver.run_to(max(case.stage_end, case.case_end))
        return Case(self.driver.release_instruction(case), self.driver.cranker)


@pytest.mark.parametrize("name", CASES)
def test_no_wrong_account_is_accepted(name: str) -> None:
    check(TwoRunsWithCases(), name)


def test_no_wrong_account_is_accepted_where_a_vote_is_shown() -> None:
    """`vote_case` hides a vote and shows it: by now the case is in its second window."""
    runs = TwoRunsWithCases()
    runs.cases["vote_case"] = runs.drive("reveal")
    check(runs, "vote_case")
