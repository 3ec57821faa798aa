"""Grinding: whoever cranks tries to choose who is audited, and who sits on a committee."""

import pytest
from adversarial.judging_program import assert_untouched, seats_of
from program.audits import OK
from program.cases import PAYLOAD, Trial
from program.rounds import SLOTS_LISTED
from solders.instruction import Instruction
from solders.system_program import TransferParams, transfer

from troth_attestation import sampling
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.view import SeedStatus

TARGET = 3
SOME = {"p_base_ppm": 300_000, "p_new_ppm": 300_000}
"""Some are sampled, so that there is something to grind for."""

LACKS_LAMPORTS = "Custom(1)"
"""The system program's refusal of a transfer."""


def closed(**changes: int) -> Trial:
    """A run whose round 0 has closed in this slot."""
    trial = Trial(12, **{**SOME, **changes})
    trial.start()
    trial.play(1)
    return trial


def impossible(trial: Trial) -> Instruction:
    """What reverts the transaction around it: more lamports than the cranker has."""
    who = trial.cranker.pubkey()
    everything = trial.chain.accounts.balance(who) + 1
    return transfer(TransferParams(from_pubkey=who, to_pubkey=trial.at.vault, lamports=everything))


def revert_each_slot(trial: Trial, instruction: Instruction, num: int) -> None:
    """Send it beside something that fails, slot after slot: a wrapper that does not like what
    it sees undoes the whole."""
    for _ in range(num):
        refused = trial.refused([instruction, impossible(trial)], trial.cranker)
        assert refused == LACKS_LAMPORTS, "nothing else stopped it"
        trial.chain.advance()


def test_who_reverts_a_seed_that_it_does_not_like_finds_the_same_one_later() -> None:
    """A cheat's partner freezes the seed in a transaction that fails if the cheat is sampled.

    It may do so in every slot in which the seed can be frozen: it always reads the same slot, which
    was named before its hash existed. Whoever freezes it in the end, the same are sampled, with the
    same seats. Threat T27.
    """
    sampled = []
    for num_reverted in (0, 1, 40):
        trial = closed()
        trial.chain.advance(trial.round(0).seed_slot + 1 - trial.slot)
        freeze = life.freeze_seed(trial.at, trial.cranker.pubkey(), 0)
        revert_each_slot(trial, freeze, num_reverted)
        assert trial.round(0).seed_status == SeedStatus.PENDING
        honest = trial.owners[num_reverted % 12]
        trial.send(life.freeze_seed(trial.at, honest.pubkey(), 0), honest)
        frozen = trial.round(0)
        seats = [sampling.seats_of(frozen.seed, i, frozen.eligible) for i in range(12)]
        sampled.append((frozen.seed, frozen.sampled, seats))
    assert sampled[0] == sampled[1] == sampled[2]
    assert 0 < sampled[0][1].bit_count() < 12


def test_who_reverts_a_committee_that_it_does_not_like_gets_the_same_one() -> None:
    """The accused draws its own committee, and undoes it until its friends are on it.

    The accusation has named the slot. Caller and moment change nothing, and the first honest crank
    ends it. Threat T27.
    """
    drawn = []
    for num_reverted in (0, 25):
        trial = Trial.in_session()
        trial.challenge(trial.outsider("challenger"), 0, TARGET, PAYLOAD)
        case = trial.case(0, TARGET, PAYLOAD)
        trial.chain.advance(case.case_seed_slot + 1 - trial.slot)
        revert_each_slot(trial, trial.draw_instruction(case), num_reverted)
        seated = trial.seat_jury(case)
        drawn.append((seated.case_seed, [juror.index for juror in seated.jurors]))
        trial.poll(seated, [OK] * len(seated.jurors))
        assert trial.settle_case(seated).event("CaseSettled").outcome == 2
        assert_untouched(trial)
    assert drawn[0] == drawn[1]


def test_an_audit_that_is_opened_and_reverted_seats_the_same_witnesses() -> None:
    """A cheat opens its own audit and undoes it, in the hope of other seats at the next try.

    Seats follow from the frozen seed and from who was eligible when the round opened. That one of
    them has left meanwhile seats nobody else. Threat T27.
    """
    trial = Trial.in_session()
    opening = trial.open_instruction(0, TARGET)
    frozen = trial.round(0)
    wanted = list(sampling.seats_of(frozen.seed, TARGET, frozen.eligible))
    revert_each_slot(trial, opening, 5)
    leaver = trial.owners[wanted[0]]
    trial.send(life.leave_run(trial.at, leaver.pubkey()), leaver)
    trial.open_audit(0, TARGET)
    audit = trial.of(0, TARGET)
    assert [seat.index for seat in audit.seats] == wanted
    assert seats_of(audit) == wanted[:3]


@pytest.mark.parametrize("is_lost", [True, False])
def test_who_censors_a_seed_gains_one_round_and_pays_with_the_next(is_lost: bool) -> None:
    """A cartel of block producers censors every freeze until the named slot is forgotten.

    A second slot is named once. Is that lost too, the round has no audit, nobody is frozen or fined
    for it, and the round after is sampled at twice the rate: what was saved is owed. A seed that
    was found in time doubles nothing. Threat T29.
    """
    patient = {"commit_slots": 2_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
    trial = closed(p_base_ppm=500_000, p_new_ppm=500_000, **patient)
    cranker = trial.cranker
    retarget = life.retarget(trial.at, cranker.pubkey(), 0)
    freeze = life.freeze_seed(trial.at, cranker.pubkey(), 0)
    trial.chain.advance(trial.round(0).seed_slot + SLOTS_LISTED - trial.slot)
    assert trial.refused(retarget, cranker) == "SeedNotLost"
    if is_lost:
        for _ in range(2):
            trial.chain.advance(600)
            assert trial.refused(freeze, cranker) == "SeedSlotLost"
            trial.send(retarget, cranker)
        assert trial.refused(trial.open_instruction(0, TARGET), cranker) == "SeedNotFrozen"
    else:
        trial.freeze(0)
    trial.play(1)
    sampled = trial.draw(1).event("SeedFrozen").sampled
    assert (sampled == 0xFFF) == is_lost, "twice one half is everybody"
    assert_untouched(trial)
