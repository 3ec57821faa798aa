"""A payload that was included but is nowhere to be had: half of the members take it back."""

from program.rounds import Stage, root_of
from solders.instruction import Instruction

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, Status


def played(num: int = 6, rounds: int = 2, **changes: int | str) -> Stage:
    stage = Stage(num, **changes)
    stage.start()
    stage.play(rounds)
    return stage


def report(stage: Stage, index: int, target: int, round_: int | None = None) -> Instruction:
    """`index` reports the payload of `target`; the open round builds on `round_`."""
    base = stage.open.base_round if round_ is None else round_
    session = stage.sessions[index].pubkey()
    open_round = stage.run.round
    return make.report_missing(stage.at, session, index, base, target, open_round)


def test_half_of_the_members_strike_a_withheld_payload() -> None:
    """The attacker serves its payload to nobody, and friends vouch for it."""
    stage = Stage(6)
    stage.start()
    stage.play(1)
    stage.commit_all()
    for index in range(6):
        # 4 of 6 vouch for 5's payload, enough to have it included.
        stage.attest(index, 0b111111 if index < 4 else 0b011111)
    stage.close()
    before = stage.round(1)
    assert before.included == 0b111111
    pool = stage.run.reward_pool
    unvested = stage.run.total_unvested
    for index in (0, 1):
        landed = stage.send(report(stage, index, 5), stage.sessions[index])
        assert landed.names() == ["MissingReported"]
    assert stage.round(1).included == 0b111111
    landed = stage.send(report(stage, 2, 5), stage.sessions[2])
    struck = landed.event("PayloadStruck")
    assert (struck.included, struck.vouchers, struck.jailed) == (0b011111, 0b001111, 0)
    assert struck.reward_undone == 1_000
    after = stage.round(1)
    assert (after.included, after.struck) == (0b011111, 0b100000)
    # Reward undone, last included round restored, those who vouched struck.
    assert (stage.run.reward_pool, stage.run.total_unvested) == (pool + 1_000, unvested - 1_000)
    target, voucher, honest = stage.entries[5], stage.entries[0], stage.entries[4]
    assert (target.last_included, target.included_since_strike, target.strikes) == (0, 1, 0)
    assert target.rounds_served == 2, "it still attested"
    assert (voucher.strikes, voucher.included_since_strike) == (1, 0)
    assert voucher.strike_rounds[2] == 2 or 2 in voucher.strike_rounds
    assert (honest.strikes, honest.included_since_strike) == (0, 2)
    assert stage.open.flags & RoundFlag.FORCED_VOID


def test_the_open_round_closes_void_at_once_and_does_not_count() -> None:
    stage = played()
    stage.commit(0)
    for index in (0, 1, 2):
        stage.send(report(stage, index, 3), stage.sessions[index])
    cursor = stage.run.cursor
    landed = stage.close_void()
    settled = landed.event("RoundSettled")
    assert (settled.missed_commit, settled.missed_attest, settled.struck) == (0, 0, 0)
    closed = stage.round(2)
    assert closed.flags == RoundFlag.CLOSED | RoundFlag.VOID | RoundFlag.FORCED_VOID
    run = stage.run
    assert (run.round, run.void_streak, run.phase) == (3, 0, Phase.COMMIT)
    assert run.cursor == cursor + 12, "the cursor advances whoever delivered"
    assert all(entry.misses_in_row == 0 for entry in stage.entries[:6])
    # The next header of 3 must name its last included round but one.
    assert [s.previous_included for s in stage.open.slots[:6]] == [1, 1, 1, 0, 1, 1]
    stage.play(1)
    assert stage.round(3).included == 0b111111


def test_a_second_payload_of_the_same_round_is_struck_after_the_first_one_voided_the_next() -> None:
    stage = played()
    for index in (0, 1, 2):
        stage.send(report(stage, index, 3), stage.sessions[index])
    stage.close_void()
    assert (stage.run.round, stage.open.base_round) == (3, 1)
    for index in (0, 1, 2):
        stage.send(report(stage, index, 4), stage.sessions[index])
    assert stage.round(1).struck == 0b011000
    stage.close_void()
    assert stage.run.void_streak == 0
    stage.play(1)
    assert stage.open.base_round == 4


