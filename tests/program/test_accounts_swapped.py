"""Every account of every instruction, swapped for one of another type, owner or run.

The attacker passes an account that looks right: another run's roster, a round as a roster, a
copy under another program, an account that does not exist. No instruction may accept one, and
none may end with anything but a refusal.
"""

import pytest
from support.program import idl
from support.program.swapped import AUDITS, CASES, TwoRuns, check


@pytest.fixture(scope="module")
def runs() -> TwoRuns:
    return TwoRuns()


SHARED = [
    *("fund_run", "pause_run", "update_params", "join_run", "top_up_stake", "set_session_key"),
    "set_endpoint",
    *("leave_run", "announce_manifest", "commit_payload", "freeze_seed", "report_missing"),
    "post_ready",
]
DRIVEN = [
    *("resume_run", "withdraw_stake", "claim_reward", "activate", "retarget_seed"),
    *("advance_phase", "attest", "close_void", "close_round"),
]
# Tested in test_create.py, test_join.py and test_close_run.py: they take accounts that do not exist
# yet, or lists.
ELSEWHERE = ["create_run", "init_roster", "init_round", "admit", "close_run"]


def test_every_instruction_has_its_place():
    assert sorted(SHARED + DRIVEN + AUDITS + CASES + ELSEWHERE) == sorted(idl.INSTRUCTIONS)


@pytest.mark.parametrize("name", SHARED)
def test_no_wrong_account_is_accepted(runs, name):
    check(runs, name)


@pytest.mark.parametrize("name", DRIVEN)
def test_no_wrong_account_is_accepted_later(name):
    check(TwoRuns(), name)
