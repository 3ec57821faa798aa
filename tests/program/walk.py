"""Random people who do random things at random moments: the walk and its actions.

Owns: one seeded walk, what its people try, and how each refusal is looked at.
Never: checks the books: bench.py does, after each transaction that lands.
Next: test_random_walk.py; walk_audits.py for audits and cases.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Callable

from program.rounds import SOL, Stage, key, root_of
from program.test_close_run import checkpoint_pairs, round_pairs
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.ids import NONE
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

    def __init__(self, seed: int, stage: Stage) -> None:
        self.dice = random.Random(seed)
        self.stage = stage
        self.tried: Counter[str] = Counter()
        self.phases: set[Phase] = set()
        self.stages: set[AuditStage] = set()
        self.landed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        for index in range(len(self.stage.owners), NUM_OWNERS):
            self.stage.owners.append(key("owner", index))
            self.stage.sessions.append(key("session", index))
            for payer in (self.stage.owners[index], self.stage.sessions[index]):
                self.stage.chain.airdrop(payer.pubkey(), 100 * SOL)
        self._sessions = {bytes(session.pubkey()): session for session in self.stage.sessions}
        self.known = {bytes(owner.pubkey()): owner for owner in self.stage.owners}

    def attempt(self, instruction: Instruction, *signers: Keypair) -> None:
        """Send it if it would land; otherwise look at how it is refused."""
        stage, name = self.stage, program_codec().instruction_names[bytes(instruction.data[:8])]
        self.tried[name] += 1
        raw = stage._signed(instruction, signers)
        told = stage.chain.simulate(VersionedTransaction.from_bytes(raw))
        if told.error is None:
            self.landed.update(stage.send(instruction, *signers).names())
            return
        match told.error:
            case {"InstructionError": [_, {"Custom": code}]}:
                known = stage._errors.get(code)
                # Refusals of Anchor itself here: an owner without a participant account, a round
                # without a checkpoint.
                error = known.name if known else {3012: "AccountNotInitialized"}[code]
            case other:
                raise AssertionError(f"{other}\n" + "\n".join(told.logs))
        assert error not in NEVER, "\n".join(told.logs)
        self.refused[error] += 1

    @property
    def is_over(self) -> bool:
        """Whether even the account of the run is closed."""
        return self.stage._account(self.stage.at.run) is None

    def look(self) -> None:
        """Note where the run and its audits stand."""
        self.phases.add(Phase(self.stage.run.phase))
        self.stages |= {AuditStage(audit.stage) for audit in self.stage.audits}

    # Who and what.

    def owner(self) -> Keypair:
        return self.dice.choice(self.stage.owners)

    def payer_of(self, owner: Keypair) -> Pubkey:
        """Who paid the rent of an owner's participant account: whoever admitted it."""
        is_listed = self.stage.params.admission == Admission.ALLOWLIST
        return (self.stage.authority if is_listed else owner).pubkey()

    def newcomer(self) -> Keypair:
        """Mostly somebody who holds no index."""
        held = {entry.owner for entry in self.stage.entries if entry.status in PRESENT}
        out = [owner for key, owner in self.known.items() if key not in held]
        return self.dice.choice(out) if out and self.dice.random() < 0.8 else self.owner()

    def index(self) -> int:
        return self.dice.randrange(self.stage.params.capacity)

    def session_of(self, index: int) -> Keypair:
        """The key in force at an index, where the walk knows it."""
        return self._sessions.get(self.stage.entries[index].session, self.stage.cranker)

    def vote(self, index: int, round_: int, root: bytes) -> bytes:
        return root_vote(bytes(self.stage.at.run), round_, self.stage.entries[index].owner, root)

    def root(self) -> bytes:
        return root_of(self.stage.run.round if self.dice.random() < 0.95 else 999)


def move_on(walk: Walk) -> None:
    """What honest people would do now: mostly everybody acts, then somebody cranks."""
    stage, run = walk.stage, walk.stage.run
    everybody = walk.dice.random() < 0.8
    for index, entry in enumerate(stage.entries[: stage.params.capacity]):
        serves = entry.status in PRESENT and run.phase in (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP)
        if run.phase in (Phase.COMMIT, Phase.ATTEST, Phase.COOLDOWN):
            serves = bool(stage.open.members >> index & 1)
        is_in_time = stage.slot <= run.phase_end_slot or walk.dice.random() < 0.1
        if serves and is_in_time and (everybody or walk.dice.random() < 0.5):
            act(walk, index)
    is_late = walk.dice.random() < (0.1 if everybody else 0.5)
    if is_late and run.phase_end_slot != NONE and stage.slot <= run.phase_end_slot:
        stage.run_out()
    crank(walk)


