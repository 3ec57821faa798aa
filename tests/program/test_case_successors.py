"""Who holds an index by now answers for nothing that its former holder did, saw or vouched for."""

from program.audits import MISMATCH
from program.cases import PAYLOAD, ROOT, Trial
from program.rounds import key

from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.view import Status

SHORT_RING = {"ring": 4, "keep_rounds": 2, "pool": 0}
"""An index is free again after four rounds; without rewards nobody waits for them to vest."""


def succeed(trial: Trial, index: int) -> None:
    """Somebody new takes the index of one who is gone."""
    new = key("newcomer", index)
    trial.chain.airdrop(new.pubkey(), 10**10)
    terms = life.JoinTerms(index, 3, new.pubkey(), "http://new")
    former = trial.owners[index].pubkey()
    trial.send(life.join_run(trial.at, new.pubkey(), terms, former), new)
    assert trial.entries[index].owner == bytes(new.pubkey())


def hand_over(trial: Trial, index: int) -> None:
    """The holder leaves, the ring turns once, somebody new joins."""
    owner = trial.owners[index]
    trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    trial.play(trial.params.ring + 1)
    succeed(trial, index)


def test_a_new_holder_is_no_juror_in_the_place_of_an_old_witness() -> None:
    trial = Trial.in_session(8, **SHORT_RING)
    case = trial.accuse(0, 3)
    gone, stays = sorted(set(range(8)) - {3, *(seat.index for seat in case.seats)})
    hand_over(trial, gone)
    assert trial.entries[gone].status == Status.PENDING and case.eligible >> gone & 1
    seated = trial.seat_jury(case)
    jurors = {juror.index for juror in seated.jurors}
    assert jurors == {stays, *(seat.index for seat in case.seats)}


def test_a_new_holder_gets_no_strike_for_what_the_old_one_vouched_for() -> None:
    trial = Trial.in_session(8, **SHORT_RING)
    trial.challenge(trial.outsider("challenger"), 0, 3, PAYLOAD)
    case = trial.case(0, 3, PAYLOAD)
    assert case.vouchers == 0xFF
    hand_over(trial, 5)
    settled = trial.decide(case, MISMATCH).event("CaseSettled")
    assert settled.vouchers == 0xFF & ~(1 << 5)
    assert [entry.strikes for entry in trial.entries[:8]] == [1, 1, 1, 1, 1, 0, 1, 1]


def test_a_new_holder_is_not_accused_of_what_the_old_one_did_before_it_was_barred() -> None:
    """A paused run keeps the round of the bar in the ring after the index is free again."""
    patient = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
    trial = Trial.in_session(8, 2, **SHORT_RING, **patient)
    barred_in = trial.run.round
    trial.commit(3)
    for round_ in (0, 1):
        trial.judge(round_, 3, [MISMATCH] * 5)
        trial.decide(trial.case(round_, 3), MISMATCH, people=[3])
    assert trial.entries[3].status == Status.BARRED
    for round_ in (0, 1):
        trial.release(trial.case(round_, 3))
    trial.play_rest()
    trial.play(trial.params.ring - 2)
    boss = trial.authority
    trial.send(life.pause_run(trial.at, boss.pubkey()), boss)
    trial.play(1)
    succeed(trial, 3)
    held = trial.round(barred_in)
    assert held.committed >> 3 & 1 and trial.run.round == barred_in + trial.params.ring
    stranger = trial.outsider("challenger")
    for kind in (ROOT, PAYLOAD):
        claim = trial.challenge_instruction(stranger, barred_in, 3, kind)
        assert trial.refused(claim, stranger) == "CaseWithoutSubject"
    other = trial.challenge_instruction(stranger, barred_in, 4, ROOT)
    trial.send(other, stranger)
