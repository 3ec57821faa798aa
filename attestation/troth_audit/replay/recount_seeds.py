"""Seeds and samples in the recount (program: `audit/sample.rs`, `instructions/freeze_seed.rs`).

Owns: the seed from its slot hash, the sample, what is not paid, the prices of a refusal.
Never: knows slot hashes: which one the chain had at a slot no event proves. The found slot is held
between the seed slot and the slot of the event.
Next: `recount_audits.py` for the audits of the sample.
"""

from collections.abc import Mapping

from troth_attestation.sampling import Payloads, Rates, limit, sampled_targets
from troth_audit.replay import recount_money as money
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_script import Expected, Script
from troth_audit.replay.recount_state import Books, RoundBook
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.rules import bitmap, eligibility
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.refusal import openings_price
from troth_coordinator.rules.seeds import SLOT_HASHES_LISTED, round_seed_slot, sigma
from troth_coordinator.rules.view import SeedStatus

WAITING = (SeedStatus.PENDING, SeedStatus.RETARGETED)
_RULES = {
    "seed_slot": Rule.SEED,
    "seed": Rule.SEED,
    "found_slot": Rule.SEED,
    "reward_undone": Rule.REWARD,
    "price_base": Rule.PENALTY,
    "price_new": Rule.PENALTY,
}


def frozen(books: Books, event: of_rounds.SeedFrozen) -> Script:
    """Fix a seed, and draw the sample from it."""
    number = event.round
    round_ = _waiting(books, number)
    round_.freeze_clock = books.clock(event.slot)
    round_.is_doubled = number > 0 and bool(books.lost_seeds >> (number - 1) % 64 & 1)
    round_.seed = sigma(event.slot_hash, books.run, number)
    round_.seed_status = SeedStatus.FROZEN
    bench = seated(round_)
    undone = _draw(books, round_, bench)
    fields = {
        "round": number,
        "seed_slot": round_.seed_slot,
        "seed": round_.seed,
        "sampled": round_.sampled,
        "unseated": round_.sampled & ~bench,
        "reward_undone": undone,
        "price_base": round_.price_base,
        "price_new": round_.price_new,
    }
    between = {"found_slot": (round_.seed_slot, event.slot - 1)}
    yield Expected(of_rounds.SeedFrozen, Rule.SAMPLE, fields, (), between, _RULES)


def seated(round_: RoundBook) -> int:
    """Return the participants that have three witnesses to judge them, themselves excepted."""
    everybody = range(64)
    can = eligibility.can_be_audited
    return bitmap.from_indices(i for i in everybody if can(round_.eligible, i))


def _draw(books: Books, round_: RoundBook, bench: int) -> int:
    """Draw the sample; returns the rewards of payloads that nobody can judge."""
    params = books.params
    sets = round_.trainers, round_.is_new, round_.eligible
    most = limit(params.audit_cap, params.seat_load, *sets)
    rates = Rates(params.p_base_ppm, params.p_new_ppm, most, round_.is_doubled)
    payloads = Payloads(round_.included, round_.is_new & bench, round_.probation)
    round_.sampled = bitmap.from_indices(sampled_targets(round_.seed, payloads, rates))
    _price(round_, payloads, rates)
    note_sampled(books, round_.sampled & bench)
    undone, left_over = 0, round_.probation & ~round_.sampled
    for one, entry in books.members():
        if left_over & one:
            standing.redraw_probation(entry, round_.number)
        if round_.sampled & ~bench & ~round_.withheld & one:
            window, paid = round_.reward_window, round_.reward_paid
            undone += money.undo(books, entry, window, paid)
            round_.unpaid |= one
    return undone


def _price(round_: RoundBook, payloads: Payloads, rates: Rates) -> None:
    num_new = bitmap.count(payloads.included & payloads.is_new)
    num_base = bitmap.count(payloads.included) - num_new
    whole = rates.p_new_ppm * num_new + rates.p_base_ppm * num_base
    reward = round_.reward_price
    round_.price_base = openings_price(reward, rates.p_base_ppm, whole, rates.limit)
    round_.price_new = openings_price(reward, rates.p_new_ppm, whole, rates.limit)


def turn_epoch(books: Books) -> None:
    """Start the counts of the breaker anew in a new epoch."""
    if books.audit_epoch != books.epoch:
        books.audit_epoch = books.epoch
        books.sampled = books.accused = 0
        books.convicted = [0] * 4


def note_sampled(books: Books, targets: int) -> None:
    """Note participants that the seed drew."""
    turn_epoch(books)
    books.sampled |= targets


def retargeted(books: Books, event: of_rounds.SeedRetargeted) -> Script:
    """Name another seed slot: the first was lost."""
    round_ = _waiting(books, event.round)
    if round_.seed_status != SeedStatus.PENDING:
        raise MisfitError(Rule.SEED, "SeedLost", event.name)
    between = lost_from(round_.seed_slot)
    round_.seed_slot = round_seed_slot(books.params, event.slot)
    round_.seed_status = SeedStatus.RETARGETED
    fields = {"round": event.round, "seed_slot": round_.seed_slot}
    yield Expected(of_rounds.SeedRetargeted, Rule.SEED, fields, (), between)


def lost(books: Books, event: of_rounds.SeedLost) -> Script:
    """Give up a seed whose slot was lost twice: the round has no audit."""
    round_ = _waiting(books, event.round)
    if round_.seed_status != SeedStatus.RETARGETED:
        raise MisfitError(Rule.SEED, "SeedRetargeted", event.name)
    round_.seed_status = SeedStatus.LOST
    books.lost_seeds |= 1 << event.round % 64
    for index in bitmap.indices_of(round_.probation):
        standing.redraw_probation(books.entry(index), event.round)
    fields, between = {"round": event.round}, lost_from(round_.seed_slot)
    yield Expected(of_rounds.SeedLost, Rule.SEED, fields, (), between)


def pending(books: Books) -> int:
    """Return the rounds that wait for their seed, by their number modulo 64."""
    waiting = (round_ for round_ in books.ring.values() if round_.seed_status in WAITING)
    return sum(1 << round_.number % 64 for round_ in waiting)


def lost_from(seed_slot: int) -> Mapping[str, tuple[int, int]]:
    """Return the slots in which a seed slot may have left the list of slot hashes.

    The newest listed slot is an earlier one. So many from the seed slot on take as many slots, and
    more where the chain skipped some.
    """
    return {"slot": (seed_slot + SLOT_HASHES_LISTED, NONE)}


def _waiting(books: Books, number: int) -> RoundBook:
    round_ = books.round_of(number, Rule.SEED)
    if round_.seed_status not in WAITING:
        raise MisfitError(Rule.SEED, "a round that waits for its seed", f"round {number}")
    return round_
