"""What a round refuses, by name, and that a refusal changes nothing (Stage.refused checks it)."""

from program.rounds import Stage, header_of, key, root_of
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag


def started(num: int = 4, **changes: int | str) -> Stage:
    stage = Stage(num, **changes)
    stage.start()
    return stage


def commit(stage: Stage, index: int, round_: int = 0, session: Keypair | None = None) -> str:
    signer = session or stage.sessions[index]
    vote = stage.vote(index, round_, root_of(round_))
    header = header_of(index, round_)
    made = make.commit_payload(stage.at, signer.pubkey(), index, round_, header, vote)
    return stage.refused(made, signer)


def test_a_late_commit() -> None:
    stage = started()
    stage.chain.advance(stage.run.phase_end_slot - stage.slot)
    stage.commit(0)
    stage.chain.advance()
    assert commit(stage, 1) == "PhaseOver"
    stage.tick()
    assert commit(stage, 1) == "WrongPhase"


def test_a_second_commit_of_the_same_trainer() -> None:
    stage = started()
    stage.commit(0)
    assert commit(stage, 0) == "AlreadyCommitted"


def test_a_commit_by_a_foreign_key() -> None:
    stage = started()
    assert commit(stage, 0, session=stage.sessions[1]) == "WrongSessionKey"
    assert commit(stage, 0, session=stage.owners[0]) == "WrongSessionKey"
    # An index that nobody holds has the zero key, which nobody can sign for.
    assert commit(stage, 3, session=stage.cranker) == "WrongSessionKey"
    stranger = started(3)
    made = make.commit_payload(
        stranger.at, stranger.cranker.pubkey(), 9, 0, header_of(9, 0), b"v" * 32
    )
    assert stranger.refused(made, stranger.cranker) == "WrongSessionKey"


def test_a_commit_for_a_wrong_round() -> None:
    stage = started()
    assert commit(stage, 0, round_=1) == "WrongRound"
    stage.play(1)
    assert commit(stage, 0, round_=0) == "WrongRound"
    # The right number with the ring account of another round.
    good = stage.commit_instruction(0)
    wrong = swapped(good, stage.at.round(1), stage.at.round(0))
    assert stage.refused(wrong, stage.sessions[0]) == "WrongRoundAccount"


def test_a_commit_with_zeros() -> None:
    stage = started()
    session = stage.sessions[0].pubkey()
    vote = stage.vote(0, 0, root_of(0))
    made = make.commit_payload(stage.at, session, 0, 0, bytes(32), vote)
    assert stage.refused(made, stage.sessions[0]) == "HeaderHashZero"
    made = make.commit_payload(stage.at, session, 0, 0, header_of(0, 0), bytes(32))
    assert stage.refused(made, stage.sessions[0]) == "RootVoteZero"


def test_a_payload_in_the_root_only_step() -> None:
    stage = started(2, max_rounds=1)
    stage.play(1)
    assert stage.run.phase == Phase.COOLDOWN
    assert commit(stage, 0, round_=1) == "HeaderHashNotZero"
    attest = make.attest(stage.at, stage.sessions[0].pubkey(), 0, 1, 0, bytes(64))
    assert stage.refused(attest, stage.sessions[0]) == "WrongPhase"


def test_an_attestation_before_its_phase_after_it_and_twice() -> None:
    stage = started()
    attest = make.attest(stage.at, stage.sessions[0].pubkey(), 0, 0, 0, bytes(64))
    assert stage.refused(attest, stage.sessions[0]) == "WrongPhase"
    stage.commit_all()
    stage.attest(0)
    assert stage.refused(stage.attest_instruction(0), stage.sessions[0]) == "AlreadyAttested"
    old = stage.attest_instruction(1)
    stage.run_out()
    assert stage.refused(old, stage.sessions[1]) == "PhaseOver"
    stage.close()
    assert stage.refused(old, stage.sessions[1]) == "WrongRound"


def test_an_attestation_beyond_the_commits_or_with_a_stray_possession_byte() -> None:
    stage = started()
    stage.commit_all([0, 1])
    session = stage.sessions[2]
    attest = make.attest(stage.at, session.pubkey(), 2, 0, 0b111, bytes([1, 1, 1] + [0] * 61))
    assert stage.refused(attest, session) == "AttestOutsideCommits"
    attest = make.attest(stage.at, session.pubkey(), 2, 0, 0b01, bytes([1, 1] + [0] * 62))
    assert stage.refused(attest, session) == "PossessionOutsideBitmap"
    attest = make.attest(stage.at, session.pubkey(), 2, 0, 0b11, bytes(64))
    stage.send(attest, session)


