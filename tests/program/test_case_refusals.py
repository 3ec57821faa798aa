"""What a case refuses: bonds, windows, votes, accounts of somebody else."""

from dataclasses import replace

import pytest
from program.audits import MISMATCH, OK
from program.cases import CLEARED, PAYLOAD, POSSESSION, ROOT, WORK, Trial
from program.rounds import key
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain import case_instructions as make
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, AuditView
from troth_coordinator.rules.ids import Lamports

OTHER_TYPE = "Custom(3002)"
"""Anchor's AccountDiscriminatorMismatch: an account of the program, but of another type."""


@pytest.fixture
def trial() -> Trial:
    return Trial.in_session()


@pytest.fixture
def seated(trial: Trial) -> AuditView:
    """A case against 3 over its payload whose committee is drawn."""
    trial.challenge(trial.outsider("challenger"), 0, 3, PAYLOAD)
    return trial.seat_jury(trial.case(0, 3, PAYLOAD))


def refused(trial: Trial, round_: int, target: int, kind: AuditKind, subject: int = 65535) -> str:
    stranger = trial.outsider("challenger")
    instruction = trial.challenge_instruction(stranger, round_, target, kind, subject)
    return trial.refused(instruction, stranger)


def swapped(name: str, instruction: Instruction, account: str, address: Pubkey) -> Instruction:
    """The instruction with another address in the place of the account of that name."""
    places = [slot.name for slot in program_codec().instructions[name].accounts]
    metas = list(instruction.accounts)
    old = metas[places.index(account)]
    metas[places.index(account)] = AccountMeta(address, old.is_signer, old.is_writable)
    return Instruction(instruction.program_id, instruction.data, metas)


# Opening.


def test_no_case_without_a_bond() -> None:
    trial = Trial.in_session(bond_lamports=10**8)
    poor = key("poor")
    trial.chain.airdrop(poor.pubkey(), 10**8)
    instruction = trial.challenge_instruction(poor, 0, 3, PAYLOAD)
    assert trial.refused(instruction, poor) == "InsufficientFunds"


def test_no_case_after_its_window(trial: Trial) -> None:
    trial.run_to(trial.round(0).close_clock + trial.params.case_slots - 1)
    trial.challenge(trial.outsider("challenger"), 0, 2, PAYLOAD)
    trial.chain.advance(1)
    assert refused(trial, 0, 3, PAYLOAD) == "CaseWindowOver"


def test_no_case_on_a_round_that_has_left_the_ring() -> None:
    trial = Trial.in_session(4, ring=4, keep_rounds=2)
    ends = trial.round(0).close_clock + trial.params.case_slots
    trial.play(3)
    assert trial.clock <= ends, "it is the ring, not the window"
    assert refused(trial, 0, 3, PAYLOAD) == "CaseWindowOver"
    assert refused(trial, trial.run.round, 3, PAYLOAD) == "CaseWithoutSubject"


def test_nobody_accuses_itself(trial: Trial) -> None:
    instruction = trial.challenge_instruction(trial.owners[3], 0, 3, PAYLOAD)
    assert trial.refused(instruction, trial.owners[3]) == "ChallengesItself"


@pytest.mark.parametrize(
    ("target", "kind", "subject"),
    [(0, PAYLOAD, 65535), (0, ROOT, 65535), (1, POSSESSION, 0), (3, POSSESSION, 65535),
     (2, PAYLOAD, 4), (20, POSSESSION, 1)],
)  # fmt: skip
def test_no_case_about_what_did_not_happen(target: int, kind: AuditKind, subject: int) -> None:
    trial = Trial(6)
    trial.start()
    trial.commit_all([1, 2, 3, 4, 5])
    trial.attest_all()
    trial.close()
    assert refused(trial, 0, target, kind, subject) == "CaseWithoutSubject"


def test_an_index_beyond_the_roster_is_refused(trial: Trial) -> None:
    assert refused(trial, 0, 64, ROOT) == "CaseWithoutSubject"
    assert refused(trial, 0, 64, POSSESSION, 1) == "IndexOutOfRange"


def test_an_unknown_kind_is_refused(trial: Trial) -> None:
    stranger = trial.outsider("challenger")
    good = trial.challenge_instruction(stranger, 0, 3, POSSESSION, 1)
    data = bytearray(good.data)
    data[18] = 4
    bad = Instruction(good.program_id, bytes(data), list(good.accounts))
    assert trial.refused(bad, stranger) == "UnknownAuditKind"


def test_a_work_case_needs_an_audit_that_showed_something(trial: Trial) -> None:
    assert refused(trial, 0, 3, WORK) == "NotSampled"
    trial.post(0, 3)
    assert refused(trial, 0, 3, WORK) == "WrongStage"
    trial.open_audit(0, 4)
    trial.run_to(trial.case(0, 4).stage_end)
    trial.settle(0, 4)
    assert trial.case(0, 4).outcome == 4
    assert refused(trial, 0, 4, WORK) == "CaseWithoutSubject"


