"""Refusals of a case: bonds, windows, votes, accounts of somebody else."""

from dataclasses import replace

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from support.program.audits import MISMATCH, OK
from support.program.cases import CLEARED, PAYLOAD, POSSESSION, ROOT, WORK, CaseDriver
from support.program.rounds import key

from troth_attestation.cases import NO_SKETCH
from troth_coordinator.chain import case_instructions as make
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.audit_instructions import Reveal
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, AuditView
from troth_coordinator.rules.ids import Lamports

OTHER_TYPE = "Custom(3002)"
"""Anchor's AccountDiscriminatorMismatch: an account of the program, but of another type."""


@pytest.fixture
def driver() -> CaseDriver:
    return CaseDriver.started()


@pytest.fixture
def seated(driver: CaseDriver) -> AuditView:
    """A case against 3 over its payload whose committee is drawn."""
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    return driver.seat_jury(driver.case(0, 3, PAYLOAD))


def refused(
    driver: CaseDriver, round_: int, target: int, kind: AuditKind, subject: int = 65535
) -> str:
    stranger = driver.outsider("challenger")
    instruction = driver.challenge_instruction(stranger, round_, target, kind, subject)
    return driver.refused(instruction, stranger)


def swapped(name: str, instruction: Instruction, account: str, address: Pubkey) -> Instruction:
    """The instruction with another address in the place of the account of that name."""
    places = [slot.name for slot in program_codec().instructions[name].accounts]
    metas = list(instruction.accounts)
    old = metas[places.index(account)]
    metas[places.index(account)] = AccountMeta(address, old.is_signer, old.is_writable)
    return Instruction(instruction.program_id, instruction.data, metas)


# Opening.


def test_no_case_without_a_bond() -> None:
    driver = CaseDriver.started(bond_lamports=10**8, min_stake_lamports=10**8)
    poor = key("poor")
    driver.chain.airdrop(poor.pubkey(), 10**8)
    instruction = driver.challenge_instruction(poor, 0, 3, PAYLOAD)
    assert driver.refused(instruction, poor) == "InsufficientFunds"


def test_no_case_after_its_window(driver: CaseDriver) -> None:
    driver.run_to(driver.round(0).close_clock + driver.params.case_slots - 1)
    driver.challenge(driver.outsider("challenger"), 0, 2, PAYLOAD)
    driver.chain.advance(1)
    assert refused(driver, 0, 3, PAYLOAD) == "CaseWindowOver"


def test_no_case_on_a_round_that_has_left_the_ring() -> None:
    driver = CaseDriver.started(4, ring=4, keep_rounds=2)
    ends = driver.round(0).close_clock + driver.params.case_slots
    driver.play(3)
    assert driver.clock <= ends, "it is the ring, not the window"
    assert refused(driver, 0, 3, PAYLOAD) == "CaseWindowOver"
    assert refused(driver, driver.run.round, 3, PAYLOAD) == "CaseWithoutSubject"


def test_nobody_accuses_itself(driver: CaseDriver) -> None:
    instruction = driver.challenge_instruction(driver.owners[3], 0, 3, PAYLOAD)
    assert driver.refused(instruction, driver.owners[3]) == "ChallengesItself"


@pytest.mark.parametrize(
    ("target", "kind", "subject"),
    [(0, PAYLOAD, 65535), (0, ROOT, 65535), (1, POSSESSION, 0), (3, POSSESSION, 65535),
     (2, PAYLOAD, 4), (20, POSSESSION, 1)],
)  # fmt: skip
def test_no_case_about_what_did_not_happen(target: int, kind: AuditKind, subject: int) -> None:
    driver = CaseDriver(6)
    driver.start()
    driver.commit_all([1, 2, 3, 4, 5])
    driver.attest_all()
    driver.close()
    assert refused(driver, 0, target, kind, subject) == "CaseWithoutSubject"


def test_an_index_beyond_the_roster_is_refused(driver: CaseDriver) -> None:
    assert refused(driver, 0, 64, ROOT) == "CaseWithoutSubject"
    assert refused(driver, 0, 64, POSSESSION, 1) == "IndexOutOfRange"


def test_an_unknown_kind_is_refused(driver: CaseDriver) -> None:
    stranger = driver.outsider("challenger")
    good = driver.challenge_instruction(stranger, 0, 3, POSSESSION, 1)
    data = bytearray(good.data)
    data[18] = 4
    bad = Instruction(good.program_id, bytes(data), list(good.accounts))
    assert driver.refused(bad, stranger) == "UnknownAuditKind"


def test_a_work_case_needs_an_audit_that_showed_something(driver: CaseDriver) -> None:
    assert refused(driver, 0, 3, WORK) == "NotSampled"
    driver.post(0, 3)
    assert refused(driver, 0, 3, WORK) == "WrongStage"
    driver.open_audit(0, 4)
    driver.run_to(driver.case(0, 4).stage_end)
    driver.settle(0, 4)
    assert driver.case(0, 4).outcome == 4
    assert refused(driver, 0, 4, WORK) == "CaseWithoutSubject"


