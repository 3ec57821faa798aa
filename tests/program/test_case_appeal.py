"""Appeals, the council, the breaker and the cap of an epoch."""

import pytest
from support.fields import assert_fields
from support.program.audits import MISMATCH, OK, UNAVAILABLE
from support.program.cases import PAYLOAD, POSSESSION, STAKE, CaseDriver
from support.program.recounted import findings_of

from troth_attestation.quorum import CaseOutcome
from troth_attestation.verdict import VerdictKind
from troth_audit.replay.findings import Rule
from troth_coordinator.chain import case_instructions as make
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.case_instructions import NO_SUBJECT
from troth_coordinator.chain.event_types_life import StakeWithdrawn
from troth_coordinator.rules.audit_view import AuditFlag, AuditView
from troth_coordinator.rules.ids import NONE, Lamports
from troth_coordinator.rules.view import Status

ALL_MISMATCH = [MISMATCH] * 5
PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
"""Cases end while the next round is still in its Commit."""


def convicted(driver: CaseDriver, target: int = 3) -> AuditView:
    """Five seats accuse, the committee agrees: nobody but the target pays."""
    driver.judge(0, target, ALL_MISMATCH)
    driver.decide(driver.case(0, target), MISMATCH)
    return driver.case(0, target)


def test_a_reversed_conviction_gives_everything_back() -> None:
    driver = CaseDriver.started()
    had = driver.entries[3]
    case = convicted(driver)
    taken = case.escrow + case.juror_fees
    assert case.juror_fees > 0
    assert driver.appeal(case).event("CaseAppealed").stage_end == (
        case.appeal_end + driver.params.appeal_slots
    )
    assert (
        driver.refused(driver.reverse_instruction(case), driver.outsider("council")) == "WindowOpen"
    )
    driver.run_to(case.appeal_end)
    driver.reverse(case)
    closed = driver.release(case).event("AuditClosed")
    assert_fields(closed, returned=taken, pool=0, burned=0, shortfall=0)
    entry = driver.entries[3]
    assert_fields(entry, claimable=taken, frozen=0, work_faults=0)
    assert taken == STAKE // 2 + sum(had.bucket_amount)
    assert driver.burned() == 0
    owner = driver.owners[3]
    before = driver.chain.accounts.balance(owner.pubkey())
    driver.send(life.claim_reward(driver.at, owner.pubkey()), owner)
    assert driver.chain.accounts.balance(owner.pubkey()) > before + taken - 100_000


def test_only_the_convicted_owner_appeals_once_and_in_time() -> None:
    driver = CaseDriver.started()
    driver.judge(0, 3, ALL_MISMATCH)
    waiting = driver.case(0, 3)
    owner, other = driver.owners[3], driver.owners[4]
    mine = make.appeal_case(driver.at, owner.pubkey(), waiting)
    assert driver.refused(mine, owner) == "NotConvicted"
    driver.decide(waiting, MISMATCH)
    foreign = make.appeal_case(driver.at, other.pubkey(), waiting)
    assert driver.refused(foreign, other) == "WrongOwner"
    driver.appeal(waiting)
    assert driver.refused(mine, owner) == "AlreadyAppealed"


def test_an_appeal_after_its_window_is_too_late() -> None:
    driver = CaseDriver.started()
    case = convicted(driver)
    driver.run_to(case.appeal_end)
    mine = make.appeal_case(driver.at, driver.owners[3].pubkey(), case)
    assert driver.refused(mine, driver.owners[3]) == "WindowOver"


def test_the_council_acts_only_on_what_was_appealed_and_before_the_end() -> None:
    driver = CaseDriver.started()
    case = convicted(driver)
    council = driver.outsider("council")
    driver.run_to(case.appeal_end)
    assert driver.refused(driver.reverse_instruction(case), council) == "NotReversible"


