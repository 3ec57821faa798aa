"""Grinding: whoever cranks tries to choose who is audited, and who sits on a committee."""

import pytest
from solders.instruction import Instruction
from solders.system_program import TransferParams, transfer
from support.program.audits import MISMATCH, OK
from support.program.cases import PAYLOAD, CaseDriver
from support.program.losses import assert_untouched, seats_of
from support.program.rounds import SLOTS_LISTED

from troth_attestation import sampling
from troth_attestation.quorum import CaseOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.view import SeedStatus

TARGET = 3
SOME = {"p_base_ppm": 300_000, "p_new_ppm": 300_000}
"""Some are sampled, so that there is something to grind for."""

GRID = {"seed_delay_slots": 8, "attest_slots": 120, "verdict_reveal_slots": 400}
GRID |= {"vesting_slots": 9_000, "unbond_slots": 9_000}
"""The delay of a public run: seeds lie on a grid of 60 slots for rounds, of 100 for juries."""

LACKS_LAMPORTS = "Custom(1)"
"""The system program's refusal of a transfer."""


def closed(**changes: int) -> CaseDriver:
    """A run whose round 0 has closed in this slot."""
    driver = CaseDriver(12, **{**SOME, **changes})
    driver.start()
    driver.play(1)
    return driver


def impossible(driver: CaseDriver) -> Instruction:
    """A transfer that reverts its transaction: more lamports than the cranker has."""
    who = driver.cranker.pubkey()
    everything = driver.chain.accounts.balance(who) + 1
    return transfer(TransferParams(from_pubkey=who, to_pubkey=driver.at.vault, lamports=everything))


def revert_each_slot(driver: CaseDriver, instruction: Instruction, num: int) -> None:
    """Send it beside something that fails, slot after slot: a wrapper that does not like what
    it sees undoes the whole."""
    for _ in range(num):
        refused = driver.refused([instruction, impossible(driver)], driver.cranker)
        assert refused == LACKS_LAMPORTS, "nothing else stopped it"
        driver.chain.advance()


def test_who_reverts_a_seed_that_it_does_not_like_finds_the_same_one_later() -> None:
    """A cheat's partner freezes the seed in a transaction that fails if the cheat is sampled.

    It may do so in every slot in which the seed can be frozen: it always reads the same slot, which
    was named before its hash existed. In the end the same targets are sampled, with the same seats,
    for any cranker. Threat T27.
    """
    sampled = []
    for num_reverted in (0, 1, 40):
        driver = closed()
        driver.chain.advance(driver.round(0).seed_slot + 1 - driver.slot)
        freeze = life.freeze_seed(driver.at, driver.cranker.pubkey(), 0)
        revert_each_slot(driver, freeze, num_reverted)
        assert driver.round(0).seed_status == SeedStatus.PENDING
        honest = driver.owners[num_reverted % 12]
        driver.send(life.freeze_seed(driver.at, honest.pubkey(), 0), honest)
        frozen = driver.round(0)
        seats = [sampling.seats_of(frozen.seed, i, frozen.eligible) for i in range(12)]
        sampled.append((frozen.seed, frozen.sampled, seats))
    assert sampled[0] == sampled[1] == sampled[2]
    assert 0 < sampled[0][1].bit_count() < 12


def test_who_reverts_a_jury_that_it_does_not_like_gets_the_same_one() -> None:
    """The accused draws its own committee, and undoes it until its friends are on it.

    The accusation has named the slot. Caller and moment change nothing, and the first honest crank
    ends it. Threat T27.
    """
    drawn = []
    for num_reverted in (0, 25):
        driver = CaseDriver.started()
        driver.challenge(driver.outsider("challenger"), 0, TARGET, PAYLOAD)
        case = driver.case(0, TARGET, PAYLOAD)
        driver.chain.advance(case.case_seed_slot + 1 - driver.slot)
        revert_each_slot(driver, driver.draw_instruction(case), num_reverted)
        seated = driver.seat_jury(case)
        drawn.append((seated.case_seed, [juror.index for juror in seated.jurors]))
        driver.take_votes(seated, [OK] * len(seated.jurors))
        assert driver.settle_case(seated).event("CaseSettled").outcome == CaseOutcome.ACQUITTED
        assert_untouched(driver)
    assert drawn[0] == drawn[1]


