"""Cases in the recount: bond, jury, votes and outcome (program: `case/`).

Owns: the seed and the draw of a jury, votes under their hashes, the outcome, its fees, the bond.
Never: knows slot hashes; the found slot is held between the seed slot and the slot of the event.
Next: `recount_sentence.py` for what an outcome does to the target.
"""

from troth_attestation import slashing
from troth_attestation.cases import Vote
from troth_attestation.contestable import JUDGED
from troth_attestation.panel import Panel, Report
from troth_attestation.quorum import CaseOutcome, SeatFault, case_outcome
from troth_attestation.sampling import case_seed, jury
from troth_attestation.sketch import proves, sketch_hash
from troth_attestation.verdict import VerdictKind
from troth_audit.replay import recount_audits as audits
from troth_audit.replay import recount_judges as judges
from troth_audit.replay import recount_money as money
from troth_audit.replay import recount_seeds as seeds
from troth_audit.replay import recount_sentence as sentences
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_script import Expected, Script, told
from troth_audit.replay.recount_state import AuditBook, Books, Judge, RoundBook, less
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditStage
from troth_coordinator.rules.audits import FIRST_SEATS, JURY_SEATS
from troth_coordinator.rules.ids import MAX_PARTICIPANTS, NO_INDEX, NONE, ZERO_DIGEST
from troth_coordinator.rules.seeds import jury_seed_slot
from troth_coordinator.rules.view import Status

JURY_COMMITS = 3
_AGAINST = (VerdictKind.MISMATCH, VerdictKind.UNAVAILABLE)
_CONTRADICTED = {
    CaseOutcome.CONVICTED: (VerdictKind.OK, SeatFault.WRONG_OK),
    CaseOutcome.ACQUITTED: (VerdictKind.MISMATCH, SeatFault.FALSE_MISMATCH),
}
_PENALTIES = ("stake", "unbonding", "unvested", "shortfall", "fault", "is_strike", "vouchers")
_REWARDS = ("fee", "paid", "seats_paid", "seats_fee", "vested", "juror_fees", "reward_undone")
_BOND = ("bond_spent", "bond_returned", "bond_acquitted", "bond_burned", "bond_pool")
_RULES = {
    **dict.fromkeys((*_PENALTIES, "jailed", "status"), Rule.PENALTY),
    **dict.fromkeys((*_REWARDS, *_BOND), Rule.REWARD),
}


def opened(books: Books, event: of_audits.CaseOpened) -> Script:
    """Somebody posts a bond: a jury must judge."""
    round_ = books.round_of(event.round, Rule.CASE)
    _require_claim(books, round_, event)
    challenger = bytes(event.challenger)
    fields = {
        "challenger_index": _index_of(books, challenger),
        "bond": books.params.bond_lamports,
        "case_seed_slot": jury_seed_slot(books.params, event.slot),
    }
    yield Expected(of_audits.CaseOpened, Rule.CASE, fields)
    key = event.round, event.target, event.audit_kind
    if event.audit_kind == AuditKind.WORK:
        audit = books.audit(*key, Rule.CASE)
    else:
        audit = audits.create(books, *key)
        audits.copy_round(books, audit, round_)
    audit.challenger, audit.challenger_index = challenger, _index_of(books, challenger)
    audit.bond = books.params.bond_lamports
    audit.flags |= AuditFlag.BONDED
    judges.await_jury(books, audit, event.slot)


def _index_of(books: Books, owner: bytes) -> int:
    """Return the index of a challenger that takes part, the present one first."""
    theirs = [entry for _, entry in books.members() if entry.owner == owner]
    return max(theirs, key=lambda e: (e.is_present, e.index)).index if theirs else NO_INDEX