def test_a_transition_that_is_not_due() -> None:
    stage = started(5)
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"
    for index in range(4):
        stage.commit(index)
    # Four fifths have acted at the start: eight slots of grace for the last one.
    quorum = stage.run.quorum_slot
    assert quorum == stage.slot
    stage.chain.advance(7)
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"
    stage.chain.advance(1)
    stage.tick()
    assert not stage.open.flags & RoundFlag.COMMIT_RAN_TO_DEADLINE
    stage.attest(0)
    assert stage.refused(stage.close_instruction(), stage.cranker) == "PhaseNotOver"
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"


def test_a_false_candidate_root_changes_nothing_and_the_true_one_closes() -> None:
    stage = started()
    stage.commit_all()
    stage.attest_all()
    for candidate in (root_of(1), b"x" * 32, bytes(32)):
        close = stage.close_instruction(candidate)
        assert stage.refused(close, stage.cranker) == "CandidateNotCanonical"
    stage.close()
    assert stage.round(0).canonical_root == root_of(0)


def test_a_root_vote_copied_from_another_counts_for_nothing() -> None:
    stage = started()
    copied = stage.vote(0, 0, root_of(0))
    for index in (0, 1, 2):
        stage.commit(index)
    session = stage.sessions[3]
    made = make.commit_payload(stage.at, session.pubkey(), 3, 0, header_of(3, 0), copied)
    stage.send(made, session)
    stage.tick()
    stage.attest_all()
    landed = stage.close()
    assert stage.round(0).included == 0b0111
    assert landed.event("RoundSettled").struck == 0, "a wrong root is no strike for availability"


def test_a_second_close_of_the_same_round() -> None:
    stage = started()
    stage.commit_all()
    stage.attest_all()
    close = stage.close_instruction()
    stage.send(close, stage.cranker)
    assert stage.refused(close, stage.cranker) == "WrongRound"
    void = make.close_void(stage.at, stage.cranker.pubkey(), 0)
    assert stage.refused(void, stage.cranker) == "WrongRound"


def test_a_close_before_the_round_has_attested() -> None:
    stage = started()
    assert stage.refused(stage.close_instruction(), stage.cranker) == "WrongPhase"
    void = make.close_void(stage.at, stage.cranker.pubkey(), 0)
    assert stage.refused(void, stage.cranker) == "WrongPhase"


def test_a_close_into_another_ring_account() -> None:
    stage = started()
    stage.commit_all()
    stage.attest_all()
    wrong = swapped(stage.close_instruction(), stage.at.round(1), stage.at.round(2))
    assert stage.refused(wrong, stage.cranker) == "WrongRoundAccount"


def test_a_checkpoint_at_a_wrong_address() -> None:
    stage = started(2, max_rounds=1)
    stage.play(1)
    for index in (0, 1):
        stage.commit(index)
    at = stage.at
    wrong = swapped(stage.close_instruction(), at.checkpoint(1), at.checkpoint(2))
    assert stage.refused(wrong, stage.cranker) == "WrongAddress"
    wrong = swapped(stage.close_instruction(), at.checkpoint(1), key("stray").pubkey())
    assert stage.refused(wrong, stage.cranker) == "WrongAddress"


def test_only_one_ready_in_a_warmup_and_none_from_an_active_member() -> None:
    stage = Stage(3)
    stage.tick()
    stage.ready(0)
    again = stage.ready_instruction(0)
    assert stage.refused(again, stage.sessions[0]) == "AlreadyReady"
    wrong = stage.ready_instruction(1, root_of(7))
    assert stage.refused(wrong, stage.sessions[1]) == "ReadyRootMismatch"
    stage.ready(1)
    stage.ready(2)
    stage.tick()
    assert stage.refused(stage.ready_instruction(0), stage.sessions[0]) == "AlreadyActive"


def test_too_few_members_do_not_start() -> None:
    stage = Stage(2, min_members=3)
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"


def swapped(made: Instruction, old: Pubkey, new: Pubkey) -> Instruction:
    """The same instruction with one account exchanged."""
    metas = [
        AccountMeta(new, meta.is_signer, meta.is_writable) if meta.pubkey == old else meta
        for meta in made.accounts
    ]
    assert metas != made.accounts
    return Instruction(made.program_id, made.data, metas)
