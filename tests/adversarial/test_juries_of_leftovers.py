"""A minority that waits until the honest are gone, and would then be the whole jury. Threat T70."""

import pytest
from support.fields import assert_fields
from support.program.audits import MISMATCH, OK
from support.program.cases import PAYLOAD, ROOT, STAKE, CaseDriver
from support.program.joining import join, newcomer, terms
from support.program.losses import penalties
from support.program.rounds import SOL, key

from troth_attestation.quorum import CaseOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.economics import CONVICTING
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

EVIL, HONEST = (0, 1, 2), tuple(range(3, 12))
ROUNDS = 3
QUIET = {"p_base_ppm": 0, "p_new_ppm": 0, "audit_cap": 4}
"""No audits: the exact cases need none."""
PATIENT = {"unbond_slots": 9_000, "vesting_slots": 9_000}


def seated_case(driver: CaseDriver, round_: int, victim: int) -> AuditView:
    """A stranger accuses the root vote of a victim, and the jury is drawn."""
    thief = driver.outsider("thief")
    driver.challenge(thief, round_, victim, ROOT)
    return driver.seat_jury(driver.case(round_, victim, ROOT))


def all_vote(driver: CaseDriver, seated: AuditView) -> None:
    """The cartel convicts, everybody else looks and acquits."""
    votes = [MISMATCH if juror.index in EVIL else OK for juror in seated.jurors]
    driver.take_votes(seated, votes)


def held(driver: CaseDriver) -> list[int]:
    """Stake and unbonding of the honest."""
    return [driver.entries[index].stake + driver.entries[index].unbonding for index in HONEST]


@pytest.mark.long(reason="a whole run")
def test_a_quarter_cannot_convict_those_who_took_their_stakes_home() -> None:
    """Three of twelve stay when a run has finished, and the nine others leave.

    With a stranger's bonds they accuse every leaver of a false root in every round of the ring. If
    only those who stay could judge, the three were the jury of every case, and took two thirds of
    all honest stakes. But the leavers were witnesses of those rounds: they are drawn, vote, and
    nobody is convicted.
    """
    driver = CaseDriver(12, max_rounds=ROUNDS, **QUIET, **PATIENT)
    driver.start()
    driver.play(ROUNDS)
    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED
    for index in HONEST:
        driver.leave(index)
    before, outcomes = held(driver), set()
    for round_ in range(ROUNDS):
        for victim in HONEST:
            seated = seated_case(driver, round_, victim)
            jurors = {juror.index for juror in seated.jurors}
            assert len(jurors) == 7 and victim not in jurors and not jurors <= set(EVIL)
            all_vote(driver, seated)
            settled = driver.settle_case(seated).event("CaseSettled")
            outcomes.add(CaseOutcome(settled.outcome))
    assert outcomes <= {CaseOutcome.ACQUITTED, CaseOutcome.NOT_PROVEN}
    assert CaseOutcome.ACQUITTED in outcomes
    assert held(driver) == before == [STAKE] * len(HONEST)


def quick_round(driver: CaseDriver) -> None:
    """A round of the members without a slot between its steps."""
    driver.commit_all()
    driver.attest_all()
    driver.close()


def test_friends_at_the_indices_of_those_who_left_do_not_empty_the_jury() -> None:
    """Nine of twelve leave in mid-run. The three that stay play a ring of rounds within seconds.

    Between the accusation and the draw of its jury, their friends join at the indices of the nine.
    A jury leaves those out who took over an index, so the three would be all of it. But an index is
    not given away while its former holder may be a juror.
    """
    ring = 6
    driver = CaseDriver(12, pool=0, ring=ring, max_rounds=40, **QUIET, **PATIENT)
    driver.start()
    driver.play(1)
    round_ = driver.run.round
    for index in HONEST:
        driver.leave(index)
    driver.play(1)
    left = driver.entries[HONEST[0]].left_round
    while driver.run.round < round_ + ring - 1:
        driver.play(1)
    driver.chain.advance(4)
    victim, *others = HONEST
    driver.challenge(driver.outsider("thief"), round_, victim, ROOT)
    while driver.run.round < left + ring:
        quick_round(driver)
    for index in others:
        friend = newcomer(driver, ("friend", index))
        attempt = join(driver, friend, terms(index, session=key("friend", index).pubkey()))
        assert driver.refused(attempt, friend) == "IndexTaken"
    seated = driver.seat_jury(driver.case(round_, victim, ROOT))
    assert len(seated.jurors) == 7 and not {juror.index for juror in seated.jurors} <= set(EVIL)
    all_vote(driver, seated)
    settled = driver.settle_case(seated).event("CaseSettled")
    assert settled.outcome in {CaseOutcome.ACQUITTED, CaseOutcome.NOT_PROVEN}


