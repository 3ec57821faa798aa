"""Each refusal of a round by name. `refused` checks that a refusal changes no account."""

from solders.keypair import Keypair
from support.program.rounds import RoundDriver, header_of, key, root_of
from support.program.swapped import exchanged

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag


def started(num: int = 4, **changes: int | str) -> RoundDriver:
    driver = RoundDriver(num, **changes)
    driver.start()
    return driver


def commit(driver: RoundDriver, index: int, round_: int = 0, session: Keypair | None = None) -> str:
    signer = session or driver.sessions[index]
    vote = driver.vote(index, round_, root_of(round_))
    header = header_of(index, round_)
    made = make.commit_payload(driver.at, signer.pubkey(), index, round_, header, vote)
    return driver.refused(made, signer)


def test_a_late_commit() -> None:
    driver = started()
    driver.chain.advance(driver.run.phase_end_slot - driver.slot)
    driver.commit(0)
    driver.chain.advance()
    assert commit(driver, 1) == "PhaseOver"
    driver.advance_phase()
    assert commit(driver, 1) == "WrongPhase"


def test_a_second_commit_of_the_same_trainer() -> None:
    driver = started()
    driver.commit(0)
    assert commit(driver, 0) == "AlreadyCommitted"


def test_a_commit_by_a_foreign_key() -> None:
    driver = started()
    assert commit(driver, 0, session=driver.sessions[1]) == "WrongSessionKey"
    assert commit(driver, 0, session=driver.owners[0]) == "WrongSessionKey"
    # An index that nobody holds has the zero key, which nobody can sign for.
    assert commit(driver, 3, session=driver.cranker) == "WrongSessionKey"
    stranger = started(3)
    made = make.commit_payload(
        stranger.at, stranger.cranker.pubkey(), 9, 0, header_of(9, 0), b"v" * 32
    )
    assert stranger.refused(made, stranger.cranker) == "WrongSessionKey"


def test_a_commit_for_a_wrong_round() -> None:
    driver = started()
    assert commit(driver, 0, round_=1) == "WrongRound"
    driver.play(1)
    assert commit(driver, 0, round_=0) == "WrongRound"
    # The right number with the ring account of another round.
    good = driver.commit_instruction(0)
    wrong = exchanged(good, driver.at.round(1), driver.at.round(0))
    assert driver.refused(wrong, driver.sessions[0]) == "WrongRoundAccount"


def test_a_commit_with_zeros() -> None:
    driver = started()
    session = driver.sessions[0].pubkey()
    vote = driver.vote(0, 0, root_of(0))
    made = make.commit_payload(driver.at, session, 0, 0, bytes(32), vote)
    assert driver.refused(made, driver.sessions[0]) == "HeaderHashZero"
    made = make.commit_payload(driver.at, session, 0, 0, header_of(0, 0), bytes(32))
    assert driver.refused(made, driver.sessions[0]) == "RootVoteZero"


def test_a_payload_in_the_root_only_step() -> None:
    driver = started(2, max_rounds=1)
    driver.play(1)
    assert driver.run.phase == Phase.COOLDOWN
    assert commit(driver, 0, round_=1) == "HeaderHashNotZero"
    attest = make.attest(driver.at, driver.sessions[0].pubkey(), 0, 1, 0, bytes(64))
    assert driver.refused(attest, driver.sessions[0]) == "WrongPhase"


def test_an_attestation_before_its_phase_after_it_and_twice() -> None:
    driver = started()
    attest = make.attest(driver.at, driver.sessions[0].pubkey(), 0, 0, 0, bytes(64))
    assert driver.refused(attest, driver.sessions[0]) == "WrongPhase"
    driver.commit_all()
    driver.attest(0)
    assert driver.refused(driver.attest_instruction(0), driver.sessions[0]) == "AlreadyAttested"
    old = driver.attest_instruction(1)
    driver.run_out()
    assert driver.refused(old, driver.sessions[1]) == "PhaseOver"
    driver.close()
    assert driver.refused(old, driver.sessions[1]) == "WrongRound"