def _require_claim(books: Books, round_: RoundBook, event: of_audits.CaseOpened) -> None:
    """Raise MisfitError for a claim that the program refuses."""
    one, target = 1 << event.target, books.entry(event.target, Rule.CASE)
    if event.audit_kind not in set(AuditKind):
        raise MisfitError(Rule.CASE, "0 to 3", event.audit_kind)
    kind, clock = event.audit_kind, books.clock(event.slot)
    if kind == AuditKind.WORK:
        audit = books.audit(event.round, event.target, kind, Rule.CASE)
        is_ended = audit.stage == AuditStage.SETTLED and audit.outcome in JUDGED
        is_it = is_ended and audit.openings_root != ZERO_DIGEST
    elif kind == AuditKind.PAYLOAD:
        is_it = bool(round_.included & one)
    elif kind == AuditKind.ROOT:
        is_exempt = round_.is_forced_void or round_.is_root_only
        is_it = bool(round_.committed & one) and not is_exempt
    else:
        held = round_.vouched.get(event.target, 0) & round_.included
        is_it = event.subject < MAX_PARTICIPANTS and bitmap.has(held, event.subject)
    decided = target.past.decided_round[kind]
    is_free = decided == NONE or event.round > decided
    is_in_time = round_.is_closed and clock <= round_.close_clock + books.params.case_slots
    is_other = target.owner != bytes(event.challenger) and target.joined_round <= event.round
    is_named = kind == AuditKind.POSSESSION or event.subject == NO_INDEX
    if not (is_it and is_free and is_in_time and is_other and is_named):
        raise MisfitError(Rule.CASE, "a claim that may be made", f"kind {kind}")
    parties = {event.target, _index_of(books, bytes(event.challenger))}
    able = set(bitmap.indices_of(eligible_jurors(books, round_.eligible, event.round)))
    if len(able - parties) < FIRST_SEATS:
        expected = f"{FIRST_SEATS} witnesses that may judge"
        raise MisfitError(Rule.CASE, expected, len(able - parties))


def retargeted(books: Books, event: of_audits.CaseSeedRetargeted) -> Script:
    """Name another seed slot for a case: the first was lost."""
    audit = _accused(books, event)
    if audit.has(AuditFlag.RETARGETED):
        raise MisfitError(Rule.JURY, "CaseSeedLost", event.name)
    audit.flags |= AuditFlag.RETARGETED
    between = seeds.lost_from(audit.case_seed_slot)
    audit.case_seed_slot = jury_seed_slot(books.params, event.slot)
    fields = {"case_seed_slot": audit.case_seed_slot}
    yield Expected(of_audits.CaseSeedRetargeted, Rule.JURY, fields, (), between)


def lost(books: Books, event: of_audits.CaseSeedLost) -> Script:
    """Give up a case whose seed slot was lost twice: there is no jury."""
    audit = _accused(books, event)
    if not audit.has(AuditFlag.RETARGETED):
        raise MisfitError(Rule.JURY, "CaseSeedRetargeted", event.name)
    audit.enter(AuditStage.CASE_REVEAL, books.clock(event.slot), 0)
    between = seeds.lost_from(audit.case_seed_slot)
    yield Expected(of_audits.CaseSeedLost, Rule.JURY, {}, (), between)


def _accused(
    books: Books,
    event: of_audits.JuryDrawn | of_audits.CaseSeedLost | of_audits.CaseSeedRetargeted,
) -> AuditBook:
    audit = books.audit(event.round, event.target, event.audit_kind, Rule.JURY)
    if audit.stage != AuditStage.ACCUSED:
        raise MisfitError(Rule.JURY, "a case that waits for its jury", audit.stage.name)
    return audit


def drawn(books: Books, event: of_audits.JuryDrawn) -> Script:
    """Draw the jury from the slot hash that the accusation named."""
    audit, clock = _accused(books, event), books.clock(event.slot)
    eligible = eligible_jurors(books, audit.eligible, audit.round)
    if audit.kind == AuditKind.WORK and sentences.breaker_holds(books):
        audit.flags |= AuditFlag.BREAKER
    key = audit.round, audit.target, audit.kind
    audit.case_seed = case_seed(event.slot_hash, books.run, *key)
    barred = [at for at in (audit.target, audit.challenger_index) if at != NO_INDEX]
    seats = [seat.index for seat in audit.judging]
    accusers = [seat.index for seat in audit.judging if seat.kind in _AGAINST]
    found = jury(audit.case_seed, eligible, barred, seats, accusers)
    audit.jurors = [Judge(index) for index in found]
    audit.enter(AuditStage.CASE_COMMIT, clock, books.params.jury_commit_slots)
    if not found:
        audit.enter(AuditStage.CASE_REVEAL, clock, 0)
    fields = {
        "case_seed_slot": audit.case_seed_slot,
        "case_seed": audit.case_seed,
        "eligible": eligible,
        "jurors": tuple(found) + (NO_INDEX,) * (JURY_SEATS - len(found)),
        "stage_end": audit.stage_end,
    }
    between = {"found_slot": (audit.case_seed_slot, event.slot - 1)}
    yield Expected(of_audits.JuryDrawn, Rule.JURY, fields, (), between)


