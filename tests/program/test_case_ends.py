"""How cases end: in a finished run, in a paused one, paid once, closed once and for all."""

from program.audits import LAZY, MISMATCH, OK
from program.cases import CLEARED, PAYLOAD, ROOT, STAKE, WORK, Trial
from program.rounds import key
from program.test_close_run import checkpoint_pairs, close, round_pairs
from program.test_round_missing import report
from solders.account import Account
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer

from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

REWARD = 1_000


def wind_up(trial: Trial, barred: int) -> None:
    """Everybody leaves with what is theirs; then the run and all of its accounts are closed."""
    staying = [owner for index, owner in enumerate(trial.owners) if index != barred]
    for owner in staying:
        trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    last = trial.run.finished_slot + longest_settlement_slots(trial.params)
    trial.chain.advance(max(last + 1, trial.slot + trial.params.unbond_slots, 4_500) - trial.slot)
    for owner in staying:
        trial.send(life.claim_reward(trial.at, owner.pubkey()), owner)
        trial.send(life.withdraw_stake(trial.at, owner.pubkey(), 0), owner)
    assert trial.run.num_participants == 1, "the bar is remembered until the end"
    who = trial.owners[barred].pubkey()
    pairs = [*round_pairs(trial), *checkpoint_pairs(trial), (trial.at.participant(who), who)]
    while pairs:
        now, pairs = pairs[:8], pairs[8:]
        raw = trial._signed(close(trial, now), [trial.authority])
        trial.chain.send(raw)
    assert not trial.chain.accounts.of_program(trial.at.program)


def test_a_run_with_convictions_ends_and_leaves_nothing_behind() -> None:
    trial = Trial.in_session(12, 2, max_rounds=2, join_until_round=2, checkpoint_every=1)
    trial.draw(0)
    for round_ in (1, 0):
        trial.judge(round_, 3, [MISMATCH] * 5)
        trial.decide(trial.case(round_, 3), MISMATCH, people=[3])
    assert trial.entries[3].status == Status.BARRED
    trial.cool_down()
    assert trial.run.phase == Phase.FINISHED
    trial.challenge(trial.outsider("challenger"), 1, 4, ROOT)
    case = trial.case(1, 4, ROOT)
    settled = trial.decide(case, MISMATCH).event("CaseSettled")
    assert settled.paid.bit_count() >= 3, "in a finished run a committee still sits"
    assert trial.refused(close(trial), trial.authority) == "CasesMayBeOpen"
    for case in trial.audits:
        trial.release(case)
    wind_up(trial, barred=3)


def test_a_pause_stops_the_windows_of_a_case() -> None:
    trial = Trial.in_session()
    trial.challenge(trial.outsider("challenger"), 0, 3, PAYLOAD)
    boss = trial.authority
    trial.send(life.pause_run(trial.at, boss.pubkey()), boss)
    trial.play(1)
    assert trial.run.phase == Phase.PAUSED
    # Seeds are frozen in every phase: slots go on while the clock stands.
    seated = trial.seat_jury(trial.case(0, 3, PAYLOAD))
    trial.chain.advance(trial.params.committee_commit_slots * 2)
    resume = life.resume_run(trial.at, boss.pubkey(), trial.run.round)
    trial.send(resume, boss)
    trial.poll(seated, [OK] * len(seated.jurors))
    assert trial.settle_case(seated).event("CaseSettled").outcome == 2


def test_an_account_that_was_closed_does_not_come_back_to_life() -> None:
    """Lamports sent after it in the same transaction revive neither data nor escrow."""
    trial = Trial.in_session()
    trial.judge(0, 3, CLEARED)
    case = trial.case(0, 3)
    trial.run_to(case.case_end)
    address, payer = trial.at.audit(0, 3), trial.cranker.pubkey()
    refill = transfer(TransferParams(from_pubkey=payer, to_pubkey=address, lamports=10**8))
    release = trial.release_instruction(case)
    assert trial.refused([release, refill, release], trial.cranker) == "Custom(3007)"
    trial.send([release, refill], trial.cranker)
    found = trial.chain.accounts.get(address)
    assert (found.owner, bytes(found.data)) == (Pubkey.default(), b"")
    assert trial.refused(release, trial.cranker) == "Custom(3007)"
    assert trial.refused(trial.open_instruction(0, 3), trial.cranker) == "AlreadyAudited"


def test_lamports_at_the_address_of_a_case_do_not_prevent_it() -> None:
    trial = Trial.in_session()
    address, payer = trial.at.audit(0, 3, PAYLOAD), trial.cranker.pubkey()
    stray = transfer(TransferParams(from_pubkey=payer, to_pubkey=address, lamports=10**6))
    trial.send(stray, trial.cranker)
    trial.challenge(trial.outsider("challenger"), 0, 3, PAYLOAD)
    assert trial.case(0, 3, PAYLOAD).target == 3


