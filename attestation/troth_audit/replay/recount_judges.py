"""Fees and penalties of judges and targets in the recount (program: `audit/`).

Owns: what seats and jurors earn and pay, rewards that are taken back, the end of a probation.
Never: decides who was right. Next: `recount_money.py`.
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum

from troth_attestation import slashing
from troth_attestation.quorum import SeatFault
from troth_attestation.slashing import SlashIntent, Taken
from troth_audit.replay import recount_money as money
from troth_audit.replay import recount_seeds as seeds
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_members import end_probations
from troth_audit.replay.recount_script import Expected, Script
from troth_audit.replay.recount_state import AuditBook, Books
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditStage
from troth_coordinator.rules.bitmap import count, indices_of
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.outage import Hidden, hidden_verdict
from troth_coordinator.rules.refusal import LAST_STEP, add_refusal
from troth_coordinator.rules.reward import scaled_reward
from troth_coordinator.rules.seeds import jury_seed_slot
from troth_coordinator.rules.standing import add_strike, count_within
from troth_coordinator.rules.view import Status


class Test(Enum):
    """The meaning of an audit for somebody on probation."""

    PASSED = "the work is there"
    FAILED = "it could not be shown"
    MISSED = "there was no audit"


@dataclass(frozen=True, slots=True)
class Fees:
    """The pay of judges, and the part of it that their source gave."""

    fee: int = 0
    vested: int = 0
    from_source: int = 0


Paying = Generator[Expected, Event, Fees]


def number_of(fault: slashing.Fault) -> int:
    """Return the number of a fault in events."""
    return int(fault.value[1:])


def pay(
    books: Books, audit: AuditBook, judges: int, source: int, slot: int, *, uses_pool: bool
) -> Paying:
    """Pay each judge: from the source, then from the pool where it may."""
    num, full = count(judges), books.params.witness_fee
    fee = scaled_reward(full, source + (books.pool if uses_pool else 0), num)
    from_source = min(fee * num, source)
    books.pool += from_source
    if num and fee < full:
        where = {"round": audit.round, "target": audit.target}
        fields = {**where, "witness_fee": full, "fee": fee}
        yield Expected(of_audits.FeesScaled, Rule.REWARD, fields)
    window, vested = money.reward_window(books, slot), 0
    for index in indices_of(judges):
        vested += money.credit(books, books.entry(index), window, fee)
    return Fees(fee, vested, from_source)


def take_back_reward(books: Books, audit: AuditBook) -> int:
    """Return the reward of the judged payload to the pool, once; returns what was there."""
    lamports, audit.reward_paid = audit.reward_paid, 0
    round_, one = books.held(audit.round), 1 << audit.target
    if round_ is not None:
        if (round_.struck | round_.unpaid) & one:
            return 0
        round_.unpaid |= one
    entry = books.entry(audit.target)
    if audit.has(AuditFlag.WITHHELD):
        return money.undo_withheld(books, entry, audit.round, audit.reward_window, lamports)
    return money.undo(books, entry, audit.reward_window, lamports)


def leave_unproven(books: Books, audit: AuditBook) -> tuple[int, bool]:
    """No reward for that round; returns it, and whether it was a strike."""
    reward = take_back_reward(books, audit)
    entry = books.entry(audit.target)
    past = entry.past
    past.unproven_rounds, is_strike = add_strike(past.unproven_rounds, audit.round)
    if is_strike:
        standing.strike(books, entry, books.round)
    elif count_within(past.unproven_rounds, audit.round) > 1:
        entry.included_since_strike = 0
    return reward, is_strike


def accuse(books: Books, audit: AuditBook) -> None:
    """Count an accusation for the breaker, if the seed drew the audit."""
    if not audit.has(AuditFlag.REQUESTED):
        seeds.note_sampled(books, 1 << audit.target)
        books.accused |= 1 << audit.target


def await_jury(books: Books, audit: AuditBook, slot: int) -> None:
    """Begin the wait for the seed of the jury."""
    audit.stage, audit.stage_end = AuditStage.ACCUSED, NONE
    audit.case_seed_slot = jury_seed_slot(books.params, slot)


def slash(
    books: Books, audit: AuditBook, index: int, intent: SlashIntent
) -> Generator[Expected, Event, Taken]:
    """Take lamports, bar, strike; the caller places the lamports."""
    entry = books.entry(index)
    taken = money.take(books, entry, intent)
    if intent.is_barred:
        books.owner(entry.owner).is_barred = True
        is_on = entry.is_on_probation and entry.is_present
        fields = end_probations(books, [(1 << index, entry)])
        standing.end_membership(entry, Status.BARRED, books.round)
        books.expected = books.expected.without(1 << index)
        if is_on:
            yield Expected(of_audits.ProbationsEnded, Rule.REWARD, fields)
    if intent.is_strike and standing.strike(books, entry, books.round) and index == audit.target:
        audit.jailed_until = entry.past.jailed_until_round
    return taken


def penalise(
    books: Books, audit: AuditBook, index: int, intent: SlashIntent, acquittal: int = 0
) -> Generator[Expected, Event, int]:
    """Slash at once; returns what the acquitted may still get."""
    taken = yield from slash(books, audit, index, intent)
    parts = slashing.fine(taken.total, acquittal if intent.pays_acquitted else 0)
    books.entry(audit.target).claimable += parts.acquitted
    fields = {
        "round": audit.round,
        "target": audit.target,
        "index": index,
        "fault": number_of(intent.fault),
        "claimable": taken.claimable,
        "stake": taken.stake,
        "unbonding": taken.unbonding,
        "unvested": taken.unvested,
        "shortfall": taken.shortfall,
        "acquitted": parts.acquitted,
        "burned": parts.burned,
        "status": int(books.entry(index).status),
    }
    yield Expected(of_audits.Penalised, Rule.PENALTY, fields)
    return acquittal - parts.acquitted


def penalise_seat(
    books: Books,
    audit: AuditBook,
    place: int,
    why: tuple[SeatFault, int],
    acquittal: int = 0,
) -> Generator[Expected, Event, int]:
    """Penalise a seat once. `why` is its fault, and the end of its commits."""
    seat = audit.seats[place]
    if seat.is_faulty:
        return acquittal
    seat.is_faulty = True
    left = yield from penalise_judge(books, audit, seat.index, why, acquittal)
    return left


def penalise_judge(
    books: Books,
    audit: AuditBook,
    index: int,
    why: tuple[SeatFault, int],
    acquittal: int = 0,
) -> Generator[Expected, Event, int]:
    """Penalise a seat or a juror that failed; one outage is one fine."""
    fault, ended = why
    entry = books.entry(index)
    counts = is_second = False
    if fault == SeatFault.NO_COMMIT:
        counts = standing.miss(entry, ended)
        if not counts:
            return acquittal
    elif fault == SeatFault.NO_REVEAL:
        hidden = hidden_verdict(audit.round, entry.past.reveal_fault_round)
        counts, is_second = hidden != Hidden.AGAIN, hidden == Hidden.SECOND
        if counts:
            entry.past.reveal_fault_round = books.newest_round
    prices = money.prices(books, audit.reward_price)
    intent = slashing.seat(fault, money.funds(entry), prices, is_second=is_second)
    left = yield from penalise(books, audit, index, intent, acquittal)
    if counts:
        entry.past.seat_faults += 1
        if entry.past.seat_faults >= standing.SEAT_FAULTS_TO_JAIL:
            entry.past.seat_faults = 0
            standing.jail(books, entry, books.round)
    return left


def no_openings(books: Books, audit: AuditBook, slot: int) -> Generator[Expected, Event, int]:
    """Fine a target without openings; returns the reward that went back to the pool."""
    reward = take_back_reward(books, audit)
    if audit.has(AuditFlag.REQUESTED):
        return reward
    entry = books.entry(audit.target)
    known, total = entry.past.refusals, entry.past.included_total
    entry.past.refusals, is_step = add_refusal(known, audit.round, books.newest_round, total)
    refusals = entry.past.refusals
    price = audit.openings_price
    intent = slashing.no_openings(money.funds(entry), price, refusals.doublings)
    yield from penalise(books, audit, audit.target, intent)
    if is_step and refusals.step == LAST_STEP:
        standing.jail(books, entry, books.round)
    if is_step and entry.is_present:
        returned = money.return_withheld(books, entry)
        standing.begin_probation(entry)
        yield _probation_changed(books, audit, returned=returned)
    return reward


def end_test(books: Books, audit: AuditBook, test: Test, slot: int) -> Script:
    """Do what the end of an audit means for the probation of its target, if it decides it."""
    entry, window = books.entry(audit.target), money.reward_window(books, slot)
    if audit.kind != AuditKind.WORK or not standing.is_tested_in(entry, audit.round):
        return
    entry.probation_round = NONE
    if test == Test.FAILED:
        returned = money.return_withheld(books, entry)
        yield _probation_changed(books, audit, returned=returned)
    elif test == Test.PASSED:
        standing.end_probation(entry)
        credited, vested = money.credit_withheld(books, entry, window)
        yield _probation_changed(books, audit, credited=credited, vested=vested)


def _probation_changed(
    books: Books, audit: AuditBook, *, credited: int = 0, returned: int = 0, vested: int = 0
) -> Expected:
    fields = {
        "round": audit.round,
        "index": audit.target,
        "is_on": books.entry(audit.target).is_on_probation,
        "credited": credited,
        "returned": returned,
        "vested": vested,
    }
    return Expected(of_audits.ProbationChanged, Rule.REWARD, fields)