def eligible_jurors(books: Books, eligible: int, round_: int) -> int:
    """Return those `eligible` in a round that may judge, whatever they are now."""
    return sum(
        one
        for one, entry in books.members()
        if eligible & one and entry.status != Status.BARRED and entry.joined_round <= round_
    )


def _juror(audit: AuditBook, index: int) -> Judge:
    found = next((juror for juror in audit.jurors if juror.index == index), None)
    if found is None:
        raise MisfitError(Rule.JURY, "a juror of the case", f"participant {index}")
    return found


def _advance(books: Books, audit: AuditBook, clock: int) -> None:
    if audit.stage == AuditStage.CASE_COMMIT and clock > audit.stage_end:
        ended = audit.commit_ends[JURY_COMMITS] = audit.stage_end
        audit.enter(AuditStage.CASE_REVEAL, ended, books.params.jury_reveal_slots)


def committed(books: Books, event: of_audits.JurorVoteCommitted) -> Script:
    """Note the hidden vote of a juror; the last one starts the reveals."""
    audit = books.audit(event.round, event.target, event.audit_kind, Rule.JURY)
    clock = books.clock(event.slot)
    standing.act(books, books.entry(event.index), event.slot)
    _advance(books, audit, clock)
    audits.require_stage(audit, AuditStage.CASE_COMMIT, clock, Rule.VERDICT)
    juror = _juror(audit, event.index)
    if juror.commit:
        raise MisfitError(Rule.VERDICT, "one commitment of a juror", "a second one")
    juror.commit = event.commitment
    if all(one.commit for one in audit.jurors):
        audit.enter(AuditStage.CASE_REVEAL, clock, books.params.jury_reveal_slots)
    fields = {"stage": int(audit.stage), "stage_end": audit.stage_end}
    yield Expected(of_audits.JurorVoteCommitted, Rule.VERDICT, fields)


def revealed(books: Books, event: of_audits.JurorVoteRevealed) -> Script:
    """Hold a vote against the hash that its juror committed to."""
    audit = books.audit(event.round, event.target, event.audit_kind, Rule.JURY)
    clock = books.clock(event.slot)
    standing.act(books, books.entry(event.index), event.slot)
    _advance(books, audit, clock)
    audits.require_stage(audit, AuditStage.CASE_REVEAL, clock, Rule.VERDICT)
    juror, kind = _juror(audit, event.index), audits.verdict_of(event.verdict)
    hashed = sketch_hash(event.sketch)
    case = event.round, event.target, event.audit_kind, event.index
    audits.require_hash(
        juror, Vote(books.run, *case, kind, event.evidence, hashed).commit(event.salt)
    )
    juror.kind, juror.sketch = kind, event.sketch
    is_work = audit.kind == AuditKind.WORK
    if not (proves(kind, event.sketch) if is_work else not any(event.sketch)):
        raise MisfitError(Rule.VERDICT, "a sketch in a case of work alone", "another")
    yield Expected(of_audits.JurorVoteRevealed, Rule.VERDICT, {})


def decide(audit: AuditBook, clock: int) -> CaseOutcome:
    """Return the decision of the jury, once nobody may reveal any more."""
    audits.require_shown(audit, audit.jurors, AuditStage.CASE_REVEAL, clock)
    is_claim = audit.has(AuditFlag.BONDED | AuditFlag.UNAVAILABLE)
    if audit.case_seed == ZERO_DIGEST or (is_claim and not audit.jurors):
        return CaseOutcome.NOT_PROVEN
    return _counted(audit)


def is_lost(audit: AuditBook) -> bool:
    """Whether the votes shown so far convict the target: that freezes it in any case."""
    return _counted(audit) == CaseOutcome.CONVICTED


def _counted(audit: AuditBook) -> CaseOutcome:
    votes = [juror.kind for juror in audit.jurors]
    return case_outcome(votes, is_work=audit.kind == AuditKind.WORK)