def test_the_council_is_too_late_after_the_escrow_and_acts_once() -> None:
    driver = CaseDriver.started()
    case = convicted(driver)
    driver.appeal(case)
    council, thief = driver.outsider("council"), driver.outsider("thief")
    driver.run_to(case.appeal_end)
    stolen = make.reverse_case(driver.at, thief.pubkey(), case)
    assert driver.refused(stolen, thief) == "WrongCouncil"
    driver.reverse(case)
    assert driver.refused(driver.reverse_instruction(case), council) == "AlreadyReversed"

    late = CaseDriver.started()
    case = convicted(late)
    late.appeal(case)
    late.run_to(late.case(0, 3).stage_end)
    council = late.outsider("council")
    assert late.refused(late.reverse_instruction(case), council) == "WindowOver"


def test_an_acquittal_cannot_be_appealed_or_reversed() -> None:
    driver = CaseDriver.started()
    driver.challenge(driver.outsider("challenger"), 0, 2, PAYLOAD)
    case = driver.case(0, 2, PAYLOAD)
    driver.decide(case, OK)
    council = driver.outsider("council")
    assert driver.refused(driver.reverse_instruction(case), council) == "NotConvicted"


def test_the_breaker_makes_convictions_wait_for_the_council() -> None:
    driver = CaseDriver.started()
    for target in range(5):
        driver.judge(0, target, ALL_MISMATCH)
    assert driver.run.accused == 0b11111
    case = driver.case(0, 0)
    settled = driver.decide(case, MISMATCH).event("CaseSettled")
    assert settled.flags & AuditFlag.BREAKER
    assert settled.stage_end == settled.appeal_end + driver.params.breaker_slots
    driver.run_to(settled.appeal_end)
    driver.reverse(case)
    closed = driver.release(case).event("AuditClosed")
    assert closed.returned == settled.stake + settled.unvested


def test_the_breaker_is_read_at_the_conviction_too() -> None:
    """When the committee was drawn, one of twelve was accused; when it convicts, five are."""
    driver = CaseDriver.started()
    driver.judge(0, 0, ALL_MISMATCH)
    seated = driver.seat_jury(driver.case(0, 0))
    assert not seated.flags & AuditFlag.BREAKER
    for target in range(1, 5):
        driver.judge(0, target, ALL_MISMATCH)
    driver.take_votes(seated, [MISMATCH] * len(seated.jurors))
    settled = driver.settle_case(seated).event("CaseSettled")
    assert settled.flags & AuditFlag.BREAKER
    assert settled.stage_end == settled.appeal_end + driver.params.breaker_slots


def test_the_breaker_of_the_draw_holds_although_a_new_epoch_starts_new_counts() -> None:
    driver = CaseDriver.started(rounds_per_epoch=4)
    for target in range(5):
        driver.judge(0, target, ALL_MISMATCH)
    seated = driver.seat_jury(driver.case(0, 0))
    assert seated.flags & AuditFlag.BREAKER
    driver.play(4)
    assert driver.run.epoch == 1
    driver.take_votes(seated, [MISMATCH] * len(seated.jurors))
    settled = driver.settle_case(seated).event("CaseSettled")
    assert_fields(driver.run, accused=0, convicted=(1, 0, 0, 0))
    assert settled.stage_end == settled.appeal_end + driver.params.breaker_slots


def test_convictions_beyond_the_cap_wait_for_the_next_epoch() -> None:
    driver = CaseDriver.started(6, rounds_per_epoch=4, min_members=2, keep_rounds=4)
    for target in range(3):
        driver.judge(0, target, ALL_MISMATCH)
    for target in range(2):
        driver.decide(driver.case(0, target), MISMATCH)
    third = driver.vote_all(driver.case(0, 2), MISMATCH)
    assert (
        driver.refused(driver.settle_case_instruction(third), driver.cranker) == "SlashCapReached"
    )
    assert driver.entries[2].frozen == 1
    driver.play(4)
    assert driver.run.epoch == 1
    assert driver.settle_case(third).event("CaseSettled").outcome == CaseOutcome.CONVICTED
    assert driver.run.convicted == (0b100, 0, 0, 0)


