"""The state that a run's events imply by the program's rules: entries, owners, rounds, audits.

Owns: the records that the recount works on, and the lookups that refuse what cannot be.
Never: decides anything, or reads an account.
Next: `recount_money.py` for what moves lamports, `recount.py` for the order of it all; `told.py`
for what the events state.

All of it is bounded: 64 entries, the rounds of the ring, open audits, owners with an account.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from troth_attestation.verdict import VerdictKind
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Rule
from troth_audit.replay.told import Told
from troth_coordinator.rules.audit_view import AuditFlag, AuditKey, AuditStage
from troth_coordinator.rules.expected_members import ExpectedMembers
from troth_coordinator.rules.ids import NO_INDEX, NONE, ZERO_DIGEST
from troth_coordinator.rules.outage import Presence
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import PRESENT
from troth_coordinator.rules.refusal import Refusals
from troth_coordinator.rules.reward import Buckets
from troth_coordinator.rules.standing import NO_STRIKES, Misses, StrikeRing
from troth_coordinator.rules.view import EntryFlag, SeedStatus, Status

NO_DECISIONS = (NONE,) * 4
NO_REFUSALS, NO_MISSES, NEVER_THERE = Refusals(), Misses(), Presence(0)
EMPTY_BUCKETS = Buckets((0, 0, 0), (0, 0, 0))


@dataclass(slots=True)
class Record:
    """The past of an owner, which outlives its membership (program: `state/record.rs`)."""

    work_faults: int = 0
    seat_faults: int = 0
    strikes: int = 0
    strike_rounds: StrikeRing = NO_STRIKES
    unproven_rounds: StrikeRing = NO_STRIKES
    decided_round: tuple[int, ...] = NO_DECISIONS
    refusals: Refusals = NO_REFUSALS
    included_total: int = 0
    reveal_fault_round: int = NONE
    inactive_round: int = NONE
    return_round: int = 0
    jailed_until_round: int = 0
    is_on_probation: bool = False

    def is_remembered(self, round_: int) -> bool:
        """Whether a membership that begins in `round_` must know it."""
        counts = (self.work_faults, self.seat_faults, self.strikes, self.refusals.step)
        marks = self.unproven_rounds + tuple(self.decided_round)
        is_kept_out = max(self.return_round, self.jailed_until_round) > round_
        return any(counts) or any(m != NONE for m in marks) or is_kept_out or self.is_on_probation


@dataclass(slots=True)
class Entry:
    """One index of the roster. `past` is the part that moves with the owner."""

    index: int
    owner: bytes
    roles: int
    joined_round: int
    status: Status = Status.PENDING
    stake: int = 0
    claimable: int = 0
    unbonding: int = 0
    withheld: int = 0
    withheld_from: int = 0
    buckets: Buckets = EMPTY_BUCKETS
    active_round: int = NONE
    last_included: int = NONE
    left_round: int = NONE
    rounds_served: int = 0
    included_since_strike: int = 0
    misses: Misses = NO_MISSES
    flags: int = 0
    presence: Presence = NEVER_THERE
    probation_round: int = NONE
    pending_kinds: int = 0
    targets: int = 0
    has_next_session: bool = False
    ready: tuple[int, bytes] | None = None
    """The round whose weights it says that it holds, and its vote for their root."""
    past: Record = field(default_factory=Record)

    @property
    def is_present(self) -> bool:
        """Joined, and neither left nor barred."""
        return self.status in PRESENT

    @property
    def is_leaving(self) -> bool:
        """Whether it asked to leave, and still serves."""
        return bool(self.flags & EntryFlag.LEAVING)

    @property
    def is_on_probation(self) -> bool:
        """Whether its rewards wait for an audit."""
        return bool(self.flags & EntryFlag.PROBATION)

    @property
    def work_faults(self) -> int:
        """Convictions for work, of this membership and those before."""
        return self.past.work_faults


@dataclass(slots=True)
class Owner:
    """The account of an owner: its index, tickets of stake on its way out, and what waits there."""

    index: int = NO_INDEX
    tickets: list[tuple[int, int]] = field(default_factory=list)
    """Moment on the run clock at which it is paid, lamports."""
    claimable: int = 0
    record: Record = field(default_factory=Record)
    is_admitted: bool = False
    is_barred: bool = False

    @property
    def unbonding(self) -> int:
        """Lamports in all tickets."""
        return sum(lamports for _, lamports in self.tickets)


@dataclass(slots=True)
class RoundBook:
    """One position of the ring. Bitmaps go by index."""

    number: int
    is_root_only: bool
    members: int
    trainers: int
    eligible: int
    is_new: int
    reward_price: int
    base_round: int
    is_closed: bool = False
    is_forced_void: bool = False
    is_doubled: bool = False
    committed: int = 0
    votes: dict[int, bytes] = field(default_factory=dict)
    vouched: dict[int, int] = field(default_factory=dict)
    previous: dict[int, int] = field(default_factory=dict)
    reports: dict[int, int] = field(default_factory=dict)
    included: int = 0
    struck: int = 0
    sampled: int = 0
    requested: int = 0
    audited: int = 0
    unpaid: int = 0
    withheld: int = 0
    probation: int = 0
    reward_paid: int = 0
    reward_window: int = 0
    price_base: int = 0
    price_new: int = 0
    seed_slot: int = NONE
    seed_status: SeedStatus = SeedStatus.NONE
    seed: bytes = ZERO_DIGEST
    canonical_root: bytes = ZERO_DIGEST
    freeze_clock: int = NONE
    close_clock: int = NONE

    @property
    def attested(self) -> int:
        """The members that attested."""
        return sum(1 << index for index in self.vouched)

    def vouchers(self, target: int) -> int:
        """Return the members that vouched for a payload."""
        return sum(1 << index for index, held in self.vouched.items() if held >> target & 1)


@dataclass(slots=True)
class Judge:
    """A seat or a juror."""

    index: int
    commit: bytes = b""
    kind: VerdictKind | None = None
    sketch: tuple[int, ...] | None = None
    is_faulty: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether nothing more is awaited once its commits are over."""
        return self.kind is not None or not self.commit