def test_one_case_per_target_and_kind(trial: Trial) -> None:
    stranger = trial.outsider("challenger")
    trial.judge(0, 3, CLEARED)
    trial.challenge(stranger, 0, 3, WORK)
    assert refused(trial, 0, 3, WORK) == "WrongStage"
    trial.challenge(stranger, 0, 3, PAYLOAD)
    assert refused(trial, 0, 3, PAYLOAD) == "AccountAlreadyExists"


def test_a_case_is_not_tried_twice_within_its_window(trial: Trial) -> None:
    """Closing the account early would let the same fault be slashed again."""
    trial.challenge(trial.outsider("challenger"), 0, 3, PAYLOAD)
    case = trial.case(0, 3, PAYLOAD)
    trial.decide(case, OK)
    now = trial.case(0, 3, PAYLOAD)
    assert now.stage_end < now.case_end
    trial.run_to(now.stage_end)
    assert trial.refused(trial.release_instruction(case), trial.cranker) == "WindowOpen"
    trial.release(case)
    assert refused(trial, 0, 3, PAYLOAD) == "CaseWindowOver"


# Votes.


def test_votes_of_strangers_and_with_foreign_keys_are_refused(
    trial: Trial, seated: AuditView
) -> None:
    jurors = [juror.index for juror in seated.jurors]
    commit, _ = trial.vote_instructions(seated, 3, OK)
    assert trial.refused(commit, trial.sessions[3]) == "NotSeated"
    first, second = jurors[:2]
    forged = make.commit_vote(
        trial.at, trial.sessions[second].pubkey(), seated, first, bytes([1]) * 32
    )
    assert trial.refused(forged, trial.sessions[second]) == "WrongSessionKey"


def test_a_vote_counts_once_and_in_its_window(trial: Trial, seated: AuditView) -> None:
    index = seated.jurors[0].index
    session = trial.sessions[index]
    commit, reveal = trial.vote_instructions(seated, index, MISMATCH)
    assert trial.refused(reveal, session) == "WrongStage"
    zero = make.commit_vote(trial.at, session.pubkey(), seated, index, bytes(32))
    assert trial.refused(zero, session) == "CommitmentZero"
    trial.send(commit, session)
    other, _ = trial.vote_instructions(seated, index, OK)
    assert trial.refused(other, session) == "SeatCommitted"
    late = seated.jurors[1].index
    trial.run_to(seated.stage_end)
    commit, unheard = trial.vote_instructions(seated, late, OK)
    assert trial.refused(commit, trial.sessions[late]) == "WrongStage"
    assert trial.refused(unheard, trial.sessions[late]) == "SeatNotCommitted"
    assert trial.refused(trial.settle_case_instruction(seated), trial.cranker) == "WindowOpen"
    trial.send(reveal, session)
    assert trial.refused(reveal, session) == "SeatRevealed"


def test_a_reveal_must_be_what_was_committed_and_in_time(trial: Trial, seated: AuditView) -> None:
    index = seated.jurors[0].index
    session = trial.sessions[index]
    commit, reveal = trial.vote_instructions(seated, index, MISMATCH)
    trial.send(commit, session)
    trial.run_to(seated.stage_end)
    _, changed = trial.vote_instructions(seated, index, OK)
    assert trial.refused(changed, session) == "RevealMismatch"
    unknown = (7, seated.openings_root, bytes(32))
    bad = make.reveal_vote(trial.at, session.pubkey(), seated, index, unknown)
    assert trial.refused(bad, session) == "UnknownVerdict"
    trial.run_to(seated.stage_end + trial.params.committee_reveal_slots)
    assert trial.refused(reveal, session) == "WindowOver"


def test_a_copied_vote_is_worth_nothing(trial: Trial, seated: AuditView) -> None:
    """The hash names the juror: whoever copies it cannot show it."""
    first, second = (juror.index for juror in seated.jurors[:2])
    commit, _ = trial.vote_instructions(seated, first, OK)
    trial.send(commit, trial.sessions[first])
    copied = trial.case(0, 3, PAYLOAD).jurors[0].commit
    session = trial.sessions[second]
    trial.send(make.commit_vote(trial.at, session.pubkey(), seated, second, copied), session)
    trial.run_to(seated.stage_end)
    _, shown = trial.vote_instructions(seated, second, OK)
    assert trial.refused(shown, session) == "RevealMismatch"


# Stages.


def test_each_step_waits_for_the_one_before(trial: Trial) -> None:
    trial.challenge(trial.outsider("challenger"), 0, 3, PAYLOAD)
    case = trial.case(0, 3, PAYLOAD)
    cranker = trial.cranker
    assert trial.refused(trial.settle_case_instruction(case), cranker) == "WrongStage"
    assert trial.refused(trial.release_instruction(case), cranker) == "WrongStage"
    seated = trial.seat_jury(case)
    assert trial.refused(trial.draw_instruction(case), cranker) == "WrongStage"
    assert trial.refused(trial.settle_case_instruction(seated), cranker) == "WindowOpen"
    trial.poll(seated, [OK] * len(seated.jurors))
    settle = trial.settle_case_instruction(seated)
    trial.send(settle, cranker)
    assert trial.refused(settle, cranker) == "WrongStage"
    release = trial.release_instruction(case)
    trial.release(case)
    assert trial.refused(release, cranker) == "Custom(3007)"