def test_a_forced_void_closes_from_attest_too_whatever_the_candidate() -> None:
    stage = played()
    stage.commit_all()
    for index in (0, 1, 2):
        stage.send(report(stage, index, 3), stage.sessions[index])
    stage.close(root_of(99))
    assert stage.round(2).flags & RoundFlag.FORCED_VOID
    assert stage.run.round == 3


def test_reports_that_are_refused() -> None:
    stage = played(6, 2)
    session = stage.sessions[0]
    stage.send(report(stage, 0, 3), session)
    assert stage.refused(report(stage, 0, 3), session) == "AlreadyReported"
    assert stage.refused(report(stage, 0, 9), session) == "NotIncluded"
    assert stage.refused(report(stage, 0, 3, round_=0), session) == "ReportsClosed"
    foreign = report(stage, 1, 3)
    swapped_signer = make.report_missing(stage.at, session.pubkey(), 1, 1, 3, 2)
    assert foreign.data == swapped_signer.data
    assert stage.refused(swapped_signer, session) == "WrongSessionKey"
    for index in (1, 2):
        stage.send(report(stage, index, 3), stage.sessions[index])
    late = report(stage, 4, 3)
    assert stage.refused(late, stage.sessions[4]) == "NotIncluded", "once per pair"
    stage.close_void()
    stage.play(1)
    old = make.report_missing(stage.at, session.pubkey(), 0, 1, 4, 4)
    assert stage.refused(old, session) == "ReportsClosed"


def test_nothing_can_be_reported_after_a_void_round_or_a_restart() -> None:
    stage = played(4, 1)
    stage.commit_all([])
    stage.attest_all([])
    stage.close()
    assert stage.open.base_round == NONE
    made = make.report_missing(stage.at, stage.sessions[0].pubkey(), 0, 0, 1, 2)
    assert stage.refused(made, stage.sessions[0]) == "ReportsClosed"


def test_a_voucher_with_three_strikes_is_jailed_for_an_epoch_and_returns() -> None:
    stage = played(6, 1, rounds_per_epoch=4, keep_rounds=2)
    for _ in range(3):
        stage.commit_all()
        for index in range(6):
            stage.attest(index, 0b111111 if index < 4 else 0b011111)
        stage.close()
        for index in (3, 4, 5):
            stage.send(report(stage, index, 5), stage.sessions[index])
        landed = stage.close_void()
    assert [e.status for e in stage.entries[:6]] == [Status.JAILED] * 4 + [Status.ACTIVE] * 2
    del landed
    entry = stage.entries[0]
    assert (entry.strikes, entry.strike_rounds) == (3, (NONE, NONE, NONE))
    assert entry.jailed_until_round == 6 + 1 + 4
    assert stage.open.members == 0b110000
    refused = stage.refused(stage.ready_instruction(0), stage.sessions[0])
    assert refused == "StillJailed"
    while stage.run.round < entry.jailed_until_round:
        stage.play(1)
    ready_round = stage.run.round
    stage.ready(0)
    stage.play(1)
    stage.activate(0)
    stage.play(1)
    assert stage.open.round == ready_round + 2
    assert stage.open.members == 0b110001


def test_a_payload_of_the_last_round_is_struck_during_the_root_only_step() -> None:
    stage = played(6, 2, max_rounds=2)
    assert (stage.run.phase, stage.open.base_round) == (Phase.COOLDOWN, 1)
    stage.commit(0)
    for index in (0, 1, 2):
        stage.send(report(stage, index, 3), stage.sessions[index])
    assert stage.round(1).struck == 0b001000
    stage.close(root_of(99))
    run = stage.run
    assert (run.phase, run.void_streak) == (Phase.COOLDOWN, 0), "repeated, not counted"
    assert stage.open.committed == 0
    stage.cool_down()
    assert stage.run.phase == Phase.FINISHED


def test_nobody_reports_in_a_run_that_waits() -> None:
    stage = played(4, 1, max_rounds=1)
    stage.cool_down()
    made = make.report_missing(stage.at, stage.sessions[0].pubkey(), 0, 0, 1, 1)
    assert stage.refused(made, stage.sessions[0]) == "WrongPhase"
