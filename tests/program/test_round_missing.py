"""A payload that was included but is nowhere to be had: half of the members take it back."""

from support.fields import assert_fields
from support.program.rounds import RoundDriver, root_of
from support.program.swapped import swapped

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, Status


def played(num: int = 6, rounds: int = 2, **changes: int | str) -> RoundDriver:
    driver = RoundDriver(num, **changes)
    driver.start()
    driver.play(rounds)
    return driver


def test_half_of_the_members_strike_a_withheld_payload() -> None:
    """The attacker serves its payload to nobody, and friends vouch for it."""
    driver = RoundDriver(6)
    driver.start()
    driver.play(1)
    driver.commit_all()
    for index in range(6):
        # 4 of 6 vouch for 5's payload, enough to have it included.
        driver.attest(index, 0b111111 if index < 4 else 0b011111)
    driver.close()
    before = driver.round(1)
    assert before.included == 0b111111
    pool = driver.run.reward_pool
    unvested = driver.run.total_unvested
    for index in (0, 1):
        landed = driver.send(driver.report_instruction(index, 5), driver.sessions[index])
        assert landed.names() == ["MissingReported"]
    assert driver.round(1).included == 0b111111
    landed = driver.send(driver.report_instruction(2, 5), driver.sessions[2])
    struck = landed.event("PayloadStruck")
    assert_fields(struck, included=0b011111, vouchers=0b001111, jailed=0)
    assert struck.reward_undone == 1_000
    after = driver.round(1)
    assert_fields(after, included=0b011111, struck=0b100000)
    # Reward undone, last included round restored, those who vouched struck.
    assert_fields(driver.run, reward_pool=pool + 1_000, total_unvested=unvested - 1_000)
    target, voucher, honest = driver.entries[5], driver.entries[0], driver.entries[4]
    assert_fields(target, last_included=0, included_since_strike=1, strikes=0)
    assert target.rounds_served == 2, "it still attested"
    assert_fields(voucher, strikes=1, included_since_strike=0)
    assert voucher.strike_rounds[2] == 2 or 2 in voucher.strike_rounds
    assert_fields(honest, strikes=0, included_since_strike=2)
    assert driver.open.flags & RoundFlag.FORCED_VOID


def test_the_open_round_closes_void_at_once_and_does_not_count() -> None:
    driver = played()
    driver.commit(0)
    for index in (0, 1, 2):
        driver.send(driver.report_instruction(index, 3), driver.sessions[index])
    cursor = driver.run.cursor
    landed = driver.close_void()
    settled = landed.event("RoundSettled")
    assert_fields(settled, missed_commit=0, missed_attest=0, struck=0)
    closed = driver.round(2)
    assert closed.flags == RoundFlag.CLOSED | RoundFlag.VOID | RoundFlag.FORCED_VOID
    run = driver.run
    assert_fields(run, round=3, void_streak=0, phase=Phase.COMMIT)
    assert run.cursor == cursor + 12, "the cursor advances whoever delivered"
    assert all(entry.misses_in_row == 0 for entry in driver.entries[:6])
    # The next header of 3 must name its last included round but one.
    assert [s.previous_included for s in driver.open.ballots[:6]] == [1, 1, 1, 0, 1, 1]
    driver.play(1)
    assert driver.round(3).included == 0b111111


def test_a_second_payload_of_the_same_round_is_struck_after_the_first_one_voided_the_next() -> None:
    driver = played()
    for index in (0, 1, 2):
        driver.send(driver.report_instruction(index, 3), driver.sessions[index])
    driver.close_void()
    assert driver.run.round == 3
    assert driver.open.base_round == 1
    for index in (0, 1, 2):
        driver.send(driver.report_instruction(index, 4), driver.sessions[index])
    assert driver.round(1).struck == 0b011000
    driver.close_void()
    assert driver.run.void_streak == 0
    driver.play(1)
    assert driver.open.base_round == 4


def test_a_forced_void_closes_from_attest_too_whatever_the_candidate() -> None:
    driver = played()
    driver.commit_all()
    for index in (0, 1, 2):
        driver.send(driver.report_instruction(index, 3), driver.sessions[index])
    driver.close(root_of(99))
    assert driver.round(2).flags & RoundFlag.FORCED_VOID
    assert driver.run.round == 3