def test_an_audit_that_is_opened_and_reverted_seats_the_same_witnesses() -> None:
    """A cheat opens its own audit and undoes it, in the hope of other seats at the next try.

    Seats follow from the frozen seed and from who was eligible when the round opened. That one of
    them has left meanwhile seats nobody else. Threat T27.
    """
    driver = CaseDriver.started()
    opening = driver.open_instruction(0, TARGET)
    frozen = driver.round(0)
    wanted = list(sampling.seats_of(frozen.seed, TARGET, frozen.eligible))
    revert_each_slot(driver, opening, 5)
    leaver = driver.owners[wanted[0]]
    driver.send(life.leave_run(driver.at, leaver.pubkey()), leaver)
    driver.open_audit(0, TARGET)
    audit = driver.of(0, TARGET)
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
    driver = closed(p_base_ppm=500_000, p_new_ppm=500_000, **patient)
    cranker = driver.cranker
    retarget = life.retarget_seed(driver.at, cranker.pubkey(), 0)
    freeze = life.freeze_seed(driver.at, cranker.pubkey(), 0)
    driver.chain.advance(driver.round(0).seed_slot + SLOTS_LISTED - driver.slot)
    assert driver.refused(retarget, cranker) == "SeedNotLost"
    if is_lost:
        for _ in range(2):
            driver.chain.advance(600)
            assert driver.refused(freeze, cranker) == "SeedSlotLost"
            driver.send(retarget, cranker)
        assert driver.refused(driver.open_instruction(0, TARGET), cranker) == "SeedNotFrozen"
    else:
        driver.freeze(0)
    driver.play(1)
    sampled = driver.draw(1).event("SeedFrozen").sampled
    assert (sampled == 0xFFF) == is_lost, "twice one half is everybody"
    assert_untouched(driver)


def on_grid(slot: int, step: int) -> int:
    """The first slot of the grid at least eight slots later, by hand."""
    return next(one for one in range(slot + 8, slot + 8 + step) if one % step == 0)


def seed_of_late_close(hold: int) -> tuple[int, int]:
    """The slot of a close that three members held back for so long, and that of its seed."""
    driver = CaseDriver(12, **GRID)
    driver.start()
    driver.commit_all()
    for index in range(9):
        driver.attest(index)
    driver.chain.advance(hold)
    assert driver.refused(driver.close_instruction(), driver.cranker) == "PhaseNotOver"
    for index in range(9, 12):
        driver.attest(index)
    closed_in = driver.slot
    driver.close()
    return closed_in, driver.round(0).seed_slot


def test_who_holds_attestations_back_does_not_choose_the_leader_of_the_seed() -> None:
    """A quarter attests when a friendly leader's slot follows, at no cost, all through Attest.

    All closes between two slots of a grid have the same seed slot, so that there are three leaders
    to choose from and not thirty. Threat T28.
    """
    found = [seed_of_late_close(hold) for hold in (1, 20, 60, 100)]
    assert [seed for _, seed in found] == [on_grid(closed_in, 60) for closed_in, _ in found]
    assert len({seed for _, seed in found}) <= 3


def seed_of_late_reveal(hold: int) -> tuple[int, int]:
    """The slot in which the last seat lets its audit end, and that of the jury's seed."""
    driver = CaseDriver.started(12, **GRID)
    driver.post(0, TARGET)
    driver.take_verdicts(0, TARGET, [MISMATCH, MISMATCH, OK])
    driver.extend(0, TARGET)
    audit = driver.of(0, TARGET)
    shown = []
    for seat in audit.judging[audit.first_acting :]:
        commit, reveal = driver.commit_instructions(audit, seat.index, MISMATCH)
        driver.send(commit, driver.sessions[seat.index])
        shown.append((reveal, driver.sessions[seat.index]))
    driver.send(*shown[0])
    driver.chain.advance(hold)
    assert driver.refused(driver.settle_instruction(0, TARGET), driver.cranker) == "WindowOpen"
    driver.send(*shown[1])
    ended_in = driver.slot
    landed = driver.settle(0, TARGET)
    assert "Penalised" not in landed.names(), "to wait costs nothing"
    return ended_in, landed.event("AuditSettled").case_seed_slot


def test_the_last_seat_to_reveal_does_not_choose_the_leader_of_the_jury() -> None:
    """It reveals and settles when a friendly leader's slot follows, and is paid like the others.

    There are five slots to choose from, and not one of each leader in the window. Threat T28.
    """
    found = [seed_of_late_reveal(hold) for hold in (1, 40, 80, 390)]
    assert [seed for _, seed in found] == [on_grid(ended_in, 100) for ended_in, _ in found]
    assert len({seed for _, seed in found}) < len(found)


def test_the_opener_of_a_case_does_not_choose_the_leader_of_the_jury() -> None:
    """A bonded case waits for a slot of the same grid. Threat T28."""
    seeds = []
    for wait in (1, 41):
        driver = CaseDriver.started(12, **GRID)
        driver.chain.advance(wait)
        opened_in = driver.slot
        driver.challenge(driver.outsider("challenger"), 0, TARGET, PAYLOAD)
        seeds.append(driver.case(0, TARGET, PAYLOAD).case_seed_slot)
        assert seeds[-1] == on_grid(opened_in, 100)