def test_one_case_per_target_and_kind(driver: CaseDriver) -> None:
    stranger = driver.outsider("challenger")
    driver.judge(0, 3, CLEARED)
    driver.challenge(stranger, 0, 3, WORK)
    assert refused(driver, 0, 3, WORK) == "WrongStage"
    driver.challenge(stranger, 0, 3, PAYLOAD)
    assert refused(driver, 0, 3, PAYLOAD) == "AccountAlreadyExists"


def test_a_case_is_not_tried_twice_within_its_window(driver: CaseDriver) -> None:
    """Closing the account early would let the same fault be slashed again."""
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    case = driver.case(0, 3, PAYLOAD)
    driver.decide(case, OK)
    now = driver.case(0, 3, PAYLOAD)
    assert now.stage_end < now.case_end
    driver.run_to(now.stage_end)
    assert driver.refused(driver.release_instruction(case), driver.cranker) == "WindowOpen"
    driver.release(case)
    assert refused(driver, 0, 3, PAYLOAD) == "CaseWindowOver"


# Votes.


def test_votes_of_strangers_and_with_foreign_keys_are_refused(
    driver: CaseDriver, seated: AuditView
) -> None:
    jurors = [juror.index for juror in seated.jurors]
    commit, _ = driver.vote_instructions(seated, 3, OK)
    assert driver.refused(commit, driver.sessions[3]) == "NotSeated"
    first, second = jurors[:2]
    forged = make.commit_vote(
        driver.at, driver.sessions[second].pubkey(), seated, first, bytes([1]) * 32
    )
    assert driver.refused(forged, driver.sessions[second]) == "WrongSessionKey"


def test_a_vote_counts_once_and_in_its_window(driver: CaseDriver, seated: AuditView) -> None:
    index = seated.jurors[0].index
    session = driver.sessions[index]
    commit, reveal = driver.vote_instructions(seated, index, MISMATCH)
    assert driver.refused(reveal, session) == "WrongStage"
    zero = make.commit_vote(driver.at, session.pubkey(), seated, index, bytes(32))
    assert driver.refused(zero, session) == "CommitmentZero"
    driver.send(commit, session)
    other, _ = driver.vote_instructions(seated, index, OK)
    assert driver.refused(other, session) == "SeatCommitted"
    late = seated.jurors[1].index
    driver.run_to(seated.stage_end)
    commit, unheard = driver.vote_instructions(seated, late, OK)
    assert driver.refused(commit, driver.sessions[late]) == "WrongStage"
    assert driver.refused(unheard, driver.sessions[late]) == "SeatNotCommitted"
    assert driver.refused(driver.settle_case_instruction(seated), driver.cranker) == "WindowOpen"
    driver.send(reveal, session)
    assert driver.refused(reveal, session) == "SeatRevealed"


def test_a_reveal_must_be_what_was_committed_and_in_time(
    driver: CaseDriver, seated: AuditView
) -> None:
    index = seated.jurors[0].index
    session = driver.sessions[index]
    commit, reveal = driver.vote_instructions(seated, index, MISMATCH)
    driver.send(commit, session)
    driver.run_to(seated.stage_end)
    _, changed = driver.vote_instructions(seated, index, OK)
    assert driver.refused(changed, session) == "RevealMismatch"
    unknown = Reveal(7, seated.openings_root, NO_SKETCH, bytes(32))
    bad = make.reveal_vote(driver.at, session.pubkey(), seated, index, unknown)
    assert driver.refused(bad, session) == "UnknownVerdict"
    driver.run_to(seated.stage_end + driver.params.jury_reveal_slots)
    assert driver.refused(reveal, session) == "WindowOver"


def test_a_copied_vote_is_worth_nothing(driver: CaseDriver, seated: AuditView) -> None:
    """The hash names the juror: whoever copies it cannot show it."""
    first, second = (juror.index for juror in seated.jurors[:2])
    commit, _ = driver.vote_instructions(seated, first, OK)
    driver.send(commit, driver.sessions[first])
    copied = driver.case(0, 3, PAYLOAD).jurors[0].commit
    session = driver.sessions[second]
    driver.send(make.commit_vote(driver.at, session.pubkey(), seated, second, copied), session)
    driver.run_to(seated.stage_end)
    _, shown = driver.vote_instructions(seated, second, OK)
    assert driver.refused(shown, session) == "RevealMismatch"


# Stages.


def test_each_step_waits_for_the_one_before(driver: CaseDriver) -> None:
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    case = driver.case(0, 3, PAYLOAD)
    cranker = driver.cranker
    assert driver.refused(driver.settle_case_instruction(case), cranker) == "WrongStage"
    assert driver.refused(driver.release_instruction(case), cranker) == "WrongStage"
    seated = driver.seat_jury(case)
    assert driver.refused(driver.draw_instruction(case), cranker) == "WrongStage"
    assert driver.refused(driver.settle_case_instruction(seated), cranker) == "WindowOpen"
    driver.take_votes(seated, [OK] * len(seated.jurors))
    settle = driver.settle_case_instruction(seated)
    driver.send(settle, cranker)
    assert driver.refused(settle, cranker) == "WrongStage"
    release = driver.release_instruction(case)
    driver.release(case)
    assert driver.refused(release, cranker) == "Custom(3007)"