def test_a_quarter_cannot_convict_those_who_were_offline_for_two_rounds() -> None:
    """A common outage makes nine of twelve inactive; the three who caused it accuse them meanwhile.

    The nine are drawn although they are inactive. Back in time they acquit; too late, the case is
    not proven. A silent juror pays two fees, the accused pays nothing.
    """
    driver = CaseDriver(12, **QUIET, **PATIENT)
    driver.start()
    driver.play(ROUNDS)
    for _ in range(2):
        driver.commit_all(EVIL)
        driver.attest_all(EVIL)
        driver.close(b"x" * 32)
    assert {driver.entries[index].status for index in HONEST} == {Status.INACTIVE}
    before, outcomes = held(driver), []
    for victim in HONEST[2:]:
        seated = seated_case(driver, 0, victim)
        all_vote(driver, seated)
        outcomes.append(driver.settle_case(seated).event("CaseSettled").outcome)
        num_honest = sum(juror.index in HONEST for juror in seated.jurors)
        is_enough = num_honest >= CONVICTING
        assert outcomes[-1] == (CaseOutcome.ACQUITTED if is_enough else CaseOutcome.NOT_PROVEN)
    assert CaseOutcome.ACQUITTED in outcomes
    assert held(driver) == before
    seated = seated_case(driver, 0, HONEST[1])
    driver.take_votes(seated, [MISMATCH if j.index in EVIL else None for j in seated.jurors])
    driver.run_to(driver.case(0, HONEST[1], ROOT).stage_end)
    landed = driver.settle_case(seated)
    assert_fields(landed.event("CaseSettled"), outcome=CaseOutcome.NOT_PROVEN, stake=0)
    silent = {juror.index for juror in seated.jurors} - set(EVIL)
    assert {event.index for event in penalties(landed)} == silent
    assert driver.entries[HONEST[1]].stake == before[1]


@pytest.mark.parametrize(("num", "seats"), [(12, 7), (4, 3)])
def test_a_jury_whose_members_have_all_left_convicts_all_the_same(num: int, seats: int) -> None:
    """A cheat waits with its malformed payload until everybody goes home.

    Its jury has left, in a run of four down to the last three. They serve from where they are, with
    the session keys that they had, and their fees reach them. The cheat has left too: its tickets
    pay.
    """
    driver = CaseDriver.started(num, **PATIENT)
    for index in range(num):
        driver.leave(index)
    driver.commit_all()
    driver.attest_all()
    driver.close()
    driver.cool_down()
    assert {entry.status for entry in driver.entries[:num]} == {Status.LEFT}
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    seated = driver.seat_jury(driver.case(0, 3, PAYLOAD))
    jurors = [juror.index for juror in seated.jurors]
    assert len(jurors) == seats and 3 not in jurors
    driver.take_votes(seated, [MISMATCH] * seats)
    settled = driver.settle_case(seated, people=[3]).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, unbonding=STAKE // 10, stake=0)
    assert settled.paid == sum(1 << index for index in jurors)


def test_a_juror_that_left_and_lost_its_session_key_votes_with_a_new_one() -> None:
    """A thief hopes that somebody who left has thrown its session key away.

    Its silence would cost it two fees, and help a cheat. While an audit or a case names it, its
    owner may name a new key, in a finished run too, and it is in force at once.
    """
    driver = CaseDriver(4, max_rounds=1, **PATIENT)
    driver.start()
    driver.play(1)
    driver.cool_down()
    for index in range(4):
        driver.leave(index)
    owner, new = driver.owners[1], key("new session")
    driver.chain.airdrop(new.pubkey(), SOL)
    change = life.set_session_key(driver.at, owner.pubkey(), new.pubkey())
    assert driver.refused(change, owner) == "RunFinished", "nothing names it yet"
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    seated = driver.seat_jury(driver.case(0, 3, PAYLOAD))
    assert not driver.send(change, owner).event("SessionKeySet").at_next_open
    lost, _ = driver.vote_instructions(seated, 1, MISMATCH)
    assert driver.refused(lost, driver.sessions[1]) == "WrongSessionKey"
    driver.sessions[1] = new
    driver.take_votes(seated, [MISMATCH] * 3)
    settled = driver.settle_case(seated, people=[3]).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, paid=0b111)
