"""Attacks on a run that waits: while no round opens nothing expires by rounds.

A run must always reach Finished in the end, or nobody gets the reward pool back; and nobody may
make it impossible for others to join, for free. Threat T57.
"""

from support.fields import assert_fields
from support.program.rounds import SOL, RoundDriver, key

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

LONG = 3


def newcomer_joins(driver: RoundDriver, name: str) -> bool:
    """Whether somebody new finds an index."""
    owner = key("newcomer", name)
    driver.chain.airdrop(owner.pubkey(), 10 * SOL)
    for index in range(driver.params.capacity):
        terms = make.JoinTerms(index, 3, key("session", name).pubkey(), "http://n")
        if not driver.attempt(make.join_run(driver.at, owner.pubkey(), terms), owner):
            return True
    return False


def wait_long(driver: RoundDriver) -> None:
    """Longer than any withdrawal takes."""
    driver.chain.advance(LONG * driver.params.unbond_slots)


def assert_finishes(driver: RoundDriver) -> None:
    """Ticks alone bring a waiting run to its end, and the funder gets the pool."""
    for _ in range(4):
        if driver.run.phase == Phase.FINISHED:
            break
        driver.advance_phase()
        if driver.run.phase_end_slot != NONE:
            driver.run_out()
    assert driver.run.phase == Phase.FINISHED


def all_leave(driver: RoundDriver) -> None:
    """Four members leave in the open round, and vote for its root before they are gone."""
    for index in range(4):
        driver.leave(index)
    driver.play(1)
    assert driver.run.phase == Phase.COOLDOWN
    driver.cool_down()


def abandoned() -> RoundDriver:
    """A run that waits because all of its members have left."""
    driver = RoundDriver(4, capacity=16)
    driver.start()
    driver.play(1)
    all_leave(driver)
    return driver


def test_joining_and_leaving_burns_no_index_of_a_run_that_has_not_begun():
    """One owner with a few stakes takes every index of an open run and leaves it again.

    The stakes come back after unbonding: the attack costs fees. Before the first round no ring
    account and no audit can name the indices, so they must be free for others at once.
    Threat T56.
    """
    driver = RoundDriver(0, capacity=4, audit_cap=2, max_witness_only=1)
    attacker = key("attacker")
    driver.chain.airdrop(attacker.pubkey(), 100 * SOL)
    for index in range(4):
        terms = make.JoinTerms(index, 3, key("a", index).pubkey(), "http://a")
        driver.send(make.join_run(driver.at, attacker.pubkey(), terms), attacker)
        driver.send(make.leave_run(driver.at, attacker.pubkey()), attacker)
    assert newcomer_joins(driver, "bob")


def test_a_run_whose_members_all_leave_in_the_last_round_stores_its_root_and_ends():
    """Four honest participants leave as soon as their last payload is sent.

    Their last duty is the vote for the final root. If they are gone before it, training since the
    newest checkpoint is lost and nobody is left who could bring the run to its end.
    """
    driver = RoundDriver(4, max_rounds=3)
    driver.start()
    driver.play(2)
    all_leave(driver)
    assert_fields(driver.run, phase=Phase.FINISHED, root_round=3)
    assert all(entry.status == Status.LEFT for entry in driver.entries[:4])


def test_a_run_that_halts_after_its_last_round_ends():
    """Nobody votes in the root-only step, all go home. Round and max_rounds are equal for ever."""
    driver = RoundDriver(2, max_rounds=2)
    driver.start()
    driver.play(2)
    assert driver.run.phase == Phase.COOLDOWN
    while driver.run.phase == Phase.COOLDOWN:
        driver.run_out()
        driver.chain.advance(driver.params.close_grace_slots + 1)
        driver.close_void()
    assert driver.run.phase == Phase.HALTED
    driver.run_out()
    for index in range(2):
        driver.leave(index)
    driver.advance_phase()
    wait_long(driver)
    assert_finishes(driver)


def test_a_jailed_member_that_is_needed_does_not_lock_the_run():
    """Jail lasts rounds; a run that waits has none. With it a run of exactly the minimum stops.

    So the jailed one may come back while no round is open.
    """
    driver = RoundDriver(3, capacity=3, audit_cap=1, max_witness_only=0, min_members=3)
    driver.start()
    driver.jail(2)
    driver.cool_down()
    assert driver.run.phase == Phase.WAITING_FOR_MEMBERS
    assert driver.entries[2].status == Status.JAILED
    wait_long(driver)
    driver.post_ready(2)
    driver.advance_phase()
    assert driver.run.phase == Phase.WARMUP


def test_newcomers_that_never_become_ready_cannot_keep_an_abandoned_run_from_ending():
    """Two fresh stakes join whenever the run has waited almost long enough, and are never ready.

    Each Warmup that fails would begin the wait anew, so that the funder never gets its pool back.
    The wait counts from the last closed round instead, and after it one Warmup is given, no more.
    Threat T57.
    """
    driver = abandoned()
    since = driver.run.waiting_since
    assert since == driver.run.phase_start_slot
    for _ in range(2):
        driver.chain.advance(driver.params.unbond_slots - 100)
        newcomers = [driver.add(), driver.add()]
        driver.advance_phase()
        assert driver.run.phase == Phase.WARMUP
        driver.run_out()
        driver.advance_phase()
        assert_fields(driver.run, phase=Phase.WAITING_FOR_MEMBERS, waiting_since=since)
        for index in newcomers:
            driver.leave(index)
    # Now it is long enough. Two more have had their Warmup: they come too late to hold it up.
    driver.add()
    driver.add()
    landed = driver.advance_phase()
    assert landed.event("PhaseStarted").phase == Phase.FINISHED


def test_newcomers_get_one_warmup_however_long_the_run_has_waited():
    """Nobody may end a run under the feet of members that come back late and want to train."""
    driver = abandoned()
    wait_long(driver)
    newcomers = [driver.add(), driver.add()]
    driver.advance_phase()
    assert driver.run.phase == Phase.WARMUP
    driver.run_out()
    driver.advance_phase()
    assert driver.run.phase == Phase.WAITING_FOR_MEMBERS
    for index in newcomers:
        driver.post_ready(index)
    driver.advance_phase()
    assert driver.run.phase == Phase.WARMUP, "the ready begin even now"
    driver.advance_phase()
    assert driver.run.phase == Phase.COMMIT
    driver.commit_all(newcomers)
    driver.attest_all(newcomers)
    driver.close()
    assert_fields(driver.run, waiting_since=NONE, flags=0)


def test_a_run_that_too_few_come_back_to_ends():
    """Half of the members never answer again. The others must not hold the pool for ever."""
    driver = RoundDriver(2)
    driver.start()
    driver.play(2)
    while driver.run.phase in (Phase.COMMIT, Phase.ATTEST):
        driver.commit_all([0])
        driver.attest_all([0])
        driver.chain.advance(driver.params.close_grace_slots + 1)
        driver.close()
    if driver.run.phase == Phase.COOLDOWN:
        driver.cool_down()
    assert driver.run.phase == Phase.WAITING_FOR_MEMBERS
    wait_long(driver)
    assert_finishes(driver)
