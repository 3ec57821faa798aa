"""Verdicts and votes that do not belong where they are sent: each is refused by its name.

One audit, one meddler: the refusals stand in the order in which somebody could try them. The driver
checks that a refused transaction changed no account. program/test_audit_refusals.py and
test_case_refusals.py take the windows apart slot by slot.
"""

from dataclasses import replace

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from support.fields import assert_fields
from support.program.audits import MISMATCH, OK, salt_of
from support.program.cases import FEE, PAYLOAD, WORK, CaseDriver
from support.program.losses import assert_untouched, commit_all, penalties, seats_of
from support.program.rounds import key

from troth_attestation.cases import Vote
from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Statement
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain import case_instructions as cases
from troth_coordinator.rules.audit_view import AuditView
from troth_localnet.svm import Chain

TARGET = 3
ELSEWHERE = b"another run's address, 32 bytes."
NOT_OURS = "Custom(3007)"
"""Anchor's AccountOwnedByWrongProgram: there is no such account of the program."""


@pytest.fixture
def driver() -> CaseDriver:
    return CaseDriver.started()


def signed_by(instruction: Instruction, who: Keypair) -> Instruction:
    """The same instruction with another first signer."""
    metas = [AccountMeta(who.pubkey(), True, False), *instruction.accounts[1:]]
    return Instruction(instruction.program_id, instruction.data, metas)


def test_a_meddler_tries_everything_and_the_audit_ends_as_without_it(driver: CaseDriver) -> None:
    """Somebody speaks without a seat, too early, twice, with another salt, and too late.

    Each of it is refused by name and changes nothing: the three seats clear the target, they are
    paid, nobody else is, and nobody loses a lamport. Threat T48.
    """
    driver.open_audit(0, TARGET)
    early = driver.of(0, TARGET)
    first, second, third = seats_of(early)
    session = driver.sessions[first]
    commit, reveal = driver.commit_instructions(early, first, OK)
    assert driver.refused(commit, session) == "WrongStage", "before the openings"
    driver.post(0, TARGET)
    audit = driver.of(0, TARGET)
    commit, reveal = driver.commit_instructions(audit, first, OK)
    (outside, *_) = set(range(12)) - {TARGET, *(seat.index for seat in audit.seats)}
    unseated, _ = driver.commit_instructions(audit, outside, OK)
    assert driver.refused(unseated, driver.sessions[outside]) == "NotSeated"
    stolen = signed_by(commit, driver.sessions[outside])
    assert driver.refused(stolen, driver.sessions[outside]) == "WrongSessionKey"
    assert driver.refused(reveal, session) == "WrongStage", "before anybody has committed"
    commit_all(driver, audit, [OK, OK])
    changed, _ = driver.commit_instructions(audit, first, MISMATCH)
    assert driver.refused(changed, session) == "SeatCommitted"
    assert driver.refused(reveal, session) == "WrongStage", "the third may still commit"
    last, last_reveal = driver.commit_instructions(audit, third, OK)
    driver.send(last, driver.sessions[third])
    shown, _ = driver.statement(audit, first, OK)
    salted = replace(shown, salt=b"\x01" * 32)
    other = make.reveal_verdict(driver.at, session.pubkey(), audit, first, salted)
    assert driver.refused(other, session) == "RevealMismatch"
    driver.send(reveal, session)
    assert driver.refused(reveal, session) == "SeatRevealed"
    driver.send(last_reveal, driver.sessions[third])
    _, second_reveal = driver.commit_instructions(audit, second, OK)
    driver.send(second_reveal, driver.sessions[second])
    settled = driver.settle(0, TARGET).event("AuditSettled")
    assert_fields(settled, outcome=AuditOutcome.CLEARED, fee=FEE, reward_undone=0)
    assert settled.paid == 1 << first | 1 << second | 1 << third
    assert driver.refused(reveal, session) == "WrongStage", "after the end"
    driver.release(audit)
    assert driver.refused(reveal, session) == NOT_OURS, "after the account was closed"
    assert driver.burned() == 0
    assert_untouched(driver)