@dataclass(slots=True)
class AuditBook:
    """One open audit or case. Moments are on the run clock."""

    round: int
    target: int
    kind: int
    owner: bytes
    stage: AuditStage
    stage_end: int = NONE
    flags: int = 0
    outcome: int = 0
    case_outcome: int = 0
    num_seats: int = 0
    first_acting: int = 0
    seats: list[Judge] = field(default_factory=list)
    jurors: list[Judge] = field(default_factory=list)
    commit_ends: list[int] = field(default_factory=lambda: [0] * 4)
    eligible: int = 0
    vouchers: int = 0
    reward_paid: int = 0
    reward_window: int = 0
    reward_price: int = 0
    openings_price: int = 0
    openings_root: bytes = ZERO_DIGEST
    case_end: int = 0
    case_seed_slot: int = NONE
    case_seed: bytes = ZERO_DIGEST
    appeal_end: int = 0
    challenger: bytes = ZERO_DIGEST
    challenger_index: int = NO_INDEX
    prepaid: int = 0
    bond: int = 0
    escrow_stake: int = 0
    escrow_unbonding: int = 0
    escrow_unvested: int = 0
    shortfall: int = 0
    juror_fees: int = 0
    decided_before: int = NONE
    jailed_until: int = 0

    @property
    def judging(self) -> list[Judge]:
        """The seats that judge now."""
        return self.seats[: self.num_seats]

    @property
    def taken(self) -> int:
        """Lamports that the conviction took."""
        return self.escrow_stake + self.escrow_unbonding + self.escrow_unvested

    @property
    def escrow(self) -> int:
        """Lamports that still wait."""
        return self.taken - self.juror_fees

    def has(self, flag: AuditFlag) -> bool:
        """Whether any of these marks is set."""
        return bool(self.flags & flag)

    def enter(self, stage: AuditStage, clock: int, slots: int) -> None:
        """Start a stage that lasts `slots` after `clock`."""
        self.stage, self.stage_end = stage, clock + slots


