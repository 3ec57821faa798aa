"""Appeals, the council, the breaker and the cap of an epoch."""

import pytest
from program.audits import MISMATCH, OK
from program.cases import PAYLOAD, POSSESSION, STAKE, Trial

from troth_coordinator.chain import case_instructions as make
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.case_instructions import NO_SUBJECT
from troth_coordinator.rules.audit_view import AuditFlag, AuditView
from troth_coordinator.rules.view import Status

ALL_MISMATCH = [MISMATCH] * 5
PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
"""Cases end while the next round is still in its Commit."""


def convicted(trial: Trial, target: int = 3) -> AuditView:
    """Five seats accuse, the committee agrees: nobody but the target pays."""
    trial.judge(0, target, ALL_MISMATCH)
    trial.decide(trial.case(0, target), MISMATCH)
    return trial.case(0, target)


def test_a_reversed_conviction_gives_everything_back() -> None:
    trial = Trial.in_session()
    had = trial.entries[3]
    case = convicted(trial)
    taken = case.escrow
    assert trial.appeal(case).event("CaseAppealed").stage_end == (
        case.appeal_end + trial.params.appeal_slots
    )
    assert trial.refused(trial.reverse_instruction(case), trial.outsider("council")) == "WindowOpen"
    trial.run_to(case.appeal_end)
    trial.reverse(case)
    closed = trial.release(case).event("AuditClosed")
    assert (closed.returned, closed.treasury, closed.burned) == (taken, 0, 0)
    entry = trial.entries[3]
    assert (entry.claimable, entry.frozen, entry.work_faults) == (taken, 0, 0)
    assert taken == STAKE // 2 + sum(had.bucket_amount)
    assert trial.burned() == 0
    owner = trial.owners[3]
    before = trial.chain.accounts.balance(owner.pubkey())
    trial.send(life.claim_reward(trial.at, owner.pubkey()), owner)
    assert trial.chain.accounts.balance(owner.pubkey()) > before + taken - 100_000


def test_only_the_convicted_owner_appeals_once_and_in_time() -> None:
    trial = Trial.in_session()
    trial.judge(0, 3, ALL_MISMATCH)
    waiting = trial.case(0, 3)
    owner, other = trial.owners[3], trial.owners[4]
    mine = make.appeal_case(trial.at, owner.pubkey(), waiting)
    assert trial.refused(mine, owner) == "NotConvicted"
    trial.decide(waiting, MISMATCH)
    foreign = make.appeal_case(trial.at, other.pubkey(), waiting)
    assert trial.refused(foreign, other) == "WrongOwner"
    trial.appeal(waiting)
    assert trial.refused(mine, owner) == "AlreadyAppealed"


def test_an_appeal_after_its_window_is_too_late() -> None:
    trial = Trial.in_session()
    case = convicted(trial)
    trial.run_to(case.appeal_end)
    mine = make.appeal_case(trial.at, trial.owners[3].pubkey(), case)
    assert trial.refused(mine, trial.owners[3]) == "WindowOver"


def test_the_council_acts_only_on_what_was_appealed_and_before_the_end() -> None:
    trial = Trial.in_session()
    case = convicted(trial)
    council = trial.outsider("council")
    trial.run_to(case.appeal_end)
    assert trial.refused(trial.reverse_instruction(case), council) == "NotReversible"


def test_the_council_is_too_late_after_the_escrow_and_acts_once() -> None:
    trial = Trial.in_session()
    case = convicted(trial)
    trial.appeal(case)
    council, thief = trial.outsider("council"), trial.outsider("thief")
    trial.run_to(case.appeal_end)
    stolen = make.resolve_appeal(trial.at, thief.pubkey(), case)
    assert trial.refused(stolen, thief) == "WrongCouncil"
    trial.reverse(case)
    assert trial.refused(trial.reverse_instruction(case), council) == "AlreadyReversed"

    late = Trial.in_session()
    case = convicted(late)
    late.appeal(case)
    late.run_to(late.case(0, 3).stage_end)
    council = late.outsider("council")
    assert late.refused(late.reverse_instruction(case), council) == "WindowOver"


def test_an_acquittal_cannot_be_appealed_or_reversed() -> None:
    trial = Trial.in_session()
    trial.challenge(trial.outsider("challenger"), 0, 2, PAYLOAD)
    case = trial.case(0, 2, PAYLOAD)
    trial.decide(case, OK)
    council = trial.outsider("council")
    assert trial.refused(trial.reverse_instruction(case), council) == "NotConvicted"


def test_the_breaker_makes_convictions_wait_for_the_council() -> None:
    trial = Trial.in_session()
    for target in range(5):
        trial.judge(0, target, ALL_MISMATCH)
    assert trial.run.accused == 0b11111
    case = trial.case(0, 0)
    settled = trial.decide(case, MISMATCH).event("CaseSettled")
    assert settled.flags & AuditFlag.BREAKER
    assert settled.stage_end == settled.appeal_end + trial.params.breaker_slots
    trial.run_to(settled.appeal_end)
    trial.reverse(case)
    closed = trial.release(case).event("AuditClosed")
    assert closed.returned == settled.stake + settled.unvested


def test_the_breaker_is_read_at_the_conviction_too() -> None:
    """When the committee was drawn, one of twelve was accused; when it convicts, five are."""
    trial = Trial.in_session()
    trial.judge(0, 0, ALL_MISMATCH)
    seated = trial.seat_jury(trial.case(0, 0))
    assert not seated.flags & AuditFlag.BREAKER
    for target in range(1, 5):
        trial.judge(0, target, ALL_MISMATCH)
    trial.poll(seated, [MISMATCH] * len(seated.jurors))
    settled = trial.settle_case(seated).event("CaseSettled")
    assert settled.flags & AuditFlag.BREAKER
    assert settled.stage_end == settled.appeal_end + trial.params.breaker_slots