def settled(books: Books, event: of_audits.CaseSettled) -> Script:
    """End a case: sentence, fees, penalties of judges, the bond."""
    audit = books.audit(event.round, event.target, event.audit_kind, Rule.CASE)
    clock = books.clock(event.slot)
    _advance(books, audit, clock)
    outcome, jailed_before = decide(audit, clock), books.jailed()
    sentence = yield from sentences.pronounce(books, audit, outcome, event.slot)
    paid_jurors = _paid_jurors(books, audit, outcome)
    paid = yield from _pay_jurors(books, audit, outcome, paid_jurors, event.slot)
    paid_seats = _agreeing(audit, outcome)
    seats = yield from judges.pay(books, audit, paid_seats, 0, event.slot, uses_pool=True)
    yield from _penalise_jurors(books, audit)
    yield from _penalise_contradicted(books, audit, outcome)
    is_acquitted = outcome == CaseOutcome.ACQUITTED
    test = judges.Test.PASSED if is_acquitted else judges.Test.FAILED
    yield from judges.end_test(books, audit, test, event.slot)
    bond, audit.bond = audit.bond, 0
    parts = slashing.failed_case(bond) if is_acquitted else slashing.Split()
    books.entry(audit.target).claimable += parts.acquitted
    audit.stage, audit.case_outcome = AuditStage.DECIDED, int(outcome)
    rest = bond - parts.total
    ways = ({"bond_returned": rest, "bond_pool": 0}, {"bond_returned": 0, "bond_pool": rest})
    fields = {
        "outcome": int(outcome),
        "flags": int(audit.flags),
        "fault": sentence.fault,
        "stake": audit.escrow_stake,
        "unbonding": audit.escrow_unbonding,
        "unvested": audit.escrow_unvested,
        "shortfall": audit.shortfall,
        "appeal_end": audit.appeal_end,
        "stage_end": audit.stage_end,
        "fee": paid.fee,
        "paid": paid_jurors,
        "seats_paid": paid_seats,
        "seats_fee": seats.fee,
        "vested": paid.vested + seats.vested,
        "bond_spent": paid.from_source - audit.juror_fees,
        "juror_fees": audit.juror_fees,
        "bond_acquitted": parts.acquitted,
        "bond_burned": parts.burned,
        "reward_undone": sentence.reward_undone,
        "is_strike": sentence.is_strike,
        "vouchers": sentence.vouchers,
        "jailed": books.jailed() & ~jailed_before,
        "status": int(books.entry(audit.target).status),
    }
    found = yield Expected(of_audits.CaseSettled, Rule.CASE, fields, ways, rules=_RULES)
    books.pool += rest - min(rest, told(found, of_audits.CaseSettled).bond_returned)


def _paid_jurors(books: Books, audit: AuditBook, outcome: CaseOutcome) -> int:
    votes = [Report(bool(one.commit), one.kind, one.sketch) for one in audit.jurors]
    panel = Panel(votes, books.params.sketch_factor)
    places = panel.paid_jurors(outcome, is_work=audit.kind == AuditKind.WORK)
    return sum(1 << audit.jurors[place].index for place in places)


def _pay_jurors(
    books: Books, audit: AuditBook, outcome: CaseOutcome, paid: int, slot: int
) -> judges.Paying:
    is_paid_by_bond = audit.has(AuditFlag.FURTHER) and audit.has(AuditFlag.BONDED)
    if outcome == CaseOutcome.CONVICTED and not is_paid_by_bond:
        source = slashing.split(audit.taken, has_bond=audit.has(AuditFlag.BONDED)).burned
        fees = yield from judges.pay(books, audit, paid, source, slot, uses_pool=True)
        audit.juror_fees = fees.from_source
        return fees
    fees = yield from judges.pay(books, audit, paid, audit.bond, slot, uses_pool=True)
    audit.bond = less(audit.bond, fees.from_source)
    return fees


def _agreeing(audit: AuditBook, outcome: CaseOutcome) -> int:
    """Return the seats that said unavailable before a jury did."""
    if outcome != CaseOutcome.NO_OPENINGS or not audit.has(AuditFlag.UNAVAILABLE):
        return 0
    said = [seat.index for seat in audit.seats if seat.kind == VerdictKind.UNAVAILABLE]
    return bitmap.from_indices(said)


def _penalise_jurors(books: Books, audit: AuditBook) -> Script:
    for juror in audit.jurors:
        if juror.kind is not None:
            continue
        fault = SeatFault.NO_REVEAL if juror.commit else SeatFault.NO_COMMIT
        juror.is_faulty = True
        why = fault, audit.commit_ends[JURY_COMMITS]
        yield from judges.penalise_judge(books, audit, juror.index, why)


def _penalise_contradicted(books: Books, audit: AuditBook, outcome: CaseOutcome) -> Script:
    wrong = _CONTRADICTED.get(outcome)
    if wrong is None:
        return
    left: int = slashing.acquittal(money.prices(books, audit.reward_price))
    for place, seat in enumerate(audit.judging):
        if seat.kind == wrong[0]:
            left = yield from judges.penalise_seat(books, audit, place, (wrong[1], 0), left)
