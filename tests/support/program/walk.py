"""Random people who do random things at random moments: the walk and its actions.

Owns: one seeded walk, what its people try, and how each refusal is looked at.
Never: checks the books: chain.py does, after each transaction that lands.
Next: test_random_walk.py; walk_audits.py for audits and cases.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Callable

from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from support.program.closing import checkpoint_pairs, round_pairs
from support.program.rounds import SOL, RoundDriver, key, root_of
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.rules.audit_view import AuditStage, AuditView, JurorView, SeatView
from troth_coordinator.rules.ids import NONE, Lamports
from troth_coordinator.rules.params_view import Admission
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import PRESENT
from troth_coordinator.rules.root import root_vote

NEVER = {"MathOverflow", "VaultShort", "InvariantViolated", "MalformedSlotHashes"}
NUM_OWNERS = 9
SHORT: dict[str, int] = {
    **{"capacity": 6, "ring": 6, "keep_rounds": 2, "min_members": 2, "max_rounds": 25},
    **{"checkpoint_every": 3, "rounds_per_epoch": 4, "audit_cap": 2, "max_witness_only": 2},
    **{"pool": 20_000, "max_pause_slots": 200},
}
"""A run so small and short that a walk sees every phase of it."""
Action = Callable[["Walk"], None]


class Walk:
    """One seeded walk. Counts by name: instructions that it `tried`, events that `landed`, errors
    that `refused`; `phases` and `stages` are those that the run and its audits were seen in.
    """

    def __init__(self, seed: int, driver: RoundDriver) -> None:
        self.dice = random.Random(seed)
        self.driver = driver
        self.tried: Counter[str] = Counter()
        self.phases: set[Phase] = set()
        self.stages: set[AuditStage] = set()
        self.landed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        for index in range(len(self.driver.owners), NUM_OWNERS):
            self.driver.owners.append(key("owner", index))
            self.driver.sessions.append(key("session", index))
            for payer in (self.driver.owners[index], self.driver.sessions[index]):
                self.driver.chain.airdrop(payer.pubkey(), 100 * SOL)
        self._sessions = {bytes(session.pubkey()): session for session in self.driver.sessions}
        self.known = {bytes(owner.pubkey()): owner for owner in self.driver.owners}

    def attempt(self, instruction: Instruction, *signers: Keypair) -> None:
        """Send it if it would land; otherwise look at how it is refused."""
        driver, name = self.driver, program_codec().instruction_names[bytes(instruction.data[:8])]
        self.tried[name] += 1
        raw = driver._signed(instruction, signers)
        reported = driver.chain.simulate(VersionedTransaction.from_bytes(raw))
        if reported.error is None:
            self.landed.update(driver.send(instruction, *signers).names())
            return
        match reported.error:
            case {"InstructionError": [_, {"Custom": int(code)}]}:
                known = driver._errors.get(code)
                # Refusals of Anchor itself here: an owner without a participant account, a round
                # without a checkpoint, an account that is closed but was sent lamports.
                anchors = {3007: "AccountOwnedByWrongProgram", 3012: "AccountNotInitialized"}
                error = known.name if known else anchors[code]
            case other:
                raise AssertionError(f"{other}\n" + "\n".join(reported.logs))
        assert error not in NEVER, "\n".join(reported.logs)
        self.refused[error] += 1

    @property
    def is_over(self) -> bool:
        """Whether even the account of the run is closed."""
        return self.driver._account(self.driver.at.run) is None

    def look(self) -> None:
        """Note where the run and its audits stand."""
        self.phases.add(Phase(self.driver.run.phase))
        self.stages |= {AuditStage(audit.stage) for audit in self.driver.audits}

    # People and clock.

    @property
    def clock(self) -> int:
        """The run clock, of a run that is not paused."""
        return self.driver.slot - self.driver.run.pause_total_slots

    def people(self, audit: AuditView) -> list[Pubkey]:
        """The owners whom an audit names, mostly all of them."""
        judges: tuple[SeatView | JurorView, ...] = (*audit.seats, *audit.jurors)
        owners = {bytes(self.driver.entries[judge.index].owner) for judge in judges}
        owners |= {bytes(audit.owner)} if self.dice.random() < 0.9 else set()
        at = self.driver.at
        found = [Pubkey.from_bytes(owner) for owner in sorted(owners)]
        return [who for who in found if self.driver.chain.accounts.get(at.participant(who))]

    def owner(self) -> Keypair:
        return self.dice.choice(self.driver.owners)

    def payer_of(self, owner: Keypair) -> Pubkey:
        """The payer of the rent of an owner's participant account: the key that admitted it."""
        is_listed = self.driver.params.admission == Admission.ALLOWLIST
        return (self.driver.authority if is_listed else owner).pubkey()

    def newcomer(self) -> Keypair:
        """Mostly somebody who holds no index."""
        held = {entry.owner for entry in self.driver.entries if entry.status in PRESENT}
        out = [owner for key, owner in self.known.items() if key not in held]
        return self.dice.choice(out) if out and self.dice.random() < 0.8 else self.owner()

    def index(self) -> int:
        return self.dice.randrange(self.driver.params.capacity)

    def session_of(self, index: int) -> Keypair:
        """The key in force at an index, where the walk knows it."""
        return self._sessions.get(self.driver.entries[index].session, self.driver.cranker)

    def vote(self, index: int, round_: int, root: bytes) -> bytes:
        return root_vote(bytes(self.driver.at.run), round_, self.driver.entries[index].owner, root)

    def root(self) -> bytes:
        return root_of(self.driver.run.round if self.dice.random() < 0.95 else 999)