@dataclass(slots=True)
class Books:
    """The run as its events leave it."""

    told: Told
    run: bytes
    checked: ParamsView | None = None
    """The parameters that were checked last: a false zero among them would divide."""
    entries: dict[int, Entry] = field(default_factory=dict)
    owners: dict[bytes, Owner] = field(default_factory=dict)
    ring: dict[int, RoundBook] = field(default_factory=dict)
    audits: dict[AuditKey, AuditBook] = field(default_factory=dict)
    pool: int = 0
    phase: int = Phase.WAITING_FOR_MEMBERS
    resume_phase: int = Phase.WAITING_FOR_MEMBERS
    round: int = 0
    epoch: int = 0
    base_round: int = NONE
    void_streak: int = 0
    requested: tuple[int, ParamsView] | None = None
    """Parameters that wait, and the slot of their request."""
    paused_at: int = NONE
    pause_total: int = 0
    lost_seeds: int = 0
    expected: ExpectedMembers = field(default_factory=ExpectedMembers)
    audit_epoch: int = 0
    sampled: int = 0
    accused: int = 0
    convicted: list[int] = field(default_factory=lambda: [0] * 4)

    @property
    def params(self) -> ParamsView:
        """The parameters in force. Raises ConfigError for those that no run can have."""
        params = self.told.params
        if params is None:
            raise MisfitError(Rule.RUN_ACCOUNT, "RunCreated first", "another event")
        if params is not self.checked:
            ChainParams.from_view(params)
            self.checked = params
        return params

    @property
    def funder(self) -> bytes:
        """The owner of the run's pool: the authority that created the run."""
        if self.told.created is None:
            raise MisfitError(Rule.RUN_ACCOUNT, "RunCreated first", "another event")
        return bytes(self.told.created.authority)

    @property
    def stored_root(self) -> tuple[int, bytes]:
        """The newest stored root with its round: that of the genesis before any other."""
        if self.told.stored is not None:
            return self.told.stored.round, self.told.stored.root
        return 0, self.told.created.genesis_root if self.told.created else ZERO_DIGEST

    @property
    def newest_round(self) -> int:
        """The newest round that was opened; NONE before the first one."""
        if self.phase in (Phase.COMMIT, Phase.ATTEST):
            return self.round
        return self.round - 1 if self.round else NONE

    def clock(self, slot: int) -> int:
        """Return the run's own time."""
        return max(0, min(slot, self.paused_at) - self.pause_total)

    def entry(self, index: int, rule: Rule = Rule.RUN_ACCOUNT) -> Entry:
        """Return the entry at an index; raises MisfitError where nobody has joined."""
        found = self.entries.get(index)
        if found is None:
            raise MisfitError(rule, "somebody who has joined", f"index {index}")
        return found

    def owner(self, key: bytes) -> Owner:
        """Return the account of an owner, made where there is none."""
        return self.owners.setdefault(key, Owner())

    def held(self, number: int) -> RoundBook | None:
        """Return the round of that number while the ring holds it."""
        found = self.ring.get(number % self.params.ring)
        return found if found is not None and found.number == number else None

    def round_of(self, number: int, rule: Rule) -> RoundBook:
        """As `held`; raises MisfitError where the ring does not hold it."""
        found = self.held(number)
        if found is None:
            raise MisfitError(rule, "a round of the ring", f"round {number}")
        return found

    def audit(self, round_: int, target: int, kind: int, rule: Rule) -> AuditBook:
        """Return the open audit of that key; raises MisfitError where there is none."""
        found = self.audits.get((round_, target, kind))
        if found is None:
            raise MisfitError(rule, "an open audit", f"round {round_}, target {target}")
        return found

    def members(self) -> Iterator[tuple[int, Entry]]:
        """Everybody that has an index, with its bit, by index."""
        return ((1 << index, self.entries[index]) for index in sorted(self.entries))

    def jailed(self) -> int:
        """Return the participants in jail, as a bitmap."""
        return sum(one for one, entry in self.members() if entry.status == Status.JAILED)

    def present(self) -> int:
        """Return the participants that are present, as a bitmap."""
        return sum(one for one, entry in self.members() if entry.is_present)


def less(have: int, part: int) -> int:
    """Return what is left; raises MisfitError where there is not so much."""
    if part > have:
        raise MisfitError(Rule.VAULT, f"at most {have} lamports", part)
    return have - part


def standing_of(books: Books) -> Mapping[str, object]:
    """Return what the Run account says beside money and phase."""
    return {
        "round": books.round,
        "epoch": books.epoch,
        "base_round": books.base_round,
        "void_streak": books.void_streak,
        "root_round": books.stored_root[0],
        "root": books.stored_root[1],
        "paused_at_slot": books.paused_at,
        "pause_total_slots": books.pause_total,
        "lost_seeds": books.lost_seeds,
        "audit_epoch": books.audit_epoch,
        "sampled": books.sampled,
        "accused": books.accused,
        "convicted": tuple(books.convicted),
        "num_audits": len(books.audits),
        "num_participants": len(books.owners),
        "params": books.told.params,
    }