def act(walk: Walk, index: int | None = None) -> None:
    stage, run = walk.stage, walk.stage.run
    index = walk.index() if index is None else index
    session, at = walk.session_of(index), stage.at
    who = session.pubkey()
    match run.phase:
        case Phase.COMMIT | Phase.COOLDOWN:
            header = bytes(32) if run.phase == Phase.COOLDOWN else b"h" * 32
            vote = walk.vote(index, run.round, walk.root())
            built = make.commit_payload(at, who, index, run.round, header, vote)
        case Phase.ATTEST:
            bitmap = stage.open.committed
            if walk.dice.random() < 0.1:
                bitmap &= walk.dice.getrandbits(8)
            possession = bytes(9 if bitmap >> i & 1 else 0 for i in range(64))
            built = make.attest(at, who, index, run.round, bitmap, possession)
        case _:
            vote = walk.vote(index, run.root_round, run.root)
            built = make.ready(at, who, index, run.root_round, vote)
    walk.attempt(built, session)


def crank(walk: Walk) -> None:
    stage, run, who = walk.stage, walk.stage.run, walk.stage.cranker
    freeze(walk)
    if run.phase in (Phase.ATTEST, Phase.COOLDOWN):
        root = root_of(run.round)
        due = make.is_checkpoint_due(run) or walk.dice.random() < 0.2
        built = make.close_round(stage.at, who.pubkey(), run.round, root, with_checkpoint=due)
    else:
        built = make.tick(stage.at, who.pubkey(), run.round)
    walk.attempt(built, who)


def freeze(walk: Walk) -> None:
    stage, who = walk.stage, walk.stage.cranker
    for round_ in range(max(0, stage.run.round - 5), stage.run.round):
        if stage.run.seeds_pending >> round_ % 64 & 1:
            walk.attempt(make.freeze_seed(stage.at, who.pubkey(), round_), who)
            walk.attempt(make.retarget(stage.at, who.pubkey(), round_), who)


def void(walk: Walk) -> None:
    """Close a round without a candidate, sometimes when nobody has closed it for too long."""
    who, run = walk.stage.cranker, walk.stage.run
    if run.phase in (Phase.ATTEST, Phase.COOLDOWN) and walk.dice.random() < 0.5:
        walk.stage.run_out()
        walk.stage.chain.advance(run.params.close_grace_slots)
    walk.attempt(make.close_void(walk.stage.at, who.pubkey(), run.round), who)


def false_close(walk: Walk) -> None:
    who, run = walk.stage.cranker, walk.stage.run
    built = make.close_round(
        walk.stage.at, who.pubkey(), run.round, b"f" * 32, with_checkpoint=False
    )
    walk.attempt(built, who)


def report(walk: Walk) -> None:
    stage, index = walk.stage, walk.index()
    session, base = walk.session_of(index), stage.run.base_round
    round_ = base if base != NONE else 0
    target = walk.index()
    built = make.report_missing(
        stage.at, session.pubkey(), index, round_, target, open_round=stage.run.round
    )
    walk.attempt(built, session)


def come_back(walk: Walk) -> None:
    """Ready for the open round, then activate."""
    stage, index = walk.stage, walk.index()
    session, round_ = walk.session_of(index), stage.run.round
    vote = walk.vote(index, round_, walk.root())
    walk.attempt(make.ready(stage.at, session.pubkey(), index, round_, vote), session)
    who = stage.cranker
    ready_round = stage.entries[index].ready_round
    held = ready_round if ready_round != NONE else 0
    walk.attempt(make.activate(stage.at, who.pubkey(), index, held), who)


def join(walk: Walk) -> None:
    owner = walk.newcomer()
    place = walk.stage.owners.index(owner)
    roles = walk.dice.choice((1, 2, 3, 3, 3))
    session = walk.stage.sessions[place].pubkey()
    entries = walk.stage.entries[: walk.stage.params.capacity]
    gone = [i for i, entry in enumerate(entries) if entry.status not in PRESENT] or [walk.index()]
    index = walk.dice.choice(gone) if walk.dice.random() < 0.8 else walk.index()
    terms = make.JoinTerms(index, roles, session, f"http://p{place}")
    former = walk.stage.entries[terms.index].owner
    before = Pubkey.from_bytes(former) if former in walk.known else None
    walk.attempt(make.join_run(walk.stage.at, owner.pubkey(), terms, before), owner)


def top_up(walk: Walk) -> None:
    owner = walk.owner()
    amount = walk.dice.choice((0, 1, 1_000, 50_000))
    walk.attempt(make.top_up_stake(walk.stage.at, owner.pubkey(), amount), owner)


def withdraw(walk: Walk) -> None:
    owner = walk.owner()
    amount = walk.dice.choice((0, 0, 1, 500, 100_000))
    payer = walk.payer_of(owner)
    walk.attempt(make.withdraw_stake(walk.stage.at, owner.pubkey(), amount, payer), owner)