def move_on(walk: Walk) -> None:
    """The honest actions of this moment: mostly everybody acts, then somebody cranks."""
    driver, run = walk.driver, walk.driver.run
    everybody = walk.dice.random() < 0.8
    for index, entry in enumerate(driver.entries[: driver.params.capacity]):
        serves = entry.status in PRESENT and run.phase in (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP)
        if run.phase in (Phase.COMMIT, Phase.ATTEST, Phase.COOLDOWN):
            serves = bool(driver.open.members >> index & 1)
        is_in_time = driver.slot <= run.phase_end_slot or walk.dice.random() < 0.1
        if serves and is_in_time and (everybody or walk.dice.random() < 0.5):
            act(walk, index)
    is_late = walk.dice.random() < (0.1 if everybody else 0.5)
    if is_late and run.phase_end_slot != NONE and driver.slot <= run.phase_end_slot:
        driver.run_out()
    crank(walk)


def act(walk: Walk, index: int | None = None) -> None:
    driver, run = walk.driver, walk.driver.run
    index = walk.index() if index is None else index
    session, at = walk.session_of(index), driver.at
    who = session.pubkey()
    match run.phase:
        case Phase.COMMIT | Phase.COOLDOWN:
            header = bytes(32) if run.phase == Phase.COOLDOWN else b"h" * 32
            vote = walk.vote(index, run.round, walk.root())
            built = make.commit_payload(at, who, index, run.round, header, vote)
        case Phase.ATTEST:
            bitmap: int = driver.open.committed
            if walk.dice.random() < 0.1:
                bitmap &= walk.dice.getrandbits(8)
            possession = bytes(9 if bitmap >> i & 1 else 0 for i in range(64))
            built = make.attest(at, who, index, run.round, bitmap, possession)
        case _:
            vote = walk.vote(index, run.root_round, run.root)
            built = make.post_ready(at, who, index, run.root_round, vote)
    walk.attempt(built, session)


def crank(walk: Walk) -> None:
    driver, run, who = walk.driver, walk.driver.run, walk.driver.cranker
    freeze(walk)
    if run.phase in (Phase.ATTEST, Phase.COOLDOWN):
        root = root_of(run.round)
        due = make.is_checkpoint_due(run) or walk.dice.random() < 0.2
        built = make.close_round(driver.at, who.pubkey(), run.round, root, with_checkpoint=due)
    else:
        built = make.advance_phase(driver.at, who.pubkey(), run.round)
    walk.attempt(built, who)


def freeze(walk: Walk) -> None:
    driver, who = walk.driver, walk.driver.cranker
    for round_ in range(max(0, driver.run.round - 5), driver.run.round):
        if driver.run.seeds_pending >> round_ % 64 & 1:
            walk.attempt(make.freeze_seed(driver.at, who.pubkey(), round_), who)
            walk.attempt(make.retarget_seed(driver.at, who.pubkey(), round_), who)


