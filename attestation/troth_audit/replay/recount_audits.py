"""Audits in the recount, from the request to the outcome (program: `audit/`).

Owns: seats, windows, verdicts under their hashes, the outcome and what it does.
Never: looks at evidence. Next: `recount_judges.py` for fees and penalties, `recount_cases.py` for
what follows an accusation.
"""

from troth_attestation.panel import Panel, Report
from troth_attestation.quorum import AuditOutcome, SeatFault
from troth_attestation.sampling import seats_of
from troth_attestation.sketch import proves, sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_audit.replay import recount_judges as judges
from troth_audit.replay import recount_seeds as seeds
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_script import Expected, Script, told
from troth_audit.replay.recount_state import AuditBook, Books, Judge, RoundBook
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.rules.audit_view import (
    BEFORE_SETTLED,
    NOT_AUDITED,
    AuditFlag,
    AuditKind,
    AuditStage,
)
from troth_coordinator.rules.audits import FIRST_SEATS, MAX_SEATS, SECOND_SEATS
from troth_coordinator.rules.ids import NO_INDEX
from troth_coordinator.rules.view import SeedStatus

PREPAID_FEES = 7
_KEPT = (AuditOutcome.NO_OPENINGS, AuditOutcome.UNAVAILABLE)
_RULES = {
    "fee": Rule.REWARD,
    "paid": Rule.REWARD,
    "vested": Rule.REWARD,
    "reward_undone": Rule.REWARD,
    "is_strike": Rule.PENALTY,
    "jailed": Rule.PENALTY,
    "status": Rule.PENALTY,
}


def create(books: Books, round_: int, target: int, kind: int) -> AuditBook:
    """Begin an Audit account."""
    entry = books.entry(target, Rule.SEATS)
    entry.targets += 1
    made = AuditBook(round_, target, kind, entry.owner, AuditStage.REQUESTED)
    if books.audits.setdefault((round_, target, kind), made) is not made:
        raise MisfitError(Rule.SEATS, "one audit", f"round {round_}, target {target} again")
    return made


def requested(books: Books, event: of_audits.AuditRequested) -> Script:
    """Somebody pays for an audit in advance."""
    round_ = books.round_of(event.round, Rule.SEATS)
    prepaid = PREPAID_FEES * books.params.witness_fee
    fields = {"round": books.round, "prepaid": prepaid}
    yield Expected(of_audits.AuditRequested, Rule.REWARD, fields)
    audit = create(books, event.round, event.target, AuditKind.WORK)
    audit.flags = AuditFlag.REQUESTED
    audit.challenger, audit.prepaid = bytes(event.challenger), prepaid
    round_.requested |= 1 << event.target


def opened(books: Books, event: of_audits.AuditOpened) -> Script:
    """Open the audit of a sampled or requested target."""
    round_, one = books.round_of(event.round, Rule.SEATS), 1 << event.target
    is_sampled = bool(round_.sampled & one)
    _require_due(books, round_, event)
    seats = seats_of(round_.seed, event.target, round_.eligible)
    ends = round_.freeze_clock + books.params.openings_slots
    fields = {
        "seats": tuple(seats) + (NO_INDEX,) * (MAX_SEATS - len(seats)),
        "is_requested": not is_sampled,
        "stage_end": ends,
    }
    yield Expected(of_audits.AuditOpened, Rule.SEATS, fields)
    key = event.round, event.target, AuditKind.WORK
    audit = books.audits.get(key) or create(books, *key)
    if is_sampled:
        audit.flags &= ~AuditFlag.REQUESTED
    copy_round(books, audit, round_)
    audit.seats = [Judge(index) for index in seats]
    audit.num_seats = FIRST_SEATS
    audit.stage, audit.stage_end = AuditStage.OPENINGS, ends
    round_.audited |= one


def _require_due(books: Books, round_: RoundBook, event: of_audits.AuditOpened) -> None:
    one, where = 1 << event.target, f"round {event.round}, target {event.target}"
    is_due = (
        round_.seed_status == SeedStatus.FROZEN
        and round_.included & (round_.sampled | round_.requested) & ~round_.audited & one
        and len(seats_of(round_.seed, event.target, round_.eligible)) >= FIRST_SEATS
        and books.clock(event.slot) <= round_.freeze_clock + books.params.openings_slots
    )
    if not is_due:
        raise MisfitError(Rule.SEATS, "a target that the seed or a request drew", where)