def claim(walk: Walk) -> None:
    owner = walk.owner()
    walk.attempt(make.claim_reward(walk.stage.at, owner.pubkey()), owner)


def leave(walk: Walk) -> None:
    owner = walk.owner()
    if walk.dice.random() < 0.4:
        walk.attempt(make.leave_run(walk.stage.at, owner.pubkey()), owner)


def new_session(walk: Walk) -> None:
    owner = walk.owner()
    session = walk.dice.choice(walk.stage.sessions)
    walk.attempt(make.set_session_key(walk.stage.at, owner.pubkey(), session.pubkey()), owner)


def authority_acts(walk: Walk) -> None:
    stage, boss = walk.stage, walk.stage.authority
    params = dataclasses.replace(
        stage.run.params,
        reward_per_payload=walk.dice.choice((0, 700, 700, 1_000, 1_500)),
        stake_lamports=walk.dice.choice((100_000, 100_000, 120_000)),
        absence_fee=walk.dice.choice((0, 500, 500, 700, 2_000)),
    )
    walk.attempt(
        walk.dice.choice(
            (
                make.fund_run(stage.at, boss.pubkey(), 3_000),
                make.pause_run(stage.at, boss.pubkey()),
                make.update_params(stage.at, boss.pubkey(), params),
            )
        ),
        boss,
    )


def create_again(walk: Walk) -> None:
    """The authority, having lost its notes, creates what is there."""
    at, boss = walk.stage.at, walk.stage.authority.pubkey()
    config, model, council = b"c" * 32, b"m" * 32, key("council").pubkey()
    terms = make.RunTerms(walk.stage.run_id, config, model, root_of(0), council, walk.stage.params)
    built = (
        make.create_run(at, boss, terms),
        make.init_roster(at, boss),
        make.init_round(at, boss, 0),
    )
    for instruction in built:
        walk.attempt(instruction, walk.stage.authority)


def admit(walk: Walk) -> None:
    """The authority, or somebody who is not, puts an owner on the list of an open or closed run."""
    signer = walk.dice.choice((walk.stage.authority, walk.stage.authority, walk.stage.cranker))
    walk.attempt(make.admit(walk.stage.at, signer.pubkey(), walk.newcomer().pubkey()), signer)


def announce(walk: Walk) -> None:
    """Somebody says where the files of a checkpoint are, mostly of the newest one."""
    stage, index = walk.stage, walk.index()
    round_ = stage.run.root_round if walk.dice.random() < 0.8 else walk.dice.randrange(9)
    owner = Pubkey.from_bytes(stage.entries[index].owner)
    session, manifest = walk.session_of(index), make.Manifest(round_, b"m" * 32, "here")
    built = make.announce_manifest(stage.at, session.pubkey(), owner, index, manifest)
    walk.attempt(built, session)


def wind_up(walk: Walk) -> None:
    """The authority closes what it can, perhaps too early. The run goes with the last account.

    From a finished run everybody takes what is theirs before.
    """
    stage, boss = walk.stage, walk.stage.authority
    if stage.run.phase == Phase.FINISHED:
        for owner in stage.owners:
            walk.attempt(make.leave_run(stage.at, owner.pubkey()), owner)
        stage.chain.advance(walk.dice.choice((1, 3_000, 9_000)))
        for owner in stage.owners:
            walk.attempt(make.claim_reward(stage.at, owner.pubkey()), owner)
            payer = walk.payer_of(owner)
            walk.attempt(make.withdraw_stake(stage.at, owner.pubkey(), 0, payer), owner)
    people = [(stage.at.participant(o.pubkey()), walk.payer_of(o)) for o in stage.owners]
    pairs = [*round_pairs(stage), *checkpoint_pairs(stage), *people]
    held = [(account, payer) for account, payer in pairs if stage._account(account) is not None]
    for first in range(0, len(held) + 1, 8):
        if not walk.is_over:
            some = held[first : first + 8]
            closing = make.close_run(stage.at, boss.pubkey(), boss.pubkey(), some)
            walk.attempt(closing, boss)


def resume(walk: Walk) -> None:
    signer = walk.dice.choice((walk.stage.authority, walk.stage.authority, walk.stage.cranker))
    built = make.resume_run(walk.stage.at, signer.pubkey(), walk.stage.run.round)
    walk.attempt(built, signer)


def wait(walk: Walk) -> None:
    walk.stage.chain.advance(walk.dice.choice((1, 1, 5, 20, 60, 600, 2_000)))


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
    (4, authority_acts),
    (2, create_again),
    (3, admit),
    (4, announce),
    (1, wind_up),
    (6, resume),
    (6, wait),
)