def void(walk: Walk) -> None:
    """Close a round without a candidate, sometimes when nobody has closed it for too long."""
    who, run = walk.driver.cranker, walk.driver.run
    if run.phase in (Phase.ATTEST, Phase.COOLDOWN) and walk.dice.random() < 0.5:
        walk.driver.run_out()
        walk.driver.chain.advance(run.params.close_grace_slots)
    walk.attempt(make.close_void(walk.driver.at, who.pubkey(), run.round), who)


def false_close(walk: Walk) -> None:
    who, run = walk.driver.cranker, walk.driver.run
    built = make.close_round(
        walk.driver.at, who.pubkey(), run.round, b"f" * 32, with_checkpoint=False
    )
    walk.attempt(built, who)


def report(walk: Walk) -> None:
    driver, index = walk.driver, walk.index()
    session, base = walk.session_of(index), driver.run.base_round
    round_ = base if base != NONE else 0
    target = walk.index()
    built = make.report_missing(
        driver.at, session.pubkey(), index, round_, target, open_round=driver.run.round
    )
    walk.attempt(built, session)


def come_back(walk: Walk) -> None:
    """Ready for the open round, then activate."""
    driver, index = walk.driver, walk.index()
    session, round_ = walk.session_of(index), driver.run.round
    vote = walk.vote(index, round_, walk.root())
    walk.attempt(make.post_ready(driver.at, session.pubkey(), index, round_, vote), session)
    who = driver.cranker
    ready_round = driver.entries[index].ready_round
    held = ready_round if ready_round != NONE else 0
    walk.attempt(make.activate(driver.at, who.pubkey(), index, held), who)


def join(walk: Walk) -> None:
    owner = walk.newcomer()
    place = walk.driver.owners.index(owner)
    roles = walk.dice.choice((1, 2, 3, 3, 3))
    session = walk.driver.sessions[place].pubkey()
    entries = walk.driver.entries[: walk.driver.params.capacity]
    gone = [i for i, entry in enumerate(entries) if entry.status not in PRESENT] or [walk.index()]
    index = walk.dice.choice(gone) if walk.dice.random() < 0.8 else walk.index()
    terms = make.JoinTerms(index, roles, session, f"http://p{place}")
    former = walk.driver.entries[terms.index].owner
    before = Pubkey.from_bytes(former) if former in walk.known else None
    walk.attempt(make.join_run(walk.driver.at, owner.pubkey(), terms, before), owner)


def top_up(walk: Walk) -> None:
    owner = walk.owner()
    amount = walk.dice.choice((0, 1, 1_000, 50_000))
    walk.attempt(make.top_up_stake(walk.driver.at, owner.pubkey(), amount), owner)


def withdraw(walk: Walk) -> None:
    owner = walk.owner()
    amount = walk.dice.choice((0, 0, 1, 500, 100_000))
    payer = walk.payer_of(owner)
    walk.attempt(make.withdraw_stake(walk.driver.at, owner.pubkey(), amount, payer), owner)


def claim(walk: Walk) -> None:
    owner = walk.owner()
    walk.attempt(make.claim_reward(walk.driver.at, owner.pubkey()), owner)


def leave(walk: Walk) -> None:
    owner = walk.owner()
    if walk.dice.random() < 0.4:
        walk.attempt(make.leave_run(walk.driver.at, owner.pubkey()), owner)


def new_session(walk: Walk) -> None:
    owner = walk.owner()
    session = walk.dice.choice(walk.driver.sessions)
    walk.attempt(make.set_session_key(walk.driver.at, owner.pubkey(), session.pubkey()), owner)


def new_endpoint(walk: Walk) -> None:
    owner = walk.owner()
    endpoint = walk.dice.choice(["", "http://a:1", "e" * 96, "e" * 97, "with space", "é"])
    walk.attempt(make.set_endpoint(walk.driver.at, owner.pubkey(), endpoint), owner)