def test_nobody_judges_itself_and_nobody_its_own_accusation(driver: CaseDriver) -> None:
    """A target wants a seat on its own audit; accused, it wants to be its own juror.

    Its challenger, who takes part in the run, wants to be one too. Neither is drawn, and without
    being drawn no vote counts. Threat T48, T08.
    """
    driver.post(0, TARGET)
    audit = driver.of(0, TARGET)
    assert TARGET not in [seat.index for seat in audit.seats]
    own, _ = driver.commit_instructions(audit, TARGET, OK)
    assert driver.refused(own, driver.sessions[TARGET]) == "NotSeated"
    challenger = 5
    driver.challenge(driver.owners[challenger], 0, TARGET, PAYLOAD)
    seated = driver.seat_jury(driver.case(0, TARGET, PAYLOAD))
    assert seated.challenger_index == challenger
    for index in (TARGET, challenger):
        assert index not in [juror.index for juror in seated.jurors]
        vote, _ = driver.vote_instructions(seated, index, OK)
        assert driver.refused(vote, driver.sessions[index]) == "NotSeated"
    driver.take_votes(seated, [OK] * len(seated.jurors))
    assert driver.settle_case(seated).event("CaseSettled").outcome == CaseOutcome.ACQUITTED
    assert_untouched(driver)


def test_a_verdict_that_comes_after_its_window_is_silence(driver: CaseDriver) -> None:
    """A witness finishes too late: its reveal is refused in the slot after the last one.

    It pays as if it had hidden its verdict, since nobody can tell the two apart. Threat T48, T46.
    """
    driver.post(0, TARGET)
    audit = driver.of(0, TARGET)
    commit_all(driver, audit, [OK, OK, OK])
    now = driver.of(0, TARGET)
    for place in (0, 1):
        index = seats_of(audit)[place]
        _, reveal = driver.commit_instructions(audit, index, OK)
        driver.send(reveal, driver.sessions[index])
    late = seats_of(audit)[2]
    _, reveal = driver.commit_instructions(audit, late, OK)
    driver.run_to(now.stage_end)
    assert driver.refused(reveal, driver.sessions[late]) == "WindowOver"
    driver.extend(0, TARGET)
    driver.take_verdicts(0, TARGET, [OK, OK])
    (fine,) = penalties(driver.settle(0, TARGET))
    assert_fields(fine, index=late, fault=6, unvested=2 * FEE, stake=0)
    assert_untouched(driver, [late])


# Replays.


@pytest.mark.parametrize(
    "elsewhere",
    [{"run": ELSEWHERE}, {"round_": 1}, {"target": 4}, {"witness": 63}],
    ids=["run", "round", "target", "witness"],
)
def test_a_verdict_given_elsewhere_is_worth_nothing_here(
    driver: CaseDriver, elsewhere: dict[str, int]
) -> None:
    """A witness of two runs with the same model sends what it said there, instead of working.

    The hash binds run, round, target and witness: what was committed for another of them opens
    nothing here, and an unopened commitment costs the most. Threat T33.
    """
    driver.post(0, TARGET)
    audit = driver.of(0, TARGET)
    index = seats_of(audit)[0]
    session = driver.sessions[index]
    shown, honest = driver.statement(audit, index, OK)
    said = {"run": bytes(driver.at.run), "round_": 0, "target": TARGET, "witness": index}
    assert statement(said, shown) == honest
    replayed = statement({**said, **elsewhere}, shown)
    driver.send(make.commit_verdict(driver.at, session.pubkey(), audit, index, replayed), session)
    driver.run_to(audit.stage_end)
    reveal = make.reveal_verdict(driver.at, session.pubkey(), audit, index, shown)
    assert driver.refused(reveal, session) == "RevealMismatch"


def statement(said: dict[str, object], shown: make.Reveal) -> bytes:
    """The hash of a verdict."""
    who = (said["run"], said["round_"], said["target"], said["witness"])
    hashed = Statement(*who, shown.verdict, shown.evidence, sketch_hash(shown.sketch))
    return hashed.commit(shown.salt)