def copy_round(books: Books, audit: AuditBook, round_: RoundBook) -> None:
    """Copy what an audit needs of its round: reuse of the ring touches nothing."""
    one = 1 << audit.target
    audit.eligible = round_.eligible
    audit.case_end = round_.close_clock + books.params.case_slots
    if round_.included & ~round_.unpaid & one:
        audit.reward_paid, audit.reward_window = round_.reward_paid, round_.reward_window
    if round_.withheld & one:
        audit.flags |= AuditFlag.WITHHELD
    audit.reward_price = round_.reward_price
    is_new = round_.is_new & seeds.seated(round_) & one
    audit.openings_price = round_.price_new if is_new else round_.price_base
    audit.vouchers = round_.vouchers(audit.target)


def openings_posted(books: Books, event: of_audits.OpeningsPosted) -> Script:
    """Note what the target shows."""
    audit = books.audit(event.round, event.target, AuditKind.WORK, Rule.OPENINGS)
    clock = books.clock(event.slot)
    require_stage(audit, AuditStage.OPENINGS, clock, Rule.OPENINGS)
    standing.act(books, books.entry(event.target), event.slot)
    ends = audit.stage_end + books.params.verdict_commit_slots
    yield Expected(of_audits.OpeningsPosted, Rule.OPENINGS, {"stage_end": ends})
    audit.openings_root = event.root
    audit.stage, audit.stage_end = AuditStage.COMMIT, ends


def require_stage(audit: AuditBook, stage: AuditStage, clock: int, rule: Rule) -> None:
    """Raise MisfitError unless the audit takes acts of this stage now."""
    if audit.stage != stage or clock > audit.stage_end:
        found = f"{audit.stage.name.lower()} until {audit.stage_end} at {clock}"
        raise MisfitError(rule, f"{stage.name.lower()} under way", found)


def advance(books: Books, audit: AuditBook, clock: int) -> None:
    """Go on to the reveals once the window of the commits has ended."""
    if audit.stage == AuditStage.COMMIT and clock > audit.stage_end:
        ended = audit.stage_end
        audit.commit_ends[_group_of(audit.first_acting)] = ended
        audit.enter(AuditStage.REVEAL, ended, books.params.verdict_reveal_slots)


def _group_of(place: int) -> int:
    return max(0, place - 1) >> 1


def _acting(audit: AuditBook, index: int) -> Judge:
    acting = audit.judging[audit.first_acting :]
    found = next((seat for seat in acting if seat.index == index), None)
    if found is None:
        raise MisfitError(Rule.SEATS, "a seat whose turn it is", f"participant {index}")
    return found


def committed(books: Books, event: of_audits.VerdictCommitted) -> Script:
    """Note the hidden verdict of a seat; the last one starts the reveals."""
    audit = books.audit(event.round, event.target, AuditKind.WORK, Rule.VERDICT)
    clock = books.clock(event.slot)
    standing.act(books, books.entry(event.index), event.slot)
    advance(books, audit, clock)
    require_stage(audit, AuditStage.COMMIT, clock, Rule.VERDICT)
    seat = _acting(audit, event.index)
    if seat.commit:
        raise MisfitError(Rule.VERDICT, "one commitment of a seat", "a second one")
    seat.commit = event.commitment
    if all(one.commit for one in audit.judging[audit.first_acting :]):
        audit.enter(AuditStage.REVEAL, clock, books.params.verdict_reveal_slots)
    fields = {"stage": int(audit.stage), "stage_end": audit.stage_end}
    yield Expected(of_audits.VerdictCommitted, Rule.VERDICT, fields)


def revealed(books: Books, event: of_audits.VerdictRevealed) -> Script:
    """Hold a verdict against the hash that its seat committed to."""
    audit = books.audit(event.round, event.target, AuditKind.WORK, Rule.VERDICT)
    clock = books.clock(event.slot)
    standing.act(books, books.entry(event.index), event.slot)
    advance(books, audit, clock)
    require_stage(audit, AuditStage.REVEAL, clock, Rule.VERDICT)
    seat = _acting(audit, event.index)
    kind = verdict_of(event.verdict)
    judge = event.round, event.target, event.index
    statement = Statement(books.run, *judge, kind, event.evidence, sketch_hash(event.sketch))
    require_hash(seat, statement.commit(event.salt))
    seat.kind, seat.sketch = kind, event.sketch
    if not proves(kind, event.sketch):
        raise MisfitError(Rule.VERDICT, "a sketch", "zeros")
    yield Expected(of_audits.VerdictRevealed, Rule.VERDICT, {})