def test_reports_that_are_refused() -> None:
    driver = played(6, 2)
    session = driver.sessions[0]
    driver.send(driver.report_instruction(0, 3), session)
    assert driver.refused(driver.report_instruction(0, 3), session) == "AlreadyReported"
    assert driver.refused(driver.report_instruction(0, 9), session) == "NotIncluded"
    assert driver.refused(driver.report_instruction(0, 3, round_=0), session) == "ReportsClosed"
    foreign = driver.report_instruction(1, 3)
    swapped_signer = make.report_missing(driver.at, session.pubkey(), 1, 1, 3, 2)
    assert foreign.data == swapped_signer.data
    assert driver.refused(swapped_signer, session) == "WrongSessionKey"
    for index in (1, 2):
        driver.send(driver.report_instruction(index, 3), driver.sessions[index])
    late = driver.report_instruction(4, 3)
    assert driver.refused(late, driver.sessions[4]) == "NotIncluded", "once per pair"
    driver.close_void()
    driver.play(1)
    old = make.report_missing(driver.at, session.pubkey(), 0, 1, 4, 4)
    assert driver.refused(old, session) == "ReportsClosed"


def test_nothing_can_be_reported_after_a_void_round_or_a_restart() -> None:
    driver = played(4, 1)
    driver.commit_all([])
    driver.attest_all([])
    driver.close()
    assert driver.open.base_round == NONE
    made = make.report_missing(driver.at, driver.sessions[0].pubkey(), 0, 0, 1, 2)
    assert driver.refused(made, driver.sessions[0]) == "ReportsClosed"


def test_a_voucher_with_three_strikes_is_jailed_for_an_epoch_and_returns() -> None:
    driver = played(6, 1, rounds_per_epoch=4, keep_rounds=2)
    for honest in (1, 2, 3):
        driver.commit_all()
        for index in range(6):
            driver.attest(index, 0b011111 if index in (honest, 5) else 0b111111)
        driver.close()
        for index in (3, 4, 5):
            driver.send(driver.report_instruction(index, 5), driver.sessions[index])
        driver.close_void()
    assert driver.entries[4].status == Status.JAILED
    entry = driver.entries[0]
    assert_fields(entry, strikes=3, strike_rounds=(NONE, NONE, NONE))
    assert entry.jailed_until_round == 6 + 1 + 4
    assert driver.open.members == 0b101110
    refused = driver.refused(driver.ready_instruction(0), driver.sessions[0])
    assert refused == "StillJailed"
    while driver.run.round < entry.jailed_until_round:
        driver.play(1)
    ready_round = driver.run.round
    driver.post_ready(0)
    driver.play(1)
    driver.activate(0)
    driver.play(1)
    assert driver.open.round == ready_round + 2
    assert driver.open.members == 0b101111


def test_a_payload_of_the_last_round_is_struck_during_the_root_only_step() -> None:
    driver = played(6, 2, max_rounds=2)
    assert driver.run.phase == Phase.COOLDOWN
    assert driver.open.base_round == 1
    driver.commit(0)
    for index in (0, 1, 2):
        driver.send(driver.report_instruction(index, 3), driver.sessions[index])
    assert driver.round(1).struck == 0b001000
    driver.close(root_of(99))
    run = driver.run
    assert_fields(run, "repeated, not counted", phase=Phase.COOLDOWN, void_streak=0)
    assert driver.open.committed == 0
    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED


def test_nobody_reports_in_a_run_that_waits() -> None:
    driver = played(4, 1, max_rounds=1)
    driver.cool_down()
    made = make.report_missing(driver.at, driver.sessions[0].pubkey(), 0, 0, 1, 1)
    assert driver.refused(made, driver.sessions[0]) == "WrongPhase"


def test_a_closed_round_does_not_stand_for_the_open_one() -> None:
    """Half of the members would take back payloads of rounds that others trained on since."""
    driver = played(6, 3)
    session = driver.sessions[0]
    older = make.report_missing(driver.at, session.pubkey(), 0, 1, 3, 2)
    assert driver.round(2).base_round == 1
    assert driver.refused(older, session) == "WrongRoundAccount"


def test_a_report_strikes_the_payload_of_the_round_that_it_names() -> None:
    driver = played(6, 3)
    report = driver.report_instruction(0, 3)
    place = [meta.pubkey for meta in report.accounts].index(driver.at.round(2))
    older = swapped(report, place, driver.at.round(1))
    assert driver.refused(older, driver.sessions[0]) == "WrongRoundAccount"


def test_only_a_member_of_the_open_round_reports_and_attests() -> None:
    driver = played()
    newcomer = driver.add()
    session = driver.sessions[newcomer]
    assert driver.refused(driver.report_instruction(newcomer, 3), session) == "NotAMember"
    driver.commit_all()
    assert driver.refused(driver.attest_instruction(newcomer), session) == "NotAMember"