def test_an_attestation_beyond_the_commits_or_with_a_stray_possession_byte() -> None:
    driver = started()
    driver.commit_all([0, 1])
    session = driver.sessions[2]
    attest = make.attest(driver.at, session.pubkey(), 2, 0, 0b111, bytes([1, 1, 1] + [0] * 61))
    assert driver.refused(attest, session) == "AttestOutsideCommits"
    attest = make.attest(driver.at, session.pubkey(), 2, 0, 0b01, bytes([1, 1] + [0] * 62))
    assert driver.refused(attest, session) == "PossessionOutsideBitmap"
    attest = make.attest(driver.at, session.pubkey(), 2, 0, 0b11, bytes(64))
    driver.send(attest, session)


def test_a_transition_that_is_not_due() -> None:
    driver = started(5)
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
    for index in range(4):
        driver.commit(index)
    # Four fifths have acted at the start: eight slots of grace for the last one.
    quorum = driver.run.quorum_slot
    assert quorum == driver.slot
    driver.chain.advance(7)
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
    driver.chain.advance(1)
    driver.advance_phase()
    assert not driver.open.flags & RoundFlag.COMMIT_RAN_TO_DEADLINE
    driver.attest(0)
    assert driver.refused(driver.close_instruction(), driver.cranker) == "PhaseNotOver"
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"


def test_a_false_candidate_root_changes_nothing_and_the_true_one_closes() -> None:
    driver = started()
    driver.commit_all()
    driver.attest_all()
    for candidate in (root_of(1), b"x" * 32, bytes(32)):
        close = driver.close_instruction(candidate)
        assert driver.refused(close, driver.cranker) == "CandidateNotCanonical"
    driver.close()
    assert driver.round(0).canonical_root == root_of(0)


def test_a_root_vote_copied_from_another_counts_for_nothing() -> None:
    driver = started()
    copied = driver.vote(0, 0, root_of(0))
    for index in (0, 1, 2):
        driver.commit(index)
    session = driver.sessions[3]
    made = make.commit_payload(driver.at, session.pubkey(), 3, 0, header_of(3, 0), copied)
    driver.send(made, session)
    driver.advance_phase()
    driver.attest_all()
    landed = driver.close()
    assert driver.round(0).included == 0b0111
    assert landed.event("RoundSettled").struck == 0, "a wrong root is no strike for availability"


def test_a_second_close_of_the_same_round() -> None:
    driver = started()
    driver.commit_all()
    driver.attest_all()
    close = driver.close_instruction()
    driver.send(close, driver.cranker)
    assert driver.refused(close, driver.cranker) == "WrongRound"
    void = make.close_void(driver.at, driver.cranker.pubkey(), 0)
    assert driver.refused(void, driver.cranker) == "WrongRound"


def test_a_close_before_the_round_has_attested() -> None:
    driver = started()
    assert driver.refused(driver.close_instruction(), driver.cranker) == "WrongPhase"
    void = make.close_void(driver.at, driver.cranker.pubkey(), 0)
    assert driver.refused(void, driver.cranker) == "WrongPhase"


def test_a_close_into_another_ring_account() -> None:
    driver = started()
    driver.commit_all()
    driver.attest_all()
    wrong = exchanged(driver.close_instruction(), driver.at.round(1), driver.at.round(2))
    assert driver.refused(wrong, driver.cranker) == "WrongRoundAccount"


def test_a_checkpoint_at_a_wrong_address() -> None:
    driver = started(2, max_rounds=1)
    driver.play(1)
    for index in (0, 1):
        driver.commit(index)
    at = driver.at
    wrong = exchanged(driver.close_instruction(), at.checkpoint(1), at.checkpoint(2))
    assert driver.refused(wrong, driver.cranker) == "WrongAddress"
    wrong = exchanged(driver.close_instruction(), at.checkpoint(1), key("stray").pubkey())
    assert driver.refused(wrong, driver.cranker) == "WrongAddress"


def test_only_one_ready_in_a_warmup_and_none_from_an_active_member() -> None:
    driver = RoundDriver(3)
    driver.advance_phase()
    driver.post_ready(0)
    again = driver.ready_instruction(0)
    assert driver.refused(again, driver.sessions[0]) == "AlreadyReady"
    wrong = driver.ready_instruction(1, root_of(7))
    assert driver.refused(wrong, driver.sessions[1]) == "ReadyRootMismatch"
    driver.post_ready(1)
    driver.post_ready(2)
    driver.advance_phase()
    assert driver.refused(driver.ready_instruction(0), driver.sessions[0]) == "AlreadyActive"


def test_too_few_members_do_not_start() -> None:
    driver = RoundDriver(2, min_members=3)
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