def verdict_of(number: int) -> VerdictKind:
    """Return the verdict with this number; raises MisfitError."""
    if number not in set(VerdictKind):
        raise MisfitError(Rule.VERDICT, "1 to 4", number)
    return VerdictKind(number)


def require_hash(judge: Judge, shown: bytes) -> None:
    """Raise MisfitError unless what a judge shows gives the hash that it committed to."""
    if judge.kind is not None:
        raise MisfitError(Rule.VERDICT, "one reveal of a judge", "a second one")
    if judge.commit != shown:
        raise MisfitError(Rule.VERDICT, judge.commit.hex() or "a commitment", shown.hex())


def panel_of(books: Books, audit: AuditBook) -> Panel:
    """Compare what the seats have shown."""
    seats = [Report(bool(seat.commit), seat.kind, seat.sketch) for seat in audit.judging]
    return Panel(seats, books.params.sketch_factor)


def require_shown(audit: AuditBook, judges_: list[Judge], stage: AuditStage, clock: int) -> None:
    """Raise MisfitError while a judge may still show its verdict."""
    is_over = clock > audit.stage_end or all(judge.is_shown for judge in judges_)
    if audit.stage != stage or not is_over:
        rule = Rule.OUTCOME if stage == AuditStage.REVEAL else Rule.CASE
        raise MisfitError(rule, "all verdicts shown, or their window over", "neither")


def extended(books: Books, event: of_audits.AuditExtended) -> Script:
    """Seat two more, where there are so many: the seats so far decide nothing."""
    audit = books.audit(event.round, event.target, AuditKind.WORK, Rule.OUTCOME)
    clock = books.clock(event.slot)
    advance(books, audit, clock)
    require_shown(audit, audit.judging[audit.first_acting :], AuditStage.REVEAL, clock)
    outcome = panel_of(books, audit).outcome(len(audit.seats))
    if outcome != AuditOutcome.EXTEND:
        raise MisfitError(Rule.OUTCOME, f"outcome {int(outcome)}", "two more seats")
    audit.first_acting, available = audit.num_seats, len(audit.seats)
    is_second = audit.num_seats >= SECOND_SEATS
    audit.num_seats = available if is_second else min(available, SECOND_SEATS)
    audit.enter(AuditStage.COMMIT, clock, books.params.verdict_commit_slots)
    fields = {"num_seats": audit.num_seats, "stage_end": audit.stage_end}
    yield Expected(of_audits.AuditExtended, Rule.OUTCOME, fields)


def settled(books: Books, event: of_audits.AuditSettled) -> Script:
    """End an audit: outcome, penalties, fees, refund."""
    audit = books.audit(event.round, event.target, AuditKind.WORK, Rule.OUTCOME)
    clock = books.clock(event.slot)
    advance(books, audit, clock)
    outcome, paid, faults = _find(books, audit, clock)
    jailed_before = books.jailed()
    undone, is_strike = 0, False
    if outcome == AuditOutcome.NO_OPENINGS:
        undone = yield from judges.no_openings(books, audit, event.slot)
    elif outcome == AuditOutcome.UNPROVEN:
        undone, is_strike = judges.leave_unproven(books, audit)
    elif outcome == AuditOutcome.ACCUSED:
        judges.accuse(books, audit)
    elif outcome == AuditOutcome.UNAVAILABLE:
        audit.flags |= AuditFlag.UNAVAILABLE
    for place, fault in sorted(faults.items()):
        ended = audit.commit_ends[_group_of(place)]
        yield from judges.penalise_seat(books, audit, place, (fault, ended))
    yield from _end_test(books, audit, outcome, event.slot)
    paid_seats = sum(1 << audit.seats[place].index for place in paid)
    if audit.has(AuditFlag.REQUESTED):
        source, uses_pool = audit.prepaid, False
    else:
        source, uses_pool = 0, True
    fees = yield from judges.pay(books, audit, paid_seats, source, event.slot, uses_pool=uses_pool)
    audit.prepaid -= fees.from_source
    audit.outcome = NOT_AUDITED if outcome is None else int(outcome)
    _leave_seats(books, audit, outcome, event.slot)
    fields = {
        "outcome": audit.outcome,
        "stage_end": audit.stage_end,
        "case_seed_slot": audit.case_seed_slot,
        "fee": fees.fee,
        "paid": paid_seats,
        "vested": fees.vested,
        "reward_undone": undone,
        "is_strike": is_strike,
        "jailed": books.jailed() & ~jailed_before,
        "status": int(books.entry(audit.target).status),
    }
    yield Expected(of_audits.AuditSettled, Rule.OUTCOME, fields, rules=_RULES)
    yield from _refund(books, audit)