def authority_acts(walk: Walk) -> None:
    driver, boss = walk.driver, walk.driver.authority
    held, draw = driver.run.params, walk.dice.choice
    reward, window, stake = held.reward_per_payload, held.commit_slots, held.min_stake_lamports
    params = dataclasses.replace(
        held,
        reward_per_payload=Lamports(draw((0, reward, reward, reward * 3 // 4, 2 * reward))),
        min_stake_lamports=Lamports(draw((stake, stake, stake + 1))),
        commit_slots=draw((window, window, window, window + 1, window - 1)),
    )
    walk.attempt(
        walk.dice.choice(
            (
                make.fund_run(driver.at, boss.pubkey(), 3_000),
                make.pause_run(driver.at, boss.pubkey()),
                make.update_params(driver.at, boss.pubkey(), params),
            )
        ),
        boss,
    )


def create_again(walk: Walk) -> None:
    """The authority, having lost its notes, creates what is there."""
    at, boss = walk.driver.at, walk.driver.authority.pubkey()
    config, model, council = b"c" * 32, b"m" * 32, key("council").pubkey()
    terms = make.RunTerms(
        walk.driver.run_id, config, model, root_of(0), council, walk.driver.params
    )
    built = (
        make.create_run(at, boss, terms),
        make.init_roster(at, boss),
        make.init_round(at, boss, 0),
    )
    for instruction in built:
        walk.attempt(instruction, walk.driver.authority)


def admit(walk: Walk) -> None:
    """The authority, or somebody who is not, puts an owner on the list of an open or closed run."""
    signer = walk.dice.choice((walk.driver.authority, walk.driver.authority, walk.driver.cranker))
    walk.attempt(make.admit(walk.driver.at, signer.pubkey(), walk.newcomer().pubkey()), signer)


def announce(walk: Walk) -> None:
    """Somebody says where the files of a checkpoint are, mostly of the newest one."""
    driver, index = walk.driver, walk.index()
    round_ = driver.run.root_round if walk.dice.random() < 0.8 else walk.dice.randrange(9)
    owner = Pubkey.from_bytes(driver.entries[index].owner)
    session, manifest = walk.session_of(index), make.Manifest(round_, b"m" * 32, "here")
    built = make.announce_manifest(driver.at, session.pubkey(), owner, index, manifest)
    walk.attempt(built, session)


def wind_up(walk: Walk) -> None:
    """The authority closes what it can, perhaps too early. The run goes with the last account.

    From a finished run everybody takes what is theirs before.
    """
    driver, boss = walk.driver, walk.driver.authority
    if driver.run.phase == Phase.FINISHED:
        for owner in driver.owners:
            walk.attempt(make.leave_run(driver.at, owner.pubkey()), owner)
        driver.chain.advance(walk.dice.choice((1, 3_000, 9_000)))
        for owner in driver.owners:
            walk.attempt(make.claim_reward(driver.at, owner.pubkey()), owner)
            payer = walk.payer_of(owner)
            walk.attempt(make.withdraw_stake(driver.at, owner.pubkey(), 0, payer), owner)
    people = [(driver.at.participant(o.pubkey()), walk.payer_of(o)) for o in driver.owners]
    pairs = [*round_pairs(driver), *checkpoint_pairs(driver), *people]
    held = [(account, payer) for account, payer in pairs if driver._account(account) is not None]
    for first in range(0, len(held) + 1, 8):
        if not walk.is_over:
            some = held[first : first + 8]
            closer = walk.dice.choice((boss, driver.cranker))
            paid = boss.pubkey()
            closing = make.close_run(driver.at, closer.pubkey(), paid, paid, some)
            walk.attempt(closing, closer)


def resume(walk: Walk) -> None:
    signer = walk.dice.choice((walk.driver.authority, walk.driver.authority, walk.driver.cranker))
    built = make.resume_run(walk.driver.at, signer.pubkey(), walk.driver.run.round)
    walk.attempt(built, signer)


def wait(walk: Walk) -> None:
    walk.driver.chain.advance(walk.dice.choice((1, 1, 5, 20, 60, 600, 2_000)))


ACTIONS: tuple[tuple[int, Action], ...] = (
    (30, move_on),
    (6, act),
    (6, crank),
    (2, void),
    (2, false_close),
    (5, report),
    (5, come_back),
    (5, join),
    (4, top_up),
    (6, withdraw),
    (5, claim),
    (3, leave),
    (3, new_session),
    (4, new_endpoint),
    (4, authority_acts),
    (2, create_again),
    (3, admit),
    (4, announce),
    (1, wind_up),
    (6, resume),
    (6, wait),
)
