"""Runs in which much happens, for those who read events: what they tell of money and judgements.

Owns: three runs as lists of events. Never: asserts anything about the program; its own tests do.
Next: recounted.py for the reader of these events.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from support.program.audits import LAZY, MISMATCH, OK
from support.program.cases import PAYLOAD, ROOT, CaseDriver
from support.program.rounds import RoundDriver
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.ids import Lamports


@cache
def judged() -> tuple[Event, ...]:
    """Play audits with many ends in one round, and cases: reversed, upheld, acquitted."""
    driver = CaseDriver(12, commit_slots=1_000, vesting_slots=9_000, unbond_slots=9_000)
    driver.start()
    driver.commit_all()
    driver.request(1)
    driver.attest_all()
    driver.close()
    driver.draw(0)
    driver.open_audit(0, 2)
    challenger = driver.outsider("challenger")
    driver.challenge(challenger, 0, 6, PAYLOAD)
    driver.challenge(challenger, 0, 7, ROOT)
    driver.judge(0, 1, [OK, OK, OK])
    driver.judge(0, 5, [OK, (OK, LAZY), OK, OK, OK])
    accused = driver.accuse(0, 3)
    driver.run_to(driver.of(0, 2).stage_end)
    driver.settle(0, 2)
    driver.decide(driver.case(0, 6, PAYLOAD), MISMATCH)
    driver.decide(driver.case(0, 7, ROOT), OK)
    seated = driver.seat_jury(accused)
    driver.take_votes(seated, [MISMATCH] * (len(seated.jurors) - 2) + [None, MISMATCH], 1)
    driver.settle_case(driver.case(0, 3))
    case = driver.case(0, 3)
    if case.escrow:
        driver.appeal(case)
        driver.run_to(case.appeal_end)
        driver.reverse(case)
    for closed in (case, driver.case(0, 6, PAYLOAD), driver.case(0, 7, ROOT)):
        driver.release(closed)
    return tuple(driver.ledger.events)


@cache
def paid() -> tuple[Event, ...]:
    """Play a pool that runs dry, absentees, a payload that nobody serves, members who change."""
    driver = RoundDriver(6, pool=14_000)
    driver.start()
    driver.play(1)
    driver.commit_all()
    for index in range(6):
        driver.attest(index, 0b111111 if index < 4 else 0b011111)
    driver.close()
    for index in (0, 1, 2):
        driver.send(driver.report_instruction(index, 5), driver.sessions[index])
    driver.close_void()
    for _ in range(3):
        driver.freeze_old_seed()
        driver.commit_all([0, 1, 2, 3])
        driver.attest_all([0, 1, 2, 3])
        driver.close()
    first, second, _, fourth = (driver.owners[index] for index in range(4))
    driver.send(life.top_up_stake(driver.at, first.pubkey(), 7_000), first)
    driver.send(life.withdraw_stake(driver.at, first.pubkey(), 6_000), first)
    newcomer = driver.add()
    driver.post_ready(newcomer)
    driver.leave(3)
    driver.play(1)
    driver.activate(newcomer)
    driver.leave(5)
    driver.chain.advance(max(driver.params.unbond_slots, 2 * driver.params.vesting_slots) + 1)
    driver.send(life.withdraw_stake(driver.at, first.pubkey(), 0), first)
    driver.send(life.withdraw_stake(driver.at, fourth.pubkey(), 0), fourth)
    driver.send(life.claim_reward(driver.at, second.pubkey()), second)
    return tuple(driver.ledger.events)


@cache
def moved() -> tuple[Event, ...]:
    """Play pauses, new parameters, new keys and addresses, checkpoints, and a stop by voids."""
    changes: dict[str, Any] = {"max_pause_slots": 300, "checkpoint_every": 2, "rounds_per_epoch": 2}
    changes |= {"vesting_slots": 9_000, "unbond_slots": 9_000}
    driver = RoundDriver(4, param_delay_slots=10, **changes)
    authority, first = driver.authority.pubkey(), driver.owners[0]
    driver.start()
    longer = driver.params.attest_slots + 1
    params = replace(driver.run.params, reward_per_payload=Lamports(500), attest_slots=longer)
    driver.send(life.update_params(driver.at, authority, params), driver.authority)
    driver.send(life.pause_run(driver.at, authority), driver.authority)
    driver.play(1)
    driver.chain.advance(50)
    driver.send(life.resume_run(driver.at, authority, 1), driver.authority)
    driver.play(2)
    session = driver.sessions[0].pubkey()
    driver.send(life.set_session_key(driver.at, first.pubkey(), session), first)
    driver.send(life.set_endpoint(driver.at, first.pubkey(), "http://elsewhere"), first)
    for _ in range(3):
        driver.freeze_old_seed()
        driver.commit_all()
        driver.run_out()
        driver.chain.advance(driver.run.params.close_grace_slots + 1)
        driver.close_void()
    driver.chain.advance(driver.run.params.halt_slots + 1)
    driver.advance_phase()
    return tuple(driver.ledger.events)
