"""Attacks on a run that waits: while no round opens nothing expires by rounds.

A run must always reach Finished in the end, or nobody gets the reward pool back; and nobody may
make it impossible for others to join, for free. Threat T57.
"""

from program.rounds import SOL, Stage, key

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

LONG = 3


def leave(stage: Stage, index: int) -> None:
    owner = stage.owners[index]
    stage.send(make.leave_run(stage.at, owner.pubkey()), owner)


def newcomer_joins(stage: Stage, name: str) -> bool:
    """Whether somebody new finds an index."""
    owner = key("newcomer", name)
    stage.chain.airdrop(owner.pubkey(), 10 * SOL)
    for index in range(stage.params.capacity):
        terms = make.JoinTerms(index, 3, key("session", name).pubkey(), "http://n")
        instruction = make.join_run(stage.at, owner.pubkey(), terms)
        try:
            stage.send(instruction, owner)
        except AssertionError:
            continue
        return True
    return False


def wait_long(stage: Stage) -> None:
    """Longer than any withdrawal takes."""
    stage.chain.advance(LONG * stage.params.unbond_slots)


def finishes(stage: Stage) -> bool:
    """Whether ticks alone bring a waiting run to its end, and the funder gets the pool."""
    for _ in range(4):
        if stage.run.phase == Phase.FINISHED:
            break
        try:
            stage.tick()
        except AssertionError:
            return False
        if stage.run.phase_end_slot != NONE:
            stage.run_out()
    return stage.run.phase == Phase.FINISHED


def test_joining_and_leaving_burns_no_index_of_a_run_that_has_not_begun():
    """One owner with a few stakes takes every index of an open run and leaves it again.

    The stakes come back after unbonding: the attack costs fees. Before the first round no ring
    account and no audit can name the indices, so they must be free for others at once.
    Threat T56.
    """
    stage = Stage(0, capacity=4, audit_cap=2, max_witness_only=1)
    attacker = key("attacker")
    stage.chain.airdrop(attacker.pubkey(), 100 * SOL)
    for index in range(4):
        terms = make.JoinTerms(index, 3, key("a", index).pubkey(), "http://a")
        stage.send(make.join_run(stage.at, attacker.pubkey(), terms), attacker)
        stage.send(make.leave_run(stage.at, attacker.pubkey()), attacker)
    assert newcomer_joins(stage, "bob")


def test_a_run_whose_members_all_leave_in_the_last_round_stores_its_root_and_ends():
    """Four honest participants leave as soon as their last payload is sent.

    Their last duty is the vote for the final root. If they are gone before it, training since the
    newest checkpoint is lost and nobody is left who could bring the run to its end.
    """
    stage = Stage(4, max_rounds=3)
    stage.start()
    stage.play(2)
    for index in range(4):
        leave(stage, index)
    stage.play(1)
    assert stage.run.phase == Phase.COOLDOWN
    stage.cool_down()
    assert (stage.run.phase, stage.run.root_round) == (Phase.FINISHED, 3)
    assert all(entry.status == Status.LEFT for entry in stage.entries[:4])


def test_a_run_that_halts_after_its_last_round_ends():
    """Nobody votes in the root-only step, all go home. Round and max_rounds are equal for ever."""
    stage = Stage(2, max_rounds=2)
    stage.start()
    stage.play(2)
    assert stage.run.phase == Phase.COOLDOWN
    while stage.run.phase == Phase.COOLDOWN:
        stage.run_out()
        stage.chain.advance(stage.params.close_grace_slots + 1)
        stage.close_void()
    assert stage.run.phase == Phase.HALTED
    stage.run_out()
    for index in range(2):
        leave(stage, index)
    stage.tick()
    wait_long(stage)
    assert finishes(stage)


def test_a_jailed_member_that_is_needed_does_not_lock_the_run():
    """Jail lasts rounds; a run that waits has none. With it a run of exactly the minimum stops.

    Either the jailed one may come back while no round is open, or the run ends.
    """
    stage = Stage(3, capacity=3, audit_cap=1, max_witness_only=0, min_members=3)
    stage.start()
    for _ in range(3):
        stage.commit_all()
        stage.attest_all(bitmap=0b011)
        stage.close()
        stage.chain.advance()
    stage.cool_down()
    assert stage.run.phase == Phase.WAITING_FOR_MEMBERS
    assert stage.entries[2].status == Status.JAILED
    wait_long(stage)
    try:
        stage.ready(2)
    except AssertionError:
        assert finishes(stage)
    else:
        stage.tick()
        assert stage.run.phase == Phase.WARMUP


def test_a_run_that_too_few_come_back_to_ends():
    """Half of the members never answer again. What is left must not hold the pool for ever."""
    stage = Stage(2)
    stage.start()
    stage.play(2)
    while stage.run.phase in (Phase.COMMIT, Phase.ATTEST):
        stage.commit_all([0])
        stage.attest_all([0])
        stage.chain.advance(stage.params.close_grace_slots + 1)
        stage.close()
    if stage.run.phase == Phase.COOLDOWN:
        stage.cool_down()
    assert stage.run.phase == Phase.WAITING_FOR_MEMBERS
    wait_long(stage)
    assert finishes(stage)