def test_a_run_closes_only_after_its_audits() -> None:
    driver = CaseDriver.started(4, max_rounds=2, p_new_ppm=0, p_base_ppm=0)
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    driver.play(1)
    driver.cool_down()
    boss = driver.authority
    driver.chain.advance(10_000)
    payer = boss.pubkey()
    close = life.close_run(driver.at, payer, payer, payer, [])
    assert driver.refused(close, boss) == "AuditsOpen"
    case = driver.case(0, 3, PAYLOAD)
    for _ in range(2):
        driver.send(driver.draw_instruction(case), driver.cranker)
        driver.chain.advance(600)
    driver.settle_case(driver.case(0, 3, PAYLOAD))
    driver.release(case)
    assert "LeftoversPaid" in driver.send(close, boss).names()


# Accounts.


def test_money_goes_only_to_the_recorded_accounts(driver: CaseDriver, seated: AuditView) -> None:
    thief = driver.outsider("thief").pubkey()
    driver.take_votes(seated, [MISMATCH] * len(seated.jurors))
    settle = driver.settle_case_instruction(seated)
    wanted = {
        "challenger": "WrongChallenger",
        "incinerator": "WrongIncinerator",
        "vault": "WrongVault",
    }
    for account, error in wanted.items():
        bad = swapped("settle_case", settle, account, thief)
        assert driver.refused(bad, driver.cranker) == error
    unpaid = make.settle_case(driver.at, driver.cranker.pubkey(), replace(seated, bond=Lamports(0)))
    assert driver.refused(unpaid, driver.cranker) == "AccountMissing"
    driver.send(settle, driver.cranker)
    now = driver.case(0, 3, PAYLOAD)
    driver.run_to(max(now.stage_end, now.case_end))
    release = driver.release_instruction(seated)
    for account, error in {**wanted, "payer": "WrongPayer"}.items():
        bad = swapped("release_escrow", release, account, thief)
        assert driver.refused(bad, driver.cranker) == error
    vault = swapped("release_escrow", release, "payer", driver.at.vault)
    assert driver.refused(vault, driver.cranker) == "WrongPayer"


def test_one_audit_does_not_stand_for_another(driver: CaseDriver) -> None:
    stranger = driver.outsider("challenger")
    driver.judge(0, 3, CLEARED)
    driver.judge(0, 4, CLEARED)
    good = driver.challenge_instruction(stranger, 0, 3, WORK)
    borrowed = "AccountBorrowFailed"
    """The instruction holds this account already, in its own place."""
    for wrong, error in [
        (driver.at.audit(0, 4), "WrongAddress"),
        (driver.at.run, borrowed),
        (driver.at.roster, borrowed),
        (driver.at.round(0), borrowed),
        (driver.at.round(1), "WrongAddress"),
        (driver.at.participant(driver.owners[3].pubkey()), "WrongAddress"),
        (driver.at.audit(0, 5), "NotSampled"),
    ]:
        bad = swapped("open_case", good, "audit", wrong)
        assert driver.refused(bad, stranger) == error
    assert driver.run.total_bonds == 0
    elsewhere = swapped("open_case", good, "round", driver.at.round(1))
    assert driver.refused(elsewhere, stranger) == "WrongRoundAccount"


def test_accounts_of_other_types_are_refused_everywhere(
    driver: CaseDriver, seated: AuditView
) -> None:
    """Every account that the program owns, in the place of every other one."""
    session = driver.sessions[seated.jurors[0].index]
    commit, _ = driver.vote_instructions(seated, seated.jurors[0].index, OK)
    instructions = [
        ("draw_jury", driver.draw_instruction(seated), driver.cranker),
        ("vote_case", commit, session),
        ("settle_case", driver.settle_case_instruction(seated), driver.cranker),
        ("appeal_case", make.appeal_case(driver.at, driver.owners[3].pubkey(), seated),
         driver.owners[3]),
        ("reverse_case", driver.reverse_instruction(seated), driver.outsider("council")),
        ("release_escrow", driver.release_instruction(seated), driver.cranker),
    ]  # fmt: skip
    owned = {
        "run": driver.at.run, "roster": driver.at.roster, "round": driver.at.round(0),
        "audit": driver.at.audit(0, 3, PAYLOAD), "participant": driver.at.participant(
            driver.owners[3].pubkey()),
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
        assert driver.refused(bad, signer) == OTHER_TYPE, (name, place_name, kind)
    assert driver.case(0, 3, PAYLOAD).stage == AuditStage.CASE_COMMIT


def test_votes_of_a_root_only_step_are_exempt_for_its_number_is_that_of_a_real_round() -> None:
    driver = CaseDriver(6, max_rounds=1)
    driver.start()
    driver.play(1)
    driver.cool_down()
    stranger = driver.outsider("challenger")
    claim = driver.challenge_instruction(stranger, 1, 3, ROOT)
    assert driver.refused(claim, stranger) == "CaseWithoutSubject"
    driver.send(driver.challenge_instruction(stranger, 0, 3, ROOT), stranger)