def test_the_breaker_of_the_draw_holds_although_a_new_epoch_starts_new_counts() -> None:
    trial = Trial.in_session(rounds_per_epoch=4)
    for target in range(5):
        trial.judge(0, target, ALL_MISMATCH)
    seated = trial.seat_jury(trial.case(0, 0))
    assert seated.flags & AuditFlag.BREAKER
    trial.play(4)
    assert trial.run.epoch == 1
    trial.poll(seated, [MISMATCH] * len(seated.jurors))
    settled = trial.settle_case(seated).event("CaseSettled")
    assert (trial.run.accused, trial.run.num_convicted) == (0, 1)
    assert settled.stage_end == settled.appeal_end + trial.params.breaker_slots


def test_convictions_beyond_the_cap_wait_for_the_next_epoch() -> None:
    trial = Trial.in_session(6, rounds_per_epoch=4, min_members=2, keep_rounds=4)
    for target in range(3):
        trial.judge(0, target, ALL_MISMATCH)
    for target in range(2):
        trial.decide(trial.case(0, target), MISMATCH)
    third = trial.seat_jury(trial.case(0, 2))
    trial.poll(third, [MISMATCH] * len(third.jurors))
    assert trial.refused(trial.settle_case_instruction(third), trial.cranker) == "SlashCapReached"
    assert trial.entries[2].frozen == 1
    trial.play(4)
    assert trial.run.epoch == 1
    assert trial.settle_case(third).event("CaseSettled").outcome == 1
    assert trial.run.num_convicted == 1


def test_the_second_conviction_takes_everything_and_bars_for_good() -> None:
    trial = Trial.in_session(12, 2)
    trial.judge(1, 3, ALL_MISMATCH)
    trial.decide(trial.case(1, 3), MISMATCH)
    owner = trial.owners[3]
    top_up = life.top_up_stake(trial.at, owner.pubkey(), STAKE)
    trial.send(top_up, owner)
    trial.draw(0)
    trial.judge(0, 3, ALL_MISMATCH)
    case = trial.case(0, 3)
    seated = trial.seat_jury(case)
    trial.poll(seated, [MISMATCH] * len(seated.jurors))
    missing = trial.settle_case_instruction(seated)
    assert trial.refused(missing, trial.cranker) == "ParticipantMissing"
    settled = trial.settle_case(seated, people=[3]).event("CaseSettled")
    assert (settled.stake, settled.status) == (STAKE + STAKE // 2, Status.BARRED)
    trial.release(trial.case(1, 3))
    trial.release(case)
    entry = trial.entries[3]
    assert (entry.stake, entry.status, entry.frozen) == (0, Status.BARRED, 0)
    terms = life.JoinTerms(12, 3, trial.sessions[3].pubkey(), "http://again")
    again = life.join_run(trial.at, owner.pubkey(), terms)
    assert trial.refused(again, owner) == "ParticipantBarred"


@pytest.mark.parametrize("is_reversed", [True, False])
def test_a_reversal_ends_the_jail_of_a_false_possession(is_reversed: bool) -> None:
    """The third strike jails for an epoch; reversed, the way back is open again at once."""
    trial = Trial.in_session(**PATIENT)
    stranger = trial.outsider("challenger")
    for target, kind, subject in ((1, PAYLOAD, NO_SUBJECT), (2, PAYLOAD, NO_SUBJECT),
                                  (3, POSSESSION, 4)):  # fmt: skip
        trial.challenge(stranger, 0, target, kind, subject)
        landed = trial.decide(trial.case(0, target, kind), MISMATCH)
    assert landed.event("CaseSettled").jailed == 1 << 3
    case = trial.case(0, 3, POSSESSION)
    trial.appeal(case)
    trial.run_to(case.appeal_end)
    if is_reversed:
        trial.reverse(case)
    trial.release(case)
    entry, owner = trial.entries[3], trial.owners[3]
    assert entry.status == Status.JAILED
    assert entry.jailed_until_round == trial.run.round + (0 if is_reversed else 51)
    missing = trial.params.stake_lamports - entry.stake
    trial.send(life.top_up_stake(trial.at, owner.pubkey(), missing), owner)
    if not is_reversed:
        assert trial.refused(trial.ready_instruction(3), trial.sessions[3]) == "StillJailed"
        return
    trial.ready(3)
    trial.play(1)
    trial.activate(3)


@pytest.mark.parametrize("people", [[], [3]])
def test_a_reversal_lifts_the_bar(people: list[int]) -> None:
    trial = Trial.in_session(12, 2)
    trial.judge(1, 3, ALL_MISMATCH)
    trial.decide(trial.case(1, 3), MISMATCH)
    trial.draw(0)
    trial.judge(0, 3, ALL_MISMATCH)
    case = trial.case(0, 3)
    trial.decide(case, MISMATCH, people=[3])
    trial.appeal(case)
    trial.run_to(trial.case(0, 3).appeal_end)
    trial.reverse(case)
    if not people:
        now = trial.case(0, 3)
        trial.run_to(max(now.stage_end, now.case_end))
        release = trial.release_instruction(case)
        assert trial.refused(release, trial.cranker) == "ParticipantMissing"
        return
    trial.release(case, people)
    entry = trial.entries[3]
    assert (entry.status, entry.claimable) == (Status.LEFT, STAKE // 2)
    assert entry.work_faults == 1, "the first conviction stands"