def test_a_run_closes_only_after_its_audits() -> None:
    trial = Trial.in_session(4, max_rounds=2, p_new_ppm=0, p_base_ppm=0)
    trial.challenge(trial.outsider("challenger"), 0, 3, PAYLOAD)
    trial.play(1)
    trial.cool_down()
    boss = trial.authority
    trial.chain.advance(10_000)
    close = life.close_run(trial.at, boss.pubkey(), boss.pubkey(), [])
    assert trial.refused(close, boss) == "AuditsOpen"
    case = trial.case(0, 3, PAYLOAD)
    for _ in range(2):
        trial.send(trial.draw_instruction(case), trial.cranker)
        trial.chain.advance(600)
    trial.settle_case(trial.case(0, 3, PAYLOAD))
    trial.release(case)
    assert "LeftoversPaid" in trial.send(close, boss).names()


# Accounts.


def test_money_goes_only_to_the_recorded_accounts(trial: Trial, seated: AuditView) -> None:
    thief = trial.outsider("thief").pubkey()
    trial.poll(seated, [MISMATCH] * len(seated.jurors))
    settle = trial.settle_case_instruction(seated)
    wanted = {
        "challenger": "WrongChallenger",
        "incinerator": "WrongIncinerator",
        "vault": "WrongVault",
    }
    for account, error in wanted.items():
        bad = swapped("settle_case", settle, account, thief)
        assert trial.refused(bad, trial.cranker) == error
    unpaid = make.settle_case(trial.at, trial.cranker.pubkey(), replace(seated, bond=Lamports(0)))
    assert trial.refused(unpaid, trial.cranker) == "AccountMissing"
    trial.send(settle, trial.cranker)
    now = trial.case(0, 3, PAYLOAD)
    trial.run_to(max(now.stage_end, now.case_end))
    release = trial.release_instruction(seated)
    for account, error in {**wanted, "payer": "WrongPayer"}.items():
        bad = swapped("release_escrow", release, account, thief)
        assert trial.refused(bad, trial.cranker) == error
    vault = swapped("release_escrow", release, "payer", trial.at.vault)
    assert trial.refused(vault, trial.cranker) == "WrongPayer"


def test_one_audit_does_not_stand_for_another(trial: Trial) -> None:
    stranger = trial.outsider("challenger")
    trial.judge(0, 3, CLEARED)
    trial.judge(0, 4, CLEARED)
    good = trial.challenge_instruction(stranger, 0, 3, WORK)
    borrowed = "AccountBorrowFailed"
    """The instruction holds this account already, in its own place."""
    for wrong, error in [
        (trial.at.audit(0, 4), "WrongAddress"),
        (trial.at.run, borrowed),
        (trial.at.roster, borrowed),
        (trial.at.round(0), borrowed),
        (trial.at.round(1), "WrongAddress"),
        (trial.at.participant(trial.owners[3].pubkey()), "WrongAddress"),
        (trial.at.audit(0, 5), "NotSampled"),
    ]:
        bad = swapped("open_case", good, "audit", wrong)
        assert trial.refused(bad, stranger) == error
    assert trial.run.total_bonds == 0
    elsewhere = swapped("open_case", good, "round", trial.at.round(1))
    assert trial.refused(elsewhere, stranger) == "WrongRoundAccount"


def test_accounts_of_other_types_are_refused_everywhere(trial: Trial, seated: AuditView) -> None:
    """Every account that the program owns, in the place of every other one."""
    session = trial.sessions[seated.jurors[0].index]
    commit, _ = trial.vote_instructions(seated, seated.jurors[0].index, OK)
    instructions = [
        ("draw_committee", trial.draw_instruction(seated), trial.cranker),
        ("vote_case", commit, session),
        ("settle_case", trial.settle_case_instruction(seated), trial.cranker),
        ("appeal_case", make.appeal_case(trial.at, trial.owners[3].pubkey(), seated),
         trial.owners[3]),
        ("resolve_appeal", trial.reverse_instruction(seated), trial.outsider("council")),
        ("release_escrow", trial.release_instruction(seated), trial.cranker),
    ]  # fmt: skip
    owned = {
        "run": trial.at.run, "roster": trial.at.roster, "round": trial.at.round(0),
        "audit": trial.at.audit(0, 3, PAYLOAD), "participant": trial.at.participant(
            trial.owners[3].pubkey()),
    }  # fmt: skip
    swaps = [
        (name, instruction, signer, place.name, kind)
        for name, instruction, signer in instructions
        for place in program_codec().instructions[name].accounts
        if place.name in owned and place.name != "participant"
        for kind in owned
        if kind != place.name
    ]
    for name, instruction, signer, place_name, kind in swaps:
        bad = swapped(name, instruction, place_name, owned[kind])
        assert trial.refused(bad, signer) == OTHER_TYPE, (name, place_name, kind)
    assert trial.case(0, 3, PAYLOAD).stage == AuditStage.CASE_COMMIT