def _find(
    books: Books, audit: AuditBook, clock: int
) -> tuple[AuditOutcome | None, frozenset[int], dict[int, SeatFault]]:
    """Return outcome, paid places and faults; no outcome where the audit never took place."""
    round_ = books.held(audit.round)
    is_struck = round_ is not None and bool(round_.struck >> audit.target & 1)
    if audit.stage == AuditStage.REQUESTED:
        _require_forgone(books, audit, round_, clock)
        return None, frozenset(), {}
    if audit.stage in BEFORE_SETTLED and is_struck:
        return None, panel_of(books, audit).paid_seats(), {}
    if audit.stage == AuditStage.OPENINGS:
        if clock <= audit.stage_end:
            raise MisfitError(Rule.OUTCOME, "a window that is over", audit.stage_end)
        return AuditOutcome.NO_OPENINGS, frozenset(), {}
    require_shown(audit, audit.judging[audit.first_acting :], AuditStage.REVEAL, clock)
    panel = panel_of(books, audit)
    outcome = panel.outcome(len(audit.seats))
    if outcome == AuditOutcome.EXTEND:
        raise MisfitError(Rule.OUTCOME, "two more seats", "an outcome")
    return outcome, panel.paid_seats(), panel.faults()


def _require_forgone(books: Books, audit: AuditBook, round_: RoundBook | None, clock: int) -> None:
    if round_ is None:
        return
    is_included = round_.included >> audit.target & 1
    if round_.is_closed and (round_.seed_status == SeedStatus.LOST or not is_included):
        return
    is_frozen = round_.seed_status == SeedStatus.FROZEN
    if not is_frozen or clock <= round_.freeze_clock + books.params.openings_slots:
        raise MisfitError(Rule.OUTCOME, "a request that may still be opened", "its end")


def _end_test(books: Books, audit: AuditBook, outcome: AuditOutcome | None, slot: int) -> Script:
    if outcome is None:
        yield from judges.end_test(books, audit, judges.Test.MISSED, slot)
    elif outcome == AuditOutcome.CLEARED:
        yield from judges.end_test(books, audit, judges.Test.PASSED, slot)
    elif outcome in (AuditOutcome.NO_OPENINGS, AuditOutcome.UNPROVEN):
        yield from judges.end_test(books, audit, judges.Test.FAILED, slot)


def _leave_seats(books: Books, audit: AuditBook, outcome: AuditOutcome | None, slot: int) -> None:
    clock = books.clock(slot)
    if outcome in (AuditOutcome.ACCUSED, AuditOutcome.UNAVAILABLE):
        judges.await_jury(books, audit, slot)
        return
    may_follow = outcome in (AuditOutcome.CLEARED, AuditOutcome.UNPROVEN)
    audit.stage = AuditStage.SETTLED
    audit.stage_end = max(audit.case_end, clock) if may_follow else clock


def _refund(books: Books, audit: AuditBook) -> Script:
    """Return the rest of fees in advance, or keep it in the pool."""
    rest, audit.prepaid = audit.prepaid, 0
    if not rest:
        return
    ways: tuple[dict[str, int], ...] = (
        {"refunded": rest, "kept": 0, "pool": 0},
        {"refunded": 0, "kept": 0, "pool": rest},
    )
    if audit.outcome in _KEPT:
        ways = ({"refunded": 0, "kept": rest, "pool": 0},)
    fields = {"round": audit.round, "target": audit.target, "challenger": audit.challenger}
    found = yield Expected(of_audits.PrepaidRefunded, Rule.REWARD, fields, ways)
    refunded = told(found, of_audits.PrepaidRefunded).refunded
    books.pool += rest - min(rest, refunded)
