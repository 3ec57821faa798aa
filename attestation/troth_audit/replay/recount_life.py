"""Money of participants in the recount: stakes, tickets, claims, joining and leaving.

Owns: what comes in and goes out of the vault beside audits (program: `instructions/`).
Never: sees lamports that somebody sent to the vault unasked; leftovers may hold them.
Next: `recount_money.py` for the places of lamports.
"""

from dataclasses import replace

from troth_audit.replay import recount_money as money
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_cases import is_lost
from troth_audit.replay.recount_members import end_probations
from troth_audit.replay.recount_script import Expected, Script
from troth_audit.replay.recount_state import AuditBook, Books, Entry, Record, less
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain import event_types_life as of_life
from troth_coordinator.rules.audit_view import AuditFlag, AuditStage
from troth_coordinator.rules.ids import MAX_TICKETS, NO_INDEX, NONE
from troth_coordinator.rules.params_checks import jury_duty_slots
from troth_coordinator.rules.params_update import check_update
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import EntryFlag, Role, Status

_UNDERWAY = (Phase.COMMIT, Phase.ATTEST, Phase.COOLDOWN, Phase.PAUSED)
GONE = (Status.LEFT, Status.BARRED)


def funded(books: Books, event: of_life.RunFunded) -> Script:
    """Add to the pool."""
    books.pool += event.lamports
    fields = {"funder": books.funder, "reward_pool": books.pool}
    yield Expected(of_life.RunFunded, Rule.VAULT, fields)


def params_requested(books: Books, event: of_life.ParamsRequested) -> Script:
    """Let new parameters wait, if an update may go so far (program: `state/params_update.rs`)."""
    created = books.told.created
    if created is not None:
        check_update(created.params, books.params, event.params)
    _require_payable(books, event.params)
    books.requested = event.slot, event.params
    yield Expected(of_life.ParamsRequested, Rule.RUN_ACCOUNT, {})


def _require_payable(books: Books, params: ParamsView) -> None:
    """Raise MisfitError for a higher reward that the pool cannot pay for an epoch."""
    present = [entry for _, entry in books.members() if entry.is_present]
    num_trainers = sum(bool(entry.roles & Role.TRAINER) for entry in present)
    num_payloads = max(num_trainers, books.params.min_members) * books.params.rounds_per_epoch
    cost = params.reward_per_payload * num_payloads
    is_raise = params.reward_per_payload > books.params.reward_per_payload
    if is_raise and cost > books.pool:
        raise MisfitError(Rule.RUN_ACCOUNT, f"a pool of {cost} lamports", books.pool)