def test_the_same_participant_passed_twice_is_slashed_once() -> None:
    trial = Trial.in_session()
    owner = trial.owners[3]
    trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    case = trial.accuse(0, 3)
    settled = trial.decide(case, MISMATCH, people=[3, 3, 4]).event("CaseSettled")
    assert settled.unbonding == STAKE // 2
    assert trial.entries[3].unbonding == STAKE // 2


def test_an_exclusion_undoes_no_reward_that_the_members_took_back_before() -> None:
    """Accused, then struck as withheld, then without judges: that of the other round stays."""
    trial = Trial.in_session(4, 2)
    trial.judge(1, 3, [MISMATCH] * 3)
    for index in (0, 1):
        landed = trial.send(report(trial, index, 3), trial.sessions[index])
    assert landed.event("PayloadStruck").reward_undone == REWARD
    assert sum(trial.entries[3].bucket_amount) == REWARD
    leaver = trial.owners[1]
    trial.send(life.leave_run(trial.at, leaver.pubkey()), leaver)
    trial.close_void()
    settled = trial.settle_case(trial.seat_jury(trial.case(1, 3))).event("CaseSettled")
    assert (settled.outcome, settled.reward_undone) == (4, 0)
    assert sum(trial.entries[3].bucket_amount) == REWARD


def test_a_seat_that_paid_for_its_sketch_does_not_pay_for_its_verdict_again() -> None:
    """Outvoted at the end of the audit, contradicted by the committee: one seat, one fine."""
    trial = Trial.in_session()
    trial.post(0, 3)
    said = [OK, (OK, LAZY), OK]
    trial.hear(0, 3, said)
    trial.extend(0, 3)
    trial.hear(0, 3, [OK, OK])
    landed = trial.settle(0, 3)
    lazy = trial.case(0, 3).seats[1].index
    (fined,) = [event for event in landed.events if event.name == "Penalised"]
    assert (fined.index, fined.fault) == (lazy, 7)
    trial.challenge(trial.outsider("challenger"), 0, 3, WORK)
    landed = trial.decide(trial.case(0, 3), MISMATCH)
    others = [seat.index for seat in trial.case(0, 3).seats if seat.index != lazy]
    assert [e.index for e in landed.events if e.name == "Penalised"] == others
    assert trial.entries[lazy].stake == trial.entries[others[0]].stake == STAKE - 10 * REWARD


def test_a_copy_of_a_participant_under_another_program_is_passed_over() -> None:
    """It has the right bytes, and somebody could put it before the real one to stop a slash."""
    trial = Trial.in_session()
    owner = trial.owners[3]
    trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    seated = trial.seat_jury(trial.accuse(0, 3))
    trial.poll(seated, [MISMATCH] * len(seated.jurors))
    real = trial.chain.accounts.get(trial.at.participant(owner.pubkey()))
    copy = key("copy").pubkey()
    forged = Account(real.lamports, bytes(real.data), key("thief program").pubkey())
    trial.chain.accounts.set(copy, forged)
    alone = life.with_accounts(trial.settle_case_instruction(seated), [copy])
    assert trial.refused(alone, trial.cranker) == "ParticipantMissing"
    honest = trial.settle_case_instruction(seated, people=[3])
    *accounts, mine = honest.accounts
    before = Instruction(
        honest.program_id, honest.data, [*accounts, AccountMeta(copy, False, True), mine]
    )
    assert trial.send(before, trial.cranker).event("CaseSettled").unbonding == STAKE // 2


def test_an_index_named_by_a_case_is_not_given_away() -> None:
    """Jurors and challengers stay who they are until the account is closed."""
    trial = Trial.in_session(8, ring=4, keep_rounds=2, capacity=8, audit_cap=8)
    trial.challenge(trial.owners[1], 0, 3, PAYLOAD)
    seated = trial.seat_jury(trial.case(0, 3, PAYLOAD))
    juror = seated.jurors[0].index
    for index in (1, juror):
        owner = trial.owners[index]
        trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    trial.play(6)
    # By now all that they earned has vested, and no round names them.
    trial.chain.advance(5_000)
    new = key("newcomer")
    trial.chain.airdrop(new.pubkey(), 10**10)

    def join(index: int) -> Instruction:
        terms = life.JoinTerms(index, 3, new.pubkey(), "http://new")
        return life.join_run(trial.at, new.pubkey(), terms, trial.owners[index].pubkey())

    for index in (1, juror):
        assert trial.refused(join(index), new) == "RunFull"
    trial.settle_case(seated, people=[j.index for j in seated.jurors])
    trial.release(seated)
    assert all(entry.audits == 0 for entry in trial.entries)
    trial.send(join(juror), new)