@pytest.mark.parametrize("said", [MISMATCH, UNAVAILABLE])
def test_no_stake_leaves_while_the_cap_postpones_a_conviction(said: VerdictKind) -> None:
    """Seats that were served nothing freeze nobody; the votes of their jury do."""
    slow = {"commit_slots": 3_000, "vesting_slots": 14_000, "unbond_slots": 14_000}
    driver = CaseDriver.started(5, seat_load=15, openings_slots=900, **slow)
    driver.judge(0, 1, [MISMATCH] * 4)
    driver.decide(driver.case(0, 1), MISMATCH, people=[1])
    driver.judge(0, 2, [said] * 3 + [MISMATCH])
    assert driver.entries[2].frozen == (said == MISMATCH)
    voted = driver.vote_all(driver.case(0, 2), MISMATCH)
    waiting = driver.settle_case_instruction(voted, people=[2])
    assert driver.refused(waiting, driver.cranker) == "SlashCapReached"
    driver.leave(2)
    driver.chain.advance(driver.params.unbond_slots + 1)
    owner = driver.owners[2]
    taken = life.withdraw_stake(driver.at, owner.pubkey(), Lamports(0))
    assert driver.refused(taken, owner) == "Frozen"
    newest = driver.ledger.events[-1]
    told = {"run": newest.run, "sequence": newest.sequence + 1, "slot": driver.slot}
    paid = StakeWithdrawn(**told, body=b"", owner=owner.pubkey(), lamports=STAKE)
    (found,) = findings_of([*driver.ledger.events, paid])
    assert_fields(found, rule=Rule.VAULT, expected="nothing paid out under an accusation")


def test_the_second_conviction_takes_everything_and_bars_for_good() -> None:
    driver = CaseDriver.started(12, **PATIENT)
    driver.offend(3)
    owner, second = driver.owners[3], driver.run.round - 1
    case = driver.voted(second, 3)
    missing = driver.settle_case_instruction(case)
    assert driver.refused(missing, driver.cranker) == "ParticipantMissing"
    settled = driver.settle_case(case, people=[3]).event("CaseSettled")
    assert_fields(settled, stake=STAKE, status=Status.BARRED)
    driver.release(case)
    entry = driver.entries[3]
    assert_fields(entry, stake=0, status=Status.BARRED, frozen=0)
    terms = life.JoinTerms(12, 3, driver.sessions[3].pubkey(), "http://again")
    again = life.join_run(driver.at, owner.pubkey(), terms)
    assert driver.refused(again, owner) == "ParticipantBarred"


@pytest.mark.parametrize("is_reversed", [True, False])
def test_a_reversal_ends_the_jail_of_a_false_possession(is_reversed: bool) -> None:
    """The third strike jails for an epoch; reversed, the way back is open again at once."""
    driver = CaseDriver.started(**PATIENT)
    stranger = driver.outsider("challenger")
    for target, kind, subject in ((1, PAYLOAD, NO_SUBJECT), (2, PAYLOAD, NO_SUBJECT),
                                  (3, POSSESSION, 4)):  # fmt: skip
        driver.challenge(stranger, 0, target, kind, subject)
        landed = driver.decide(driver.case(0, target, kind), MISMATCH)
    assert landed.event("CaseSettled").jailed == 1 << 3
    case = driver.case(0, 3, POSSESSION)
    driver.appeal(case)
    driver.run_to(case.appeal_end)
    if is_reversed:
        driver.reverse(case)
    driver.release(case)
    entry, owner = driver.entries[3], driver.owners[3]
    assert entry.status == Status.JAILED
    assert entry.jailed_until_round == driver.run.round + (0 if is_reversed else 51)
    missing = driver.params.min_stake_lamports - entry.stake
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), missing), owner)
    if not is_reversed:
        assert driver.refused(driver.ready_instruction(3), driver.sessions[3]) == "StillJailed"
        return
    driver.post_ready(3)
    driver.play(1)
    driver.activate(3)


