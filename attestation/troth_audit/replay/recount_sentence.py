"""The effect of a case on its target, and the end of its escrow (program: `case/`).

Owns: the slash into escrow, further convictions, the breaker, appeals, reversals, the release.
Never: decides an outcome. Next: `recount_judges.py` for the price of refusals and doubts.
"""

from collections.abc import Generator
from dataclasses import dataclass

from troth_attestation import slashing
from troth_attestation.quorum import CaseOutcome
from troth_attestation.slashing import Fault, SlashIntent
from troth_audit.replay import recount_judges as judges
from troth_audit.replay import recount_money as money
from troth_audit.replay import recount_seeds as seeds
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_script import Expected, Script, told
from troth_audit.replay.recount_state import AuditBook, Books, Entry, less
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditStage
from troth_coordinator.rules.audits import CONVICTED_PART
from troth_coordinator.rules.bitmap import count
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

BREAKER_PEOPLE = 8
BREAKER_PART = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """Consequences beside what waits in escrow."""

    fault: int = 0
    reward_undone: int = 0
    is_strike: bool = False
    vouchers: int = 0


Sentencing = Generator[Expected, Event, Sentence]


def pronounce(books: Books, audit: AuditBook, outcome: CaseOutcome, slot: int) -> Sentencing:
    """Do what an outcome means for the target."""
    audit.stage_end = audit.appeal_end = books.clock(slot)
    if outcome == CaseOutcome.CONVICTED:
        return (yield from _convict(books, audit, slot))
    if outcome == CaseOutcome.EXCLUDED:
        undone = judges.take_back_reward(books, audit)
        standing.jail(books, books.entry(audit.target), books.round)
        return Sentence(reward_undone=undone)
    if outcome == CaseOutcome.NO_OPENINGS:
        undone = yield from judges.no_openings(books, audit, slot)
        return Sentence(judges.number_of(Fault.NO_OPENINGS), undone)
    if outcome == CaseOutcome.NOT_PROVEN and not audit.has(AuditFlag.BONDED):
        undone, is_strike = judges.leave_unproven(books, audit)
        return Sentence(reward_undone=undone, is_strike=is_strike)
    return Sentence()


def _convict(books: Books, audit: AuditBook, slot: int) -> Sentencing:
    entry, kind = books.entry(audit.target), AuditKind(audit.kind)
    if entry.pending_kinds >> kind & 1:
        raise MisfitError(Rule.CASE, "one conviction of a kind at a time", "another one")
    decided = entry.past.decided_round[kind]
    is_further = decided != NONE and audit.round <= decided
    if audit.has(AuditFlag.UNAVAILABLE):
        judges.accuse(books, audit)
    undone = 0
    if is_further:
        undone = _hold_reward(books, audit, entry)
    else:
        _count_conviction(books, audit, entry)
        yield from _slash(books, audit, entry, decided)
    params = books.params
    audit.appeal_end = books.clock(slot) + params.appeal_slots
    waits = params.breaker_slots if audit.has(AuditFlag.BREAKER) else 0
    audit.stage_end = audit.appeal_end + waits
    vouchers = 0
    if kind == AuditKind.PAYLOAD:
        vouchers = yield from _strike_vouchers(books, audit)
    return Sentence(judges.number_of(slashing.CONVICTED_FAULTS[kind]), undone, vouchers=vouchers)


def _slash(books: Books, audit: AuditBook, entry: Entry, before: int) -> Script:
    intent, kind = _intent(entry, AuditKind(audit.kind)), AuditKind(audit.kind)
    withheld = 0
    if kind == AuditKind.WORK:
        withheld = money.return_withheld(books, entry)
        books.pool -= withheld
    taken = yield from judges.slash(books, audit, audit.target, intent)
    audit.escrow_stake = taken.stake
    audit.escrow_unbonding = taken.unbonding
    audit.escrow_unvested = taken.unvested + withheld
    audit.shortfall = taken.shortfall
    audit.decided_before = before
    entry.pending_kinds |= 1 << kind
    _decide(entry, kind, books.newest_round)
    if kind == AuditKind.WORK:
        entry.past.work_faults = min(255, entry.past.work_faults + 1)


def _decide(entry: Entry, kind: int, round_: int) -> None:
    rounds = list(entry.past.decided_round)
    rounds[kind] = round_
    entry.past.decided_round = tuple(rounds)


def _intent(entry: Entry, kind: AuditKind) -> SlashIntent:
    funds = money.funds(entry)
    if kind == AuditKind.WORK:
        return slashing.work(funds, is_repeated=entry.past.work_faults > 0)
    if kind == AuditKind.PAYLOAD:
        return slashing.malformed(funds)
    return (
        slashing.false_root(funds) if kind == AuditKind.ROOT else slashing.false_possession(funds)
    )


def _hold_reward(books: Books, audit: AuditBook, entry: Entry) -> int:
    """Take the reward of that round into escrow, and nothing else."""
    audit.flags |= AuditFlag.FURTHER
    is_possession = audit.kind == AuditKind.POSSESSION
    if is_possession and standing.strike(books, entry, books.round):
        audit.jailed_until = entry.past.jailed_until_round
    reward = judges.take_back_reward(books, audit)
    books.pool -= reward
    audit.escrow_unvested = reward
    return reward


