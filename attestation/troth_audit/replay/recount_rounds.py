"""Rounds in the recount: their sets, rewards, misses, strikes, and payloads that nobody serves.

Owns: what an open fixes and what a close gives and takes (program: `round/`).
Never: says which root and payloads a close takes; `closes.py` does.
Next: `recount_seeds.py` for the sample.
"""

from dataclasses import dataclass

from troth_audit.replay import recount_money as money
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_script import Expected, Script
from troth_audit.replay.recount_state import Books, Entry, RoundBook
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.rules import eligibility, root
from troth_coordinator.rules.bitmap import count
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.membership import is_root_only, sets_of
from troth_coordinator.rules.params import epoch_of
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.reward import scaled_reward
from troth_coordinator.rules.seeds import round_seed_slot
from troth_coordinator.rules.standing import Duty, after_round
from troth_coordinator.rules.view import RoundFlag, SeedStatus, Status


def opened(books: Books, event: of_rounds.RoundOpened) -> Script:
    """Open a round: its sets follow from the entries."""
    params = books.params
    books.epoch = epoch_of(books.round, params.rounds_per_epoch)
    sets = sets_of(books.entries, books.round, params, keeps_going=event.root_only)
    expected = {
        "round": books.round,
        "epoch": books.epoch,
        "root_only": is_last_step(books),
        "members": sets.members,
        "trainers": sets.trainers,
        "eligible": sets.eligible,
        "is_new": sets.is_new,
    }
    yield Expected(of_rounds.RoundOpened, Rule.ROUND_SETS, expected)
    if is_update_due(books, event.slot):
        raise MisfitError(Rule.RUN_ACCOUNT, "ParamsApplied before this open", "none")
    books.phase = Phase.COOLDOWN if event.root_only else Phase.COMMIT
    is_first = books.round == 0
    books.expected = books.expected.opened(sets.members, books.epoch, is_first=is_first)
    books.lost_seeds &= ~(1 << books.round % 64)
    round_ = RoundBook(
        books.round,
        event.root_only,
        sets.members,
        sets.trainers,
        sets.eligible,
        sets.is_new,
        params.reward_per_payload,
        books.base_round,
    )
    first = books.round - books.round % params.residual_rounds
    for one, entry in books.members():
        is_kept = entry.last_included != NONE and entry.last_included >= first
        if sets.trainers & one and is_kept and not event.root_only:
            round_.previous[entry.index] = entry.last_included
    books.ring[books.round % params.ring] = round_


def is_update_due(books: Books, slot: int) -> bool:
    """Whether parameters wait that must be in force now. A raise may wait for the pool."""
    if books.requested is None or books.round % books.params.rounds_per_epoch:
        return False
    requested, params = books.requested
    is_raise = params.reward_per_payload > books.params.reward_per_payload
    return slot >= requested + books.params.param_delay_slots and not is_raise


def is_last_step(books: Books) -> bool:
    """Whether a root-only step ends the stretch of rounds, in place of another round."""
    return is_root_only(books.entries, books.round, books.params)


def closed(books: Books, event: of_rounds.RoundClosed) -> Script:
    """Close a round, and settle it unless it is the root-only step."""
    round_ = books.round_of(event.round, Rule.CLOSE)
    is_void, is_forced = bool(event.flags & RoundFlag.VOID), round_.is_forced_void
    has_seed = not (is_void or round_.is_root_only)
    seed_slot = round_seed_slot(books.params, event.slot) if has_seed else NONE
    fields = {
        "members": round_.members,
        "trainers": round_.trainers,
        "committed": round_.committed,
        "attested": round_.attested,
        "seed_slot": seed_slot,
    }
    rules = {"seed_slot": Rule.SEED}
    yield Expected(of_rounds.RoundClosed, Rule.CLOSE, fields, rules=rules)
    round_.is_closed, round_.canonical_root = True, event.canonical_root
    round_.close_clock = books.clock(event.slot)
    if not is_void:
        books.void_streak = 0
    elif not is_forced:
        books.void_streak += 1
    if round_.is_root_only:
        return
    strikes = 0
    if has_seed:
        round_.included = event.included
        round_.seed_slot, round_.seed_status = seed_slot, SeedStatus.PENDING
        books.base_round = event.round
        strikes = _unavailable(books, round_, event.canonical_root)
    elif not is_forced:
        books.base_round = NONE
    counts_misses = not (is_void and is_forced)
    yield from _settle(books, round_, event, _Terms(strikes, counts_misses))
    books.round = event.round + 1


def _unavailable(books: Books, round_: RoundBook, canonical: bytes) -> int:
    """Return who takes a strike because too few vouched for its payload."""
    votes = 0
    for index, vote in round_.votes.items():
        owner = books.entry(index).owner
        if vote == root.root_vote(books.run, round_.number, owner, canonical):
            votes |= 1 << index
    unavailable = votes & ~round_.included
    return root.unavailable_strikes(round_.committed, round_.included, unavailable)


@dataclass(frozen=True, slots=True)
class _Terms:
    strikes: int
    counts_misses: bool


@dataclass(slots=True)
class _Sum:
    vested: int = 0
    fees: int = 0
    inactivated: int = 0
    jailed: int = 0