def test_a_reversal_takes_the_strike_back_and_ends_no_other_jail() -> None:
    """The jail came from a later strike, for somebody else's payload, and outlasts the reversal."""
    driver = CaseDriver.started(**PATIENT)
    stranger = driver.outsider("challenger")
    for target, kind, subject in ((3, POSSESSION, 4), (1, PAYLOAD, NO_SUBJECT)):
        driver.challenge(stranger, 0, target, kind, subject)
        driver.decide(driver.case(0, target, kind), MISMATCH)
    decided = driver.run.round
    assert driver.entries[3].strikes == 2
    assert sorted(driver.entries[3].strike_rounds) == [decided, decided, NONE]
    case = driver.case(0, 3, POSSESSION)
    driver.appeal(case)
    driver.challenge(stranger, 0, 2, PAYLOAD, NO_SUBJECT)
    driver.decide(driver.case(0, 2, PAYLOAD), MISMATCH)
    jailed_until = driver.entries[3].jailed_until_round
    driver.run_to(case.appeal_end)
    driver.reverse(case)
    driver.release(case)
    assert_fields(driver.entries[3], status=Status.JAILED, jailed_until_round=jailed_until)
    assert_fields(driver.entries[3], strikes=2, strike_rounds=(NONE, NONE, NONE))


def test_a_reversal_ends_no_jail_that_began_later() -> None:
    """Its own jail was over, and the target back, when others vouched for none of its payloads."""
    patient = {**PATIENT, "appeal_slots": 3_000, "vesting_slots": 20_000, "unbond_slots": 20_000}
    driver = CaseDriver(6, **{**patient, "rounds_per_epoch": 4, "attest_slots": 200})
    driver.start()
    for _ in range(2):
        driver.commit_all()
        driver.attest_all(bitmap=driver.open.committed & ~(1 << 3))
        driver.close()
        driver.chain.advance()
    driver.play(1)
    round_ = driver.run.round - 1
    driver.challenge(driver.outsider("challenger"), round_, 3, POSSESSION, 1)
    landed = driver.decide(driver.case(round_, 3, POSSESSION), MISMATCH)
    assert landed.event("CaseSettled").jailed == 1 << 3
    case = driver.case(round_, 3, POSSESSION)
    assert case.jailed_until == driver.entries[3].jailed_until_round
    driver.play(5)
    driver.post_ready(3)
    driver.play(1)
    driver.activate(3)
    driver.play(1)
    driver.jail(3)
    jailed_until = driver.entries[3].jailed_until_round
    assert jailed_until > driver.run.round
    driver.appeal(case)
    driver.run_to(case.appeal_end)
    driver.reverse(case)
    driver.release(case)
    assert_fields(driver.entries[3], status=Status.JAILED, jailed_until_round=jailed_until)
    assert driver.refused(driver.ready_instruction(3), driver.sessions[3]) == "StillJailed"
    assert findings_of(driver.ledger.events) == []


def test_a_reversed_false_possession_is_no_strike() -> None:
    driver = CaseDriver.started(**PATIENT)
    driver.challenge(driver.outsider("challenger"), 0, 3, POSSESSION, 4)
    case = driver.case(0, 3, POSSESSION)
    driver.decide(case, MISMATCH)
    assert driver.entries[3].strikes == 1
    driver.appeal(case)
    driver.run_to(driver.case(0, 3, POSSESSION).appeal_end)
    driver.reverse(case)
    driver.release(case)
    assert_fields(driver.entries[3], strikes=0, strike_rounds=(NONE, NONE, NONE))


@pytest.mark.parametrize("people", [[], [3]])
def test_a_reversal_lifts_the_bar(people: list[int]) -> None:
    driver = CaseDriver.started(12, **PATIENT)
    driver.offend(3)
    earned = sum(driver.entries[3].bucket_amount)
    driver.bar(3)
    second = driver.run.round - 1
    case = driver.case(second, 3)
    driver.appeal(case)
    driver.run_to(driver.case(second, 3).appeal_end)
    driver.reverse(case)
    if not people:
        now = driver.case(second, 3)
        driver.run_to(max(now.stage_end, now.case_end))
        release = driver.release_instruction(case)
        assert driver.refused(release, driver.cranker) == "ParticipantMissing"
        return
    driver.release(case, people)
    entry = driver.entries[3]
    assert_fields(entry, status=Status.LEFT, claimable=STAKE + earned)
    assert entry.work_faults == 1, "the first conviction stands"