def _count_conviction(books: Books, audit: AuditBook, entry: Entry) -> None:
    seeds.turn_epoch(books)
    present, one = books.present(), 1 << audit.target
    convicted = books.convicted[audit.kind]
    if entry.status != Status.BARRED and not convicted & one:
        cap = max(1, count(present) // CONVICTED_PART)
        if books.phase != Phase.FINISHED and count(convicted) >= cap:
            raise MisfitError(Rule.CASE, f"{cap} convictions in an epoch", "one more")
        books.convicted[audit.kind] = convicted = convicted | one
    people = count(present | convicted)
    is_exact = people >= BREAKER_PEOPLE and BREAKER_PART * count(convicted) >= people
    if breaker_holds(books) if audit.kind == AuditKind.WORK else is_exact:
        audit.flags |= AuditFlag.BREAKER


def breaker_holds(books: Books) -> bool:
    """Whether more than a third of at least eight sampled participants are accused."""
    sampled, accused = count(books.sampled), count(books.accused)
    is_of_now = books.audit_epoch == books.epoch
    return is_of_now and sampled >= BREAKER_PEOPLE and BREAKER_PART * accused > sampled


def _strike_vouchers(books: Books, audit: AuditBook) -> Generator[Expected, Event, int]:
    struck = 0
    for one, entry in books.members():
        if audit.vouchers & one and entry.joined_round <= audit.round:
            intent = slashing.vouched_for_malformed()
            yield from judges.slash(books, audit, entry.index, intent)
            struck |= one
    return struck


def appealed(books: Books, event: of_audits.CaseAppealed) -> Script:
    """Let the escrow wait longer: the convicted owner asks the council."""
    audit = _conviction(books, event)
    is_over = books.clock(event.slot) > audit.appeal_end
    if is_over or audit.has(AuditFlag.APPEALED):
        raise MisfitError(Rule.CASE, "one appeal in its window", "another one")
    audit.flags |= AuditFlag.APPEALED
    audit.stage_end += books.params.appeal_slots
    yield Expected(of_audits.CaseAppealed, Rule.CASE, {"stage_end": audit.stage_end})


def reversed_(books: Books, event: of_audits.CaseReversed) -> Script:
    """Reverse a conviction, as the council may."""
    audit, clock = _conviction(books, event), books.clock(event.slot)
    may_act = audit.has(AuditFlag.APPEALED | AuditFlag.BREAKER)
    is_open = audit.appeal_end < clock <= audit.stage_end
    if not (may_act and is_open) or audit.has(AuditFlag.REVERSED):
        raise MisfitError(Rule.CASE, "a conviction that may be reversed", "another one")
    audit.flags |= AuditFlag.REVERSED
    audit.stage_end = clock
    yield Expected(of_audits.CaseReversed, Rule.CASE, {})


def _conviction(books: Books, event: of_audits.CaseAppealed | of_audits.CaseReversed) -> AuditBook:
    audit = books.audit(event.round, event.target, event.audit_kind, Rule.CASE)
    if not _is_conviction(audit):
        raise MisfitError(Rule.CASE, "a conviction", f"outcome {audit.case_outcome}")
    return audit


def _is_conviction(audit: AuditBook) -> bool:
    is_decided = audit.stage == AuditStage.DECIDED
    return is_decided and audit.case_outcome == CaseOutcome.CONVICTED


def closed(books: Books, event: of_audits.AuditClosed) -> Script:
    """Close an audit that is over: the escrow is paid."""
    key = event.round, event.target, event.audit_kind
    audit, clock = books.audit(*key, Rule.PENALTY), books.clock(event.slot)
    entry = books.entry(audit.target)
    is_decided = audit.stage == AuditStage.DECIDED
    is_over = clock > audit.stage_end and (not is_decided or clock > audit.case_end)
    if not (is_decided or audit.stage == AuditStage.SETTLED) or not is_over:
        raise MisfitError(Rule.CASE, "an audit that is over", audit.stage.name.lower())
    fields = {"returned": 0, "burned": 0, "shortfall": 0}
    rest = 0
    if _is_conviction(audit) and audit.has(AuditFlag.REVERSED):
        fees_back = min(audit.juror_fees, books.pool)
        books.pool -= fees_back
        fields["returned"] = audit.escrow + fees_back
        fields["shortfall"] = audit.juror_fees - fees_back
        _give_back(books, audit, entry, fields["returned"])
    elif _is_conviction(audit):
        parts = slashing.split(audit.taken, has_bond=audit.has(AuditFlag.BONDED))
        rest = parts.challenger
        fields["burned"] = less(parts.burned, audit.juror_fees)
    if _is_conviction(audit):
        _end_pending(audit, entry)
    entry.targets -= 1
    del books.audits[key]
    ways = ({"challenger": rest, "pool": 0}, {"challenger": 0, "pool": rest})
    exact = {**fields, "status": int(entry.status)}
    found = yield Expected(of_audits.AuditClosed, Rule.PENALTY, exact, ways)
    books.pool += rest - min(rest, told(found, of_audits.AuditClosed).challenger)


def _give_back(books: Books, audit: AuditBook, entry: Entry, returned: int) -> None:
    past = entry.past
    entry.claimable += returned
    is_work = not audit.has(AuditFlag.FURTHER) and audit.kind == AuditKind.WORK
    if is_work:
        past.work_faults = max(0, past.work_faults - 1)
    if audit.kind == AuditKind.POSSESSION:
        past.strikes = max(0, past.strikes - 1)
        standing.remove_strike(entry)
    if past.jailed_until_round == audit.jailed_until:
        # A reversal ends the jail that its conviction began, and no other.
        past.jailed_until_round = min(audit.jailed_until, books.round)
    if is_work and past.work_faults < 2 and entry.status == Status.BARRED:
        entry.status = Status.LEFT
        books.owner(entry.owner).is_barred = False


def _end_pending(audit: AuditBook, entry: Entry) -> None:
    if audit.has(AuditFlag.FURTHER):
        return
    if audit.has(AuditFlag.REVERSED):
        _decide(entry, audit.kind, audit.decided_before)
    entry.pending_kinds &= ~(1 << audit.kind)