@pytest.mark.parametrize(
    "elsewhere",
    [{"run": ELSEWHERE}, {"round": 1}, {"target": 4}, {"case_kind": int(WORK)}, {"witness": 63}],
    ids=["run", "round", "target", "kind", "witness"],
)
def test_a_vote_given_elsewhere_is_worth_nothing_here(
    driver: CaseDriver, elsewhere: dict[str, int]
) -> None:
    """A juror sends the vote of another case, of another run or of another juror.

    Threat T33.
    """
    driver.challenge(driver.outsider("challenger"), 0, TARGET, PAYLOAD)
    case = driver.seat_jury(driver.case(0, TARGET, PAYLOAD))
    index = case.jurors[0].index
    session, salt = driver.sessions[index], salt_of(case, index)
    who = (bytes(driver.at.run), 0, TARGET, int(PAYLOAD), index)
    vote = Vote(*who, OK, case.openings_root)
    honest = cases.commit_vote(driver.at, session.pubkey(), case, index, vote.commit(salt))
    assert honest == driver.vote_instructions(case, index, OK)[0]
    replayed = replace(vote, **elsewhere).commit(salt)
    driver.send(cases.commit_vote(driver.at, session.pubkey(), case, index, replayed), session)
    driver.run_to(case.stage_end)
    _, reveal = driver.vote_instructions(case, index, OK)
    assert driver.refused(reveal, session) == "RevealMismatch"


def test_accounts_of_another_run_do_not_stand_in_for_ours(driver: CaseDriver) -> None:
    """Two runs of the same people stand at the same audit. A verdict and openings of one are sent
    with one account of the other in the place of ours, hoping that some check looks at its own
    account only.

    Every mixture is refused by its name; what belongs together passes in each. Threat T33, T37.
    """
    there = neighbour_of(driver)
    driver.post(0, TARGET)
    there.post(0, TARGET)
    audit, other = driver.of(0, TARGET), there.of(0, TARGET)
    (index, *_) = set(seats_of(audit)) & set(seats_of(other)) or seats_of(audit)
    session, witness = driver.sessions[TARGET + 1], driver.sessions[index]
    pairs = [
        (driver.commit_instructions(audit, index, OK)[0],
         there.commit_instructions(other, index, OK)[0], witness,
         ["WrongRoster", "WrongRoster", "WrongRun"]),
        (driver.post_instruction(0, TARGET + 1), there.post_instruction(0, TARGET + 1), session,
         ["WrongRoster", "WrongRoster", "WrongRun", "WrongAddress"]),
    ]  # fmt: skip
    for ours, theirs, signer, errors in pairs:
        found = []
        for place, meta in enumerate(theirs.accounts):
            if meta.pubkey != ours.accounts[place].pubkey:
                metas = [*ours.accounts[:place], meta, *ours.accounts[place + 1 :]]
                mixed = Instruction(ours.program_id, ours.data, metas)
                found.append(driver.refused(mixed, signer))
        assert found == errors
        driver.send(ours, signer)


def neighbour_of(driver: CaseDriver) -> CaseDriver:
    """Another run of the same participants on the same chain, as far as this one."""

    class Neighbour(CaseDriver):
        run_id = b"s" * 32

        def new_chain(self) -> Chain:
            return driver.chain

    return Neighbour.build(12, 1)


def test_a_stranger_that_takes_no_part_has_no_voice(driver: CaseDriver) -> None:
    """Somebody who never joined signs for a seat with a key of its own. Threat T48."""
    driver.post(0, TARGET)
    audit: AuditView = driver.of(0, TARGET)
    stranger = key("stranger")
    driver.chain.airdrop(stranger.pubkey(), 10**9)
    commit, _ = driver.commit_instructions(audit, seats_of(audit)[0], MISMATCH)
    assert driver.refused(signed_by(commit, stranger), stranger) == "WrongSessionKey"
    for index, error in ((63, "WrongSessionKey"), (64, "IndexOutOfRange")):
        _, hashed = driver.statement(audit, index, MISMATCH)
        forged = make.commit_verdict(driver.at, stranger.pubkey(), audit, index, hashed)
        assert driver.refused(forged, stranger) == error
