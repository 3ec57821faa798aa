"""What an audit refuses: at the wrong time, by the wrong key, twice, about somebody else."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from program.audits import MISMATCH, OK, Court
from program.rounds import key
from solders.instruction import AccountMeta, Instruction

from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.rules.audit_view import AuditStage, AuditView


@pytest.fixture
def court() -> Court:
    return Court.in_session()


@pytest.fixture
def waiting(court: Court) -> Court:
    """Openings of target 0 are posted: the seats may commit."""
    court.post(0, 0)
    return court


def commit_of(court: Court, place: int) -> tuple[int, Instruction]:
    audit = court.of(0, 0)
    index = audit.seats[place].index
    return index, court.commit_instructions(audit, index, OK)[0]


def reveal_of(court: Court, place: int) -> tuple[int, Instruction]:
    audit = court.of(0, 0)
    index = audit.seats[place].index
    return index, court.commit_instructions(audit, index, OK)[1]


def swapped(instruction: Instruction, place: int, account: AccountMeta) -> Instruction:
    accounts = list(instruction.accounts)
    accounts[place] = account
    return Instruction(instruction.program_id, instruction.data, accounts)


# Opening.


def test_no_audit_before_the_seed_is_frozen() -> None:
    court = Court(6)
    court.start()
    assert court.refused(court.open_instruction(0, 0), court.cranker) == "SeedNotFrozen"
    court.play(1)
    assert court.refused(court.open_instruction(0, 0), court.cranker) == "SeedNotFrozen"


def test_no_audit_of_a_payload_that_is_not_included() -> None:
    court = Court(6)
    court.start()
    court.commit_all([0, 1, 2, 3, 4])
    court.attest_all()
    court.close()
    court.draw(0)
    assert court.refused(court.open_instruction(0, 5), court.cranker) == "NotIncluded"
    assert court.refused(court.open_instruction(0, 63), court.cranker) == "NotIncluded"
    assert court.refused(court.open_instruction(0, 64), court.cranker) == "NotIncluded"


def test_no_audit_with_fewer_than_three_witnesses() -> None:
    """Four trainers and two witnesses: an event says that nobody is audited."""
    court = Court(6, roles=[1, 1, 1, 1, 2, 3], max_witness_only=2)
    court.start()
    court.play(1)
    frozen = court.draw(0).event("SeedFrozen")
    assert (frozen.sampled, frozen.unseated) == (0b101111, 0b101111)
    assert court.refused(court.open_instruction(0, 0), court.cranker) == "TooFewWitnesses"
    assert court.run.sampled == 0


def test_one_of_exactly_three_witnesses_has_no_audit_of_its_own() -> None:
    court = Court(6, roles=[1, 1, 1, 3, 3, 3])
    court.start()
    court.play(1)
    frozen = court.draw(0).event("SeedFrozen")
    assert (frozen.sampled, frozen.unseated) == (0b111111, 0b111000)
    assert court.refused(court.open_instruction(0, 3), court.cranker) == "TooFewWitnesses"
    court.open_audit(0, 0)


def test_openings_end_with_their_window(court: Court) -> None:
    end = court.round(0).freeze_clock + court.params.openings_slots
    court.chain.advance(end - court.clock)
    court.open_audit(0, 0)
    court.chain.advance()
    assert court.refused(court.open_instruction(0, 1), court.cranker) == "WindowOver"
    assert court.refused(court.post_instruction(0, 0), court.sessions[0]) == "WindowOver"
    assert court.refused(court.post_instruction(0, 1), court.sessions[1]) == "WindowOver"


def test_an_audit_is_opened_once(court: Court) -> None:
    court.open_audit(0, 0)
    assert court.refused(court.open_instruction(0, 0), court.cranker) == "AlreadyAudited"


def test_lamports_sent_in_advance_do_not_block_an_audit(court: Court) -> None:
    court.chain.airdrop(court.at.audit(0, 0), 1_000_000)
    court.open_audit(0, 0)
    assert court.of(0, 0).stage == AuditStage.OPENINGS


def test_the_ring_account_must_hold_the_round(court: Court) -> None:
    open_now, lap_later = court.open_instruction(1, 0), court.open_instruction(16, 0)
    assert court.refused(open_now, court.cranker) == "SeedNotFrozen"
    assert court.refused(lap_later, court.cranker) == "WrongRoundAccount"
    wrong = court.at.round(1)
    instruction = swapped(court.open_instruction(0, 0), 3, AccountMeta(wrong, False, True))
    assert court.refused(instruction, court.cranker) == "WrongRoundAccount"


def test_the_audit_account_must_be_that_of_the_target(court: Court) -> None:
    other = AccountMeta(court.at.audit(0, 1), False, True)
    instruction = swapped(court.open_instruction(0, 0), 4, other)
    assert court.refused(instruction, court.cranker) == "WrongAddress"
    court.open_audit(0, 1)
    assert court.refused(instruction, court.cranker) == "WrongAddress"
    posting = swapped(court.post_instruction(0, 0), 5, other)
    assert court.refused(posting, court.sessions[0]) == "WrongAddress"


# Openings.


def test_only_the_target_posts_its_openings_and_once(court: Court) -> None:
    posting = court.post_instruction(0, 0)
    stranger = swapped(posting, 0, AccountMeta(court.sessions[1].pubkey(), True, False))
    refused = court.refused(stranger, court.sessions[0], court.sessions[1])
    assert refused == "WrongSessionKey"
    zeros = court.post_instruction(0, 0, bytes(31) + b"\1")
    data = zeros.data[:-1] + b"\0"
    empty = Instruction(zeros.program_id, data, zeros.accounts)
    assert court.refused(empty, court.sessions[0]) == "OpeningsRootZero"
    court.post(0, 0)
    again = court.post_instruction(0, 0, b"\1" * 32)
    assert court.refused(again, court.sessions[0]) == "OpeningsPosted"


def test_openings_of_another_round_find_no_audit(court: Court) -> None:
    court.open_audit(0, 0)
    assert court.refused(court.post_instruction(1, 0), court.sessions[0]) == "SeedNotFrozen"
    other = AccountMeta(court.at.audit(0, 0), False, True)
    posting = swapped(court.post_instruction(1, 0), 5, other)
    assert court.refused(posting, court.sessions[0]) == "WrongAddress"


# Verdicts.


def test_a_verdict_needs_a_seat(waiting: Court) -> None:
    audit = waiting.of(0, 0)
    (outside,) = set(range(1, 6)) - {seat.index for seat in audit.judging} - {audit.seats[4].index}
    for index in (0, outside, audit.seats[4].index):
        commit, _ = waiting.commit_instructions(audit, index, OK)
        assert waiting.refused(commit, waiting.sessions[index]) == "NotSeated"


def test_a_verdict_needs_the_session_key_of_its_seat(waiting: Court) -> None:
    index, commit = commit_of(waiting, 0)
    other = waiting.sessions[(index + 1) % 6]
    signed = swapped(commit, 0, AccountMeta(other.pubkey(), True, False))
    assert waiting.refused(signed, other) == "WrongSessionKey"


def test_no_verdict_before_the_openings(court: Court) -> None:
    court.open_audit(0, 0)
    index, commit = commit_of(court, 0)
    assert court.refused(commit, court.sessions[index]) == "WrongStage"


def test_no_commit_after_its_window_and_no_reveal_before_or_after_its_own(waiting: Court) -> None:
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


def test_commits_and_reveals_count_once(waiting: Court) -> None:
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
def test_a_reveal_is_what_was_committed(waiting: Court, field: str) -> None:
    audit = waiting.of(0, 0)
    index, commit = commit_of(waiting, 0)
    waiting.send(commit, waiting.sessions[index])
    waiting.run_to(audit.stage_end)
    shown, _ = waiting.statement(audit, index, OK)
    session = waiting.sessions[index]
    changed = CHANGES[field](shown)
    reveal = make.reveal_verdict(waiting.at, session.pubkey(), audit, index, changed)
    assert waiting.refused(reveal, session) == "RevealMismatch"


def test_a_seat_cannot_show_what_another_committed(waiting: Court) -> None:
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
def test_there_are_four_verdicts(waiting: Court, verdict: int) -> None:
    audit = waiting.of(0, 0)
    index = audit.seats[0].index
    session = waiting.sessions[index]
    shown = replace(waiting.statement(audit, index, OK)[0], verdict=verdict)
    reveal = make.reveal_verdict(waiting.at, session.pubkey(), audit, index, shown)
    assert waiting.refused(reveal, session) == "UnknownVerdict"


# Extension and end.


def crank(court: Court, audit: AuditView) -> tuple[str, str]:
    extend = make.extend_audit(court.at, court.cranker.pubkey(), audit)
    settle = make.settle_audit(court.at, court.cranker.pubkey(), audit)
    return court.refused(extend, court.cranker), court.refused(settle, court.cranker)


def test_nothing_ends_before_its_time(court: Court) -> None:
    court.open_audit(0, 0)
    assert crank(court, court.of(0, 0)) == ("WrongStage", "WindowOpen")
    court.post(0, 0)
    assert crank(court, court.of(0, 0)) == ("WindowOpen", "WindowOpen")
    court.hear(0, 0, [OK, OK, OK])
    extend = make.extend_audit(court.at, court.cranker.pubkey(), court.of(0, 0))
    assert court.refused(extend, court.cranker) == "ExtensionNotDue"
    court.settle(0, 0)
    assert crank(court, court.of(0, 0)) == ("WrongStage", "WrongStage")


def test_the_first_seats_are_done_once_others_are_seated(court: Court) -> None:
    court.post(0, 0)
    court.hear(0, 0, [OK, None, OK])
    court.extend(0, 0)
    audit = court.of(0, 0)
    late = audit.seats[1].index
    commit, _ = court.commit_instructions(audit, late, OK)
    assert court.refused(commit, court.sessions[late]) == "WindowOver"
    extend = make.extend_audit(court.at, court.cranker.pubkey(), audit)
    assert court.refused(extend, court.cranker) == "WindowOpen"
    court.hear(0, 0, [OK, MISMATCH])
    assert court.refused(extend, court.cranker) == "ExtensionNotDue"
    assert court.settle(0, 0).event("AuditSettled").outcome == 1


def test_accounts_of_another_run_and_doubles_are_refused(court: Court) -> None:
    court.judge(0, 1, [OK, OK, OK])
    court.post(0, 0)
    court.hear(0, 0, [OK, OK, OK])
    settle = court.settle_instruction(0, 0)
    names = ["cranker", "run", "roster", "round", "audit", "vault", "incinerator"]
    for name, account, expected in [
        ("incinerator", key("elsewhere").pubkey(), "WrongIncinerator"),
        ("vault", key("elsewhere").pubkey(), "WrongVault"),
        ("round", court.at.round(1), "WrongRoundAccount"),
        ("audit", court.at.audit(0, 1), "WrongStage"),
    ]:
        meta = AccountMeta(account, False, True)
        refused = court.refused(swapped(settle, names.index(name), meta), court.cranker)
        assert refused == expected, name


def test_a_finished_audit_is_not_opened_again(court: Court) -> None:
    court.judge(0, 0, [OK, OK, OK])
    assert court.refused(court.open_instruction(0, 0), court.cranker) == "AlreadyAudited"
    assert court.refused(court.post_instruction(0, 0), court.sessions[0]) == "OpeningsPosted"


def test_requests_are_refused_outside_attest_twice_and_beyond_the_cap() -> None:
    court = Court(6, audit_cap=2, capacity=6, p_base_ppm=0, p_new_ppm=0)
    court.start()
    assert court.refused(court.request_instruction(0), court.cranker) == "WrongPhase"
    court.commit_all([0, 1, 2, 3, 4])
    assert court.refused(court.request_instruction(5), court.cranker) == "CaseWithoutSubject"
    court.request(0)
    assert court.refused(court.request_instruction(0), court.cranker) == "AlreadyRequested"
    court.request(1)
    assert court.refused(court.request_instruction(2), court.cranker) == "RequestsFull"
    late = court.request_instruction(3)
    court.attest_all()
    court.close()
    assert court.refused(late, court.cranker) == "WrongRound"


def test_a_request_must_be_paid_for() -> None:
    court = Court(6)
    court.start()
    court.commit_all()
    poor = key("poor")
    court.chain.airdrop(poor.pubkey(), 1_000_000)
    asking = make.request_audit(court.at, poor.pubkey(), court.run.round, 3)
    assert court.refused(asking, poor) == "InsufficientFunds"