def _settle(books: Books, round_: RoundBook, event: of_rounds.RoundClosed, terms: _Terms) -> Script:
    full, included = round_.reward_price, count(round_.included)
    round_.reward_paid = scaled_reward(full, books.pool, included)
    round_.reward_window = money.reward_window(books, event.slot)
    if included and round_.reward_paid != full:
        scaled = {"round": round_.number, "reward_per_payload": full}
        fields = {**scaled, "reward_paid": round_.reward_paid}
        yield Expected(of_rounds.RewardsScaled, Rule.REWARD, fields)
    found = _Sum()
    for one, entry in books.members():
        if round_.members & one:
            _settle_member(books, entry, round_, event.flags, terms, found)
    counted = -1 if terms.counts_misses else 0
    fields = {
        "round": round_.number,
        "reward_paid": round_.reward_paid,
        "reward_window": round_.reward_window,
        "vested": found.vested,
        "missed_commit": round_.trainers & ~round_.committed & counted,
        "missed_attest": round_.members & ~round_.attested & counted,
        "inactivated": found.inactivated,
        "fees": found.fees,
        "struck": terms.strikes,
        "jailed": found.jailed,
        "withheld": round_.withheld,
        "probation": round_.probation,
    }
    yield Expected(of_rounds.RoundSettled, Rule.REWARD, fields)


def _settle_member(
    books: Books, entry: Entry, round_: RoundBook, flags: int, terms: _Terms, found: _Sum
) -> None:
    one = 1 << entry.index
    if round_.included & one:
        found.vested += _reward(books, entry, round_)
    if (round_.included | round_.attested) & one:
        entry.rounds_served += 1
    if terms.strikes & one and standing.strike(books, entry, round_.number):
        found.jailed |= one
    if not terms.counts_misses:
        return
    commit = Duty(bool(round_.committed & one), bool(flags & RoundFlag.COMMIT_RAN_TO_DEADLINE))
    attest = Duty(bool(round_.attested & one), bool(flags & RoundFlag.ATTEST_RAN_TO_DEADLINE))
    duties = [commit, attest] if round_.trainers & one else [attest]
    misses = entry.misses = after_round(entry.misses, duties)
    if misses.is_inactive and entry.status == Status.ACTIVE and not entry.is_leaving:
        found.inactivated |= one
        if standing.make_inactive(books, entry, round_.number, is_fined=misses.is_fined):
            found.fees += money.charge(books, entry, books.params.absence_fee)


def _reward(books: Books, entry: Entry, round_: RoundBook) -> int:
    """Pay one included payload, or let its reward wait; returns what vested by it."""
    one, vested = 1 << entry.index, 0
    can_be_audited = eligibility.can_be_audited(round_.eligible, entry.index)
    if not can_be_audited or not entry.is_on_probation:
        vested = money.credit(books, entry, round_.reward_window, round_.reward_paid)
    elif not entry.is_present:
        # The pool got what waited when the membership ended: nothing would return this one.
        round_.unpaid |= one
    else:
        money.withhold(books, entry, round_.reward_paid)
        round_.withheld |= one
        if standing.choose_probation(entry, round_.number, books.params.ring):
            round_.probation |= one
    entry.last_included = round_.number
    entry.past.included_total += 1
    entry.included_since_strike += can_be_audited
    return vested


def missing(books: Books, event: of_rounds.MissingReported) -> Script:
    """Note that a member lacks a payload; half of the members strike it."""
    round_ = books.round_of(event.round, Rule.ROUND_SETS)
    current = books.round_of(books.round, Rule.ROUND_SETS)
    fields = {"round": current.base_round}
    yield Expected(of_rounds.MissingReported, Rule.ROUND_SETS, fields)
    reported = round_.reports.get(event.target, 0)
    is_due = current.members & ~reported & 1 << event.index and round_.included >> event.target & 1
    if not is_due:
        raise MisfitError(Rule.ROUND_SETS, "a member that reports a payload once", "another")
    standing.act(books, books.entry(event.index), event.slot)
    reports = round_.reports[event.target] = reported | 1 << event.index
    if 2 * count(reports & current.members) < count(current.members):
        return
    one, target = 1 << event.target, books.entry(event.target)
    round_.included &= ~one
    round_.struck |= one
    current.is_forced_void = True
    reward_undone = _undo_service(books, round_, target)
    vouchers = jailed = 0
    for index in sorted(round_.vouched):
        if round_.vouched[index] & one:
            vouchers |= 1 << index
            is_jailed = standing.strike(books, books.entry(index), current.number)
            jailed |= 1 << index if is_jailed else 0
    struck = {
        "round": event.round,
        "target": event.target,
        "open_round": current.number,
        "included": round_.included,
        "reward_undone": reward_undone,
        "vouchers": vouchers,
        "jailed": jailed,
    }
    yield Expected(of_rounds.PayloadStruck, Rule.REWARD, struck)


def _undo_service(books: Books, round_: RoundBook, entry: Entry) -> int:
    """Take back what the close gave to the target of a struck payload."""
    one = 1 << entry.index
    entry.last_included = round_.previous.get(entry.index, NONE)
    entry.past.included_total = max(0, entry.past.included_total - 1)
    if eligibility.can_be_audited(round_.eligible, entry.index):
        entry.included_since_strike = max(0, entry.included_since_strike - 1)
    if not round_.attested & one:
        entry.rounds_served = max(0, entry.rounds_served - 1)
    if round_.unpaid & one:
        return 0
    standing.redraw_probation(entry, round_.number)
    window, paid = round_.reward_window, round_.reward_paid
    if round_.withheld & one:
        return money.undo_withheld(books, entry, round_.number, window, paid)
    return money.undo(books, entry, window, paid)
