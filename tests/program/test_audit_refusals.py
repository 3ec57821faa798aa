"""Refusals of an audit: at the wrong time, by the wrong key, twice, about somebody else."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from solders.instruction import AccountMeta, Instruction
from support.fields import assert_fields
from support.program.audits import MISMATCH, OK, AuditDriver
from support.program.rounds import key

from troth_attestation.quorum import AuditOutcome
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.rules.audit_view import AuditStage, AuditView


@pytest.fixture
def driver() -> AuditDriver:
    return AuditDriver.started()


@pytest.fixture
def waiting(driver: AuditDriver) -> AuditDriver:
    """Openings of target 0 are posted: the seats may commit."""
    driver.post(0, 0)
    return driver


def commit_of(driver: AuditDriver, place: int) -> tuple[int, Instruction]:
    audit = driver.of(0, 0)
    index = audit.seats[place].index
    return index, driver.commit_instructions(audit, index, OK)[0]


def reveal_of(driver: AuditDriver, place: int) -> tuple[int, Instruction]:
    audit = driver.of(0, 0)
    index = audit.seats[place].index
    return index, driver.commit_instructions(audit, index, OK)[1]


def swapped(instruction: Instruction, place: int, account: AccountMeta) -> Instruction:
    accounts = list(instruction.accounts)
    accounts[place] = account
    return Instruction(instruction.program_id, instruction.data, accounts)


# Opening.


def test_no_audit_before_the_seed_is_frozen() -> None:
    driver = AuditDriver(6)
    driver.start()
    assert driver.refused(driver.open_instruction(0, 0), driver.cranker) == "SeedNotFrozen"
    driver.play(1)
    assert driver.refused(driver.open_instruction(0, 0), driver.cranker) == "SeedNotFrozen"


def test_no_audit_of_a_payload_that_is_not_included() -> None:
    driver = AuditDriver(6)
    driver.start()
    driver.commit_all([0, 1, 2, 3, 4])
    driver.attest_all()
    driver.close()
    driver.draw(0)
    assert driver.refused(driver.open_instruction(0, 5), driver.cranker) == "NotIncluded"
    assert driver.refused(driver.open_instruction(0, 63), driver.cranker) == "NotIncluded"
    assert driver.refused(driver.open_instruction(0, 64), driver.cranker) == "NotIncluded"


def test_no_audit_with_fewer_than_three_witnesses() -> None:
    """Four trainers and two witnesses: an event says that nobody is audited."""
    driver = AuditDriver(6, roles=[1, 1, 1, 1, 2, 3], max_witness_only=2, seat_load=15)
    driver.start()
    driver.play(1)
    frozen = driver.draw(0).event("SeedFrozen")
    assert_fields(frozen, sampled=0b101111, unseated=0b101111)
    assert driver.refused(driver.open_instruction(0, 0), driver.cranker) == "TooFewWitnesses"
    assert driver.run.sampled == 0


def test_one_of_exactly_three_witnesses_has_no_audit_of_its_own() -> None:
    driver = AuditDriver(6, roles=[1, 1, 1, 3, 3, 3], seat_load=15)
    driver.start()
    driver.play(1)
    frozen = driver.draw(0).event("SeedFrozen")
    assert_fields(frozen, sampled=0b111111, unseated=0b111000)
    assert driver.refused(driver.open_instruction(0, 3), driver.cranker) == "TooFewWitnesses"
    driver.open_audit(0, 0)


def test_openings_end_with_their_window(driver: AuditDriver) -> None:
    end = driver.round(0).freeze_clock + driver.params.openings_slots
    driver.chain.advance(end - driver.clock)
    driver.open_audit(0, 0)
    driver.chain.advance()
    assert driver.refused(driver.open_instruction(0, 1), driver.cranker) == "WindowOver"
    assert driver.refused(driver.post_instruction(0, 0), driver.sessions[0]) == "WindowOver"
    assert driver.refused(driver.post_instruction(0, 1), driver.sessions[1]) == "WindowOver"


def test_an_audit_is_opened_once(driver: AuditDriver) -> None:
    driver.open_audit(0, 0)
    assert driver.refused(driver.open_instruction(0, 0), driver.cranker) == "AlreadyAudited"


def test_lamports_sent_in_advance_do_not_block_an_audit(driver: AuditDriver) -> None:
    driver.chain.airdrop(driver.at.audit(0, 0), 1_000_000)
    driver.open_audit(0, 0)
    assert driver.of(0, 0).stage == AuditStage.OPENINGS


def test_the_ring_account_must_hold_the_round(driver: AuditDriver) -> None:
    open_now, lap_later = driver.open_instruction(1, 0), driver.open_instruction(16, 0)
    assert driver.refused(open_now, driver.cranker) == "SeedNotFrozen"
    assert driver.refused(lap_later, driver.cranker) == "WrongRoundAccount"
    wrong = driver.at.round(1)
    instruction = swapped(driver.open_instruction(0, 0), 3, AccountMeta(wrong, False, True))
    assert driver.refused(instruction, driver.cranker) == "WrongRoundAccount"


def test_the_audit_account_must_be_that_of_the_target(driver: AuditDriver) -> None:
    other = AccountMeta(driver.at.audit(0, 1), False, True)
    instruction = swapped(driver.open_instruction(0, 0), 4, other)
    assert driver.refused(instruction, driver.cranker) == "WrongAddress"
    driver.open_audit(0, 1)
    assert driver.refused(instruction, driver.cranker) == "WrongAddress"
    posting = swapped(driver.post_instruction(0, 0), 5, other)
    assert driver.refused(posting, driver.sessions[0]) == "WrongAddress"


# Openings.


def test_only_the_target_posts_its_openings_and_once(driver: AuditDriver) -> None:
    posting = driver.post_instruction(0, 0)
    stranger = swapped(posting, 0, AccountMeta(driver.sessions[1].pubkey(), True, False))
    refused = driver.refused(stranger, driver.sessions[0], driver.sessions[1])
    assert refused == "WrongSessionKey"
    zeros = driver.post_instruction(0, 0, bytes(31) + b"\1")
    data = zeros.data[:-1] + b"\0"
    empty = Instruction(zeros.program_id, data, zeros.accounts)
    assert driver.refused(empty, driver.sessions[0]) == "OpeningsRootZero"
    driver.post(0, 0)
    again = driver.post_instruction(0, 0, b"\1" * 32)
    assert driver.refused(again, driver.sessions[0]) == "OpeningsPosted"


def test_openings_of_another_round_find_no_audit(driver: AuditDriver) -> None:
    driver.open_audit(0, 0)
    assert driver.refused(driver.post_instruction(1, 0), driver.sessions[0]) == "SeedNotFrozen"
    other = AccountMeta(driver.at.audit(0, 0), False, True)
    posting = swapped(driver.post_instruction(1, 0), 5, other)
    assert driver.refused(posting, driver.sessions[0]) == "WrongAddress"


# Verdicts.


def test_a_verdict_needs_a_seat(waiting: AuditDriver) -> None:
    audit = waiting.of(0, 0)
    (outside,) = set(range(1, 6)) - {seat.index for seat in audit.judging} - {audit.seats[4].index}
    for index in (0, outside, audit.seats[4].index):
        commit, _ = waiting.commit_instructions(audit, index, OK)
        assert waiting.refused(commit, waiting.sessions[index]) == "NotSeated"


def test_a_verdict_needs_the_session_key_of_its_seat(waiting: AuditDriver) -> None:
    index, commit = commit_of(waiting, 0)
    other = waiting.sessions[(index + 1) % 6]
    signed = swapped(commit, 0, AccountMeta(other.pubkey(), True, False))
    assert waiting.refused(signed, other) == "WrongSessionKey"


def test_no_verdict_before_the_openings(driver: AuditDriver) -> None:
    driver.open_audit(0, 0)
    index, commit = commit_of(driver, 0)
    assert driver.refused(commit, driver.sessions[index]) == "WrongStage"


def test_no_commit_after_its_window_and_no_reveal_before_or_after_its_own(
    waiting: AuditDriver,
) -> None:
    index, commit = commit_of(waiting, 0)
    _, reveal = reveal_of(waiting, 0)
    waiting.send(commit, waiting.sessions[index])
    assert waiting.refused(reveal, waiting.sessions[index]) == "WrongStage"
    end = waiting.of(0, 0).stage_end
    waiting.chain.advance(end - waiting.clock)
    late, late_commit = commit_of(waiting, 1)
    waiting.send(late_commit, waiting.sessions[late])
    waiting.chain.advance()
    later, too_late = commit_of(waiting, 2)
    assert waiting.refused(too_late, waiting.sessions[later]) == "WrongStage"
    waiting.send(reveal, waiting.sessions[index])
    waiting.run_to(end + waiting.params.verdict_reveal_slots)
    _, second = reveal_of(waiting, 1)
    assert waiting.refused(second, waiting.sessions[late]) == "WindowOver"


def test_commits_and_reveals_count_once(waiting: AuditDriver) -> None:
    index, commit = commit_of(waiting, 0)
    audit = waiting.of(0, 0)
    waiting.send(commit, waiting.sessions[index])
    other, _ = waiting.commit_instructions(audit, index, MISMATCH)
    assert waiting.refused(other, waiting.sessions[index]) == "SeatCommitted"
    zero = Instruction(commit.program_id, commit.data[:-32] + bytes(32), commit.accounts)
    assert waiting.refused(zero, waiting.sessions[index]) == "CommitmentZero"
    waiting.run_to(audit.stage_end)
    _, reveal = reveal_of(waiting, 0)
    silent, hidden = reveal_of(waiting, 1)
    assert waiting.refused(hidden, waiting.sessions[silent]) == "SeatNotCommitted"
    waiting.send(reveal, waiting.sessions[index])
    assert waiting.refused(reveal, waiting.sessions[index]) == "SeatRevealed"


CHANGES: dict[str, Callable[[make.Reveal], make.Reveal]] = {
    "salt": lambda shown: replace(shown, salt=b"\1" * 32),
    "verdict": lambda shown: replace(shown, verdict=MISMATCH),
    "evidence": lambda shown: replace(shown, evidence=b"\1" * 32),
    "sketch": lambda shown: replace(shown, sketch=(1, *shown.sketch[1:])),
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_reveal_is_what_was_committed(waiting: AuditDriver, field: str) -> None:
    audit = waiting.of(0, 0)
    index, commit = commit_of(waiting, 0)
    waiting.send(commit, waiting.sessions[index])
    waiting.run_to(audit.stage_end)
    shown, _ = waiting.statement(audit, index, OK)
    session = waiting.sessions[index]
    changed = CHANGES[field](shown)
    reveal = make.reveal_verdict(waiting.at, session.pubkey(), audit, index, changed)
    assert waiting.refused(reveal, session) == "RevealMismatch"


def test_a_seat_cannot_show_what_another_committed(waiting: AuditDriver) -> None:
    """A hash names its witness: whoever copies it has nothing to reveal."""
    audit = waiting.of(0, 0)
    first, copier = audit.seats[0].index, audit.seats[1].index
    _, hashed = waiting.statement(audit, first, OK)
    for index in (first, copier):
        session = waiting.sessions[index]
        commit = make.commit_verdict(waiting.at, session.pubkey(), audit, index, hashed)
        waiting.send(commit, session)
    waiting.run_to(audit.stage_end)
    session = waiting.sessions[copier]
    shown, _ = waiting.statement(audit, first, OK)
    reveal = make.reveal_verdict(waiting.at, session.pubkey(), audit, copier, shown)
    assert waiting.refused(reveal, session) == "RevealMismatch"


@pytest.mark.parametrize("verdict", [0, 5, 255])
def test_there_are_four_verdicts(waiting: AuditDriver, verdict: int) -> None:
    audit = waiting.of(0, 0)
    index = audit.seats[0].index
    session = waiting.sessions[index]
    shown = replace(waiting.statement(audit, index, OK)[0], verdict=verdict)
    reveal = make.reveal_verdict(waiting.at, session.pubkey(), audit, index, shown)
    assert waiting.refused(reveal, session) == "UnknownVerdict"


# Extension and end.


def crank(driver: AuditDriver, audit: AuditView) -> dict[str, str]:
    """How the program refuses to extend an audit, and to settle it."""
    extend = make.extend_audit(driver.at, driver.cranker.pubkey(), audit)
    settle = make.settle_audit(driver.at, driver.cranker.pubkey(), audit)
    return {
        "extend": driver.refused(extend, driver.cranker),
        "settle": driver.refused(settle, driver.cranker),
    }


def test_nothing_ends_before_its_time(driver: AuditDriver) -> None:
    driver.open_audit(0, 0)
    assert crank(driver, driver.of(0, 0)) == {"extend": "WrongStage", "settle": "WindowOpen"}
    driver.post(0, 0)
    assert crank(driver, driver.of(0, 0)) == {"extend": "WindowOpen", "settle": "WindowOpen"}
    driver.take_verdicts(0, 0, [OK, OK, OK])
    extend = make.extend_audit(driver.at, driver.cranker.pubkey(), driver.of(0, 0))
    assert driver.refused(extend, driver.cranker) == "ExtensionNotDue"
    driver.settle(0, 0)
    assert crank(driver, driver.of(0, 0)) == {"extend": "WrongStage", "settle": "WrongStage"}


def test_the_first_seats_are_done_once_others_are_seated(driver: AuditDriver) -> None:
    driver.post(0, 0)
    driver.take_verdicts(0, 0, [OK, None, OK])
    driver.extend(0, 0)
    audit = driver.of(0, 0)
    late = audit.seats[1].index
    commit, _ = driver.commit_instructions(audit, late, OK)
    assert driver.refused(commit, driver.sessions[late]) == "WindowOver"
    extend = make.extend_audit(driver.at, driver.cranker.pubkey(), audit)
    assert driver.refused(extend, driver.cranker) == "WindowOpen"
    driver.take_verdicts(0, 0, [OK, MISMATCH])
    assert driver.refused(extend, driver.cranker) == "ExtensionNotDue"
    assert driver.settle(0, 0).event("AuditSettled").outcome == AuditOutcome.CLEARED


def test_accounts_of_another_run_and_doubles_are_refused(driver: AuditDriver) -> None:
    driver.judge(0, 1, [OK, OK, OK])
    driver.post(0, 0)
    driver.take_verdicts(0, 0, [OK, OK, OK])
    settle = driver.settle_instruction(0, 0)
    names = ["cranker", "run", "roster", "round", "audit", "vault", "incinerator"]
    for name, account, expected in [
        ("incinerator", key("elsewhere").pubkey(), "WrongIncinerator"),
        ("vault", key("elsewhere").pubkey(), "WrongVault"),
        ("round", driver.at.round(1), "WrongRoundAccount"),
        ("audit", driver.at.audit(0, 1), "WrongStage"),
    ]:
        meta = AccountMeta(account, False, True)
        refused = driver.refused(swapped(settle, names.index(name), meta), driver.cranker)
        assert refused == expected, name


def test_a_finished_audit_is_not_opened_again(driver: AuditDriver) -> None:
    driver.judge(0, 0, [OK, OK, OK])
    assert driver.refused(driver.open_instruction(0, 0), driver.cranker) == "AlreadyAudited"
    assert driver.refused(driver.post_instruction(0, 0), driver.sessions[0]) == "OpeningsPosted"


def test_requests_are_refused_outside_attest_twice_and_beyond_the_cap() -> None:
    driver = AuditDriver(6, audit_cap=2, capacity=6, p_base_ppm=0, p_new_ppm=0)
    driver.start()
    assert driver.refused(driver.request_instruction(0), driver.cranker) == "WrongPhase"
    driver.commit_all([0, 1, 2, 3, 4])
    assert driver.refused(driver.request_instruction(5), driver.cranker) == "CaseWithoutSubject"
    driver.request(0)
    assert driver.refused(driver.request_instruction(0), driver.cranker) == "AlreadyRequested"
    driver.request(1)
    assert driver.refused(driver.request_instruction(2), driver.cranker) == "RequestsFull"
    late = driver.request_instruction(3)
    driver.attest_all()
    driver.close()
    assert driver.refused(late, driver.cranker) == "WrongRound"


def test_a_request_must_be_paid_for() -> None:
    driver = AuditDriver(6)
    driver.start()
    driver.commit_all()
    poor = key("poor")
    driver.chain.airdrop(poor.pubkey(), 1_000_000)
    asking = make.request_audit(driver.at, poor.pubkey(), driver.run.round, 3)
    assert driver.refused(asking, poor) == "InsufficientFunds"