def params_applied(books: Books, _: of_life.ParamsApplied) -> Script:
    """Put the parameters in force that waited, at the start of an epoch and after their delay."""
    if books.requested is not None:
        _require_payable(books, books.requested[1])
    per_epoch, (slot, params) = books.params.rounds_per_epoch, books.requested or (NONE, None)
    least = slot + books.params.param_delay_slots
    fields = {"epoch": books.round // per_epoch, "params": params}
    yield Expected(of_life.ParamsApplied, Rule.RUN_ACCOUNT, fields, between={"slot": (least, NONE)})
    if books.round % per_epoch:
        raise MisfitError(Rule.RUN_ACCOUNT, "the first round of an epoch", f"round {books.round}")
    books.requested = None


def joined(books: Books, event: of_life.ParticipantJoined) -> Script:
    """Give an index to an owner that deposits the stake; its past comes along."""
    owner, key = books.owner(bytes(event.owner)), bytes(event.owner)
    former = books.entries.get(owner.index)
    if former is not None and former.owner == key:
        former.unbonding = 0
        money.release(books, former, event.slot)
        owner.record = take_record(former)
    _require_vacant(books, event)
    if len(owner.tickets) >= MAX_TICKETS:
        # The tickets of a former membership count for the new one, and leaving takes another.
        raise MisfitError(Rule.VAULT, "a ticket left for leaving", f"{MAX_TICKETS} in use")
    stake = books.params.min_stake_lamports
    fields = {"stake": stake, "round": books.round}
    yield Expected(of_life.ParticipantJoined, Rule.VAULT, fields)
    past, owner.record = owner.record, Record()
    owner.index = event.index
    entry = Entry(event.index, key, event.roles, books.round, stake=stake, past=past)
    if past.is_on_probation:
        standing.begin_probation(entry)
    entry.unbonding = owner.unbonding
    books.entries[event.index] = entry
    others = ~(1 << event.index)
    books.convicted = [convicted & others for convicted in books.convicted]
    if past.is_remembered(books.round):
        yield _record_moved(entry, past, is_in_force=True)


def _require_vacant(books: Books, event: of_life.ParticipantJoined) -> None:
    """Raise MisfitError where an index is given away that somebody holds or is owed at."""
    before = books.entries.get(event.index)
    if before is None:
        return
    money.release(books, before, event.slot)
    previous = books.owners.get(before.owner)
    is_last_life = previous is not None and previous.index == event.index
    if previous is not None and is_last_life:
        previous.index = NO_INDEX
    owed = before.claimable + before.buckets.unvested
    if owed or not is_free(books, before):
        raise MisfitError(Rule.VAULT, "an index that is free", f"index {event.index}")
    duty_until = before.presence.last_action + jury_duty_slots(books.params)
    is_juror = before.status == Status.LEFT and before.active_round != NONE
    if is_juror and books.clock(event.slot) <= duty_until:
        raise MisfitError(Rule.JURY, f"an owner without a jury after {duty_until}", "another one")
    if is_last_life and is_remembered(books, before):
        raise MisfitError(Rule.PENALTY, "RecordMoved of the owner before", "none")


def is_free(books: Books, entry: Entry) -> bool:
    """Whether an index may be given to somebody else (program: `Entry::is_free`)."""
    is_past = entry.active_round == NONE or entry.left_round + books.params.ring <= books.round
    is_clear = not (entry.stake or entry.withheld or is_named(books, entry.index))
    return entry.status in GONE and is_clear and is_past


def is_remembered(books: Books, entry: Entry) -> bool:
    """Whether a later membership of its owner must know of this one."""
    past = replace(entry.past, is_on_probation=entry.is_on_probation)
    return past.is_remembered(books.round)


def is_named(books: Books, index: int) -> bool:
    """Whether an open audit or case names an index: as a judge, as target or as challenger."""
    return any(index in _named(audit) for audit in books.audits.values())


def _named(audit: AuditBook) -> set[int]:
    judges = {judge.index for judge in (*audit.seats, *audit.jurors)}
    return judges | {audit.target, audit.challenger_index}


def take_record(entry: Entry) -> Record:
    """Move the record out of an entry: it is in one place only."""
    found, entry.past = entry.past, Record()
    found.is_on_probation = entry.is_on_probation
    standing.end_probation(entry)
    return found


def record_moved(books: Books, event: of_life.RecordMoved) -> Script:
    """Move the record of the former owner of an index to its account."""
    entry = books.entry(event.index)
    owner = books.owner(entry.owner)
    if owner.index != event.index:
        raise MisfitError(Rule.PENALTY, "the record of its owner's last membership", "another one")
    money.release(books, entry, event.slot)
    past = take_record(entry)
    yield _record_moved(entry, past, is_in_force=False)
    owner.record, owner.index = past, NO_INDEX


def _record_moved(entry: Entry, past: Record, *, is_in_force: bool) -> Expected:
    fields = {
        "owner": entry.owner,
        "index": entry.index,
        "is_in_force": is_in_force,
        "work_faults": past.work_faults,
        "strikes": past.strikes,
        "openings_step": past.refusals.step,
        "jailed_until_round": past.jailed_until_round,
    }
    return Expected(of_life.RecordMoved, Rule.PENALTY, fields)


def rewards_moved(books: Books, event: of_life.RewardsMoved) -> Script:
    """Rewards left behind at an index go to the account of their owner."""
    entry = books.entry(event.index)
    money.release(books, entry, event.slot)
    fields = {"owner": entry.owner, "lamports": entry.claimable}
    yield Expected(of_life.RewardsMoved, Rule.VAULT, fields)
    owner = books.owner(entry.owner)
    owner.claimable += entry.claimable
    entry.claimable = 0
    if owner.index == event.index and entry.past != Record():
        # The record of the last membership comes along, also where nothing of it is remembered.
        owner.record = replace(entry.past)


def topped_up(books: Books, event: of_life.StakeToppedUp) -> Script:
    """Add stake."""
    entry = books.entry(event.index)
    entry.stake += event.lamports
    yield Expected(of_life.StakeToppedUp, Rule.VAULT, {"stake": entry.stake})


def leaving(books: Books, event: of_life.LeaveRequested) -> Script:
    """Unbond the whole stake. Somebody who serves no open round is gone at once."""
    entry, clock = books.entry(event.index), books.clock(event.slot)
    standing.act(books, entry, event.slot)
    at_next_open = entry.status == Status.ACTIVE and books.phase in _UNDERWAY
    matures = clock + books.params.unbond_slots
    fields = {
        "stake": entry.stake,
        "matures_clock": matures,
        "at_next_open": at_next_open,
        "duty_until": clock + jury_duty_slots(books.params),
    }
    yield Expected(of_life.LeaveRequested, Rule.VAULT, fields)
    money.unbond(books, entry, entry.stake, matures)
    if at_next_open:
        entry.flags |= EntryFlag.LEAVING
        return
    if entry.is_on_probation and entry.is_present:
        ended = end_probations(books, [(1 << event.index, entry)])
        yield Expected(of_audits.ProbationsEnded, Rule.REWARD, ended)
    standing.end_membership(entry, Status.LEFT, books.round)
    books.expected = books.expected.without(1 << event.index)
    left = {"index": event.index, "owner": entry.owner, "round": books.round}
    yield Expected(of_life.ParticipantLeft, Rule.VAULT, left)


def unbonding(books: Books, event: of_life.StakeUnbonding) -> Script:
    """Stake above the minimum starts unbonding."""
    entry = books.entry(event.index)
    matures = books.clock(event.slot) + books.params.unbond_slots
    spare = max(0, entry.stake - books.params.min_stake_lamports)
    between = {"lamports": (1, spare)}
    fields = {"matures_clock": matures}
    yield Expected(of_life.StakeUnbonding, Rule.VAULT, fields, (), between)
    money.unbond(books, entry, min(event.lamports, entry.stake), matures)


def withdrawn(books: Books, event: of_life.StakeWithdrawn) -> Script:
    """Matured stake is paid."""
    key, clock = bytes(event.owner), books.clock(event.slot)
    owner = books.owner(key)
    _require_unfrozen(books, key)
    ripe = sum(lamports for matures, lamports in owner.tickets if matures <= clock)
    yield Expected(of_life.StakeWithdrawn, Rule.VAULT, {"lamports": ripe})
    owner.tickets = [ticket for ticket in owner.tickets if ticket[0] > clock]
    entry = books.entries.get(owner.index)
    if entry is not None and entry.owner == key:
        entry.unbonding = less(entry.unbonding, ripe)


def claimed(books: Books, event: of_life.RewardClaimed) -> Script:
    """Vested rewards are paid."""
    key = bytes(event.owner)
    _require_unfrozen(books, key)
    theirs = [entry for _, entry in books.members() if entry.owner == key]
    vested = sum(money.release(books, entry, event.slot) for entry in theirs)
    owner = books.owner(key)
    lamports = owner.claimable + sum(entry.claimable for entry in theirs)
    yield Expected(of_life.RewardClaimed, Rule.VAULT, {"vested": vested, "lamports": lamports})
    owner.claimable = 0
    for entry in theirs:
        entry.claimable = 0


def _require_unfrozen(books: Books, owner: bytes) -> None:
    if is_frozen(books, owner):
        raise MisfitError(Rule.VAULT, "nothing paid out under an accusation", "a payment")


def is_frozen(books: Books, owner: bytes) -> bool:
    """Whether an accusation or an escrow is open against an owner."""
    for audit in books.audits.values():
        is_open = AuditStage.ACCUSED <= audit.stage < AuditStage.DECIDED
        freezes = is_open and (not audit.has(AuditFlag.UNAVAILABLE) or is_lost(audit))
        if audit.owner == owner and (freezes or audit.case_outcome == 1):
            return True
    return False


def participant_closed(books: Books, event: of_life.ParticipantClosed) -> Script:
    """Close the account of an owner to whom nothing is owed."""
    key = bytes(event.owner)
    owner = books.owners.get(key)
    if owner is None:
        raise MisfitError(Rule.VAULT, "an owner with an account", key.hex())
    theirs = [entry for _, entry in books.members() if entry.owner == key]
    owed = owner.claimable + owner.unbonding
    owed += sum(e.stake + e.claimable + e.withheld + e.buckets.unvested for e in theirs)
    if owed:
        raise MisfitError(Rule.VAULT, "nothing owed to the owner", f"{owed} lamports")
    yield Expected(of_life.ParticipantClosed, Rule.VAULT, {})
    del books.owners[key]


def leftovers(books: Books, _: of_life.LeftoversPaid) -> Script:
    """Pay what is owed to nobody: the pool, and what strangers sent."""
    between = {"lamports": (books.pool, NONE)}
    fields = {"funder": books.funder}
    yield Expected(of_life.LeftoversPaid, Rule.VAULT, fields, (), between)
    books.pool = 0
