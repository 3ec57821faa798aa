"""Drives whole rounds of a run, slot by slot.

A RoundDriver holds one run and its participants. Keys, headers and state roots follow from names.
Next: chain.py for the checks after every transaction; the test_round_* files.
"""

import hashlib
from collections.abc import Sequence

from solders.instruction import Instruction
from solders.keypair import Keypair

from support.program.chain import ChainDriver, Landed
from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.bitmap import indices_of
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.params_view import Admission, ParamsView
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import Status

SOL = 10**9
SLOTS_LISTED = 500
"""A seed slot that lies further back may have left SlotHashes."""


def key(*names: object) -> Keypair:
    """A keypair that depends only on its name."""
    return Keypair.from_seed(hashlib.sha256(repr(names).encode()).digest())


def root_of(round_: int) -> bytes:
    """The state root that honest participants hold at a round; any 32 bytes would do."""
    return hashlib.sha256(f"root {round_}".encode()).digest()


def header_of(index: int, round_: int) -> bytes:
    return hashlib.sha256(f"header {index} {round_}".encode()).digest()


SHORT_WINDOWS: dict[str, int | str] = {
    "vesting_slots": 3_000,
    "unbond_slots": 3_600,
    "max_pause_slots": 1_800,
    "openings_slots": 60,
    "verdict_commit_slots": 80,
    "verdict_reveal_slots": 40,
    "jury_commit_slots": 80,
    "jury_reveal_slots": 40,
    "appeal_slots": 100,
    "breaker_slots": 30,
}
"""Shorter than those of any shipped config: the tests run to the end of most of them."""


def params_of(**changes: int | str) -> ParamsView:
    """Localnet parameters with small money, so that rewards are easy to count by hand."""
    values: dict[str, int | str] = {
        "reward_per_payload": 1_000,
        "min_stake_lamports": 100_000,
        "witness_fee": 200,
        "bond_lamports": 5_000,
        "sequences_per_payload": 2,
        "max_rounds": 40,
        **SHORT_WINDOWS,
    }
    return ChainParams.localnet(**{**values, **changes}).to_view()


class RoundDriver(ChainDriver):
    """A run and its participants. `roles[i]` are those of index i."""

    run_id = b"r" * 32

    def __init__(
        self, num: int = 4, *, roles: Sequence[int] = (), pool: int = SOL, **changes: int | str
    ) -> None:
        self.params = params_of(**changes)
        self.authority, self.cranker = key("authority"), key("cranker")
        super().__init__(self.authority.pubkey(), self.run_id, self.params.ring)
        self.owners = [key("owner", index) for index in range(num)]
        self.sessions = [key("session", index) for index in range(num)]
        self.roles = list(roles) or [3] * num
        for payer in (self.authority, self.cranker, *self.owners, *self.sessions):
            self.chain.airdrop(payer.pubkey(), 100 * SOL)
        self._create(pool)
        for index in range(num):
            self.join(index)

    def vote(self, index: int, round_: int, root: bytes) -> bytes:
        owner = bytes(self.owners[index].pubkey())
        return root_vote(bytes(self.at.run), round_, owner, root)

    # Setting up.

    def _create(self, pool: int) -> None:
        owner = self.authority.pubkey()
        terms = make.RunTerms(
            self.run_id, b"c" * 32, b"m" * 32, root_of(0), key("council").pubkey(), self.params
        )
        create = make.create_run(self.at, owner, terms)
        roster = [make.init_roster(self.at, owner) for _ in range(3)]
        self.create([create, *roster], self.authority)
        for position in range(self.params.ring):
            self.send(make.init_round(self.at, owner, position), self.authority)
        if pool:
            self.send(make.fund_run(self.at, owner, pool), self.authority)

    def join(self, index: int) -> Landed:
        owner, session = self.owners[index], self.sessions[index]
        if self.params.admission == Admission.ALLOWLIST:
            admit = make.admit(self.at, self.authority.pubkey(), owner.pubkey())
            self.send(admit, self.authority)
        terms = make.JoinTerms(index, self.roles[index], session.pubkey(), f"http://p{index}")
        return self.send(make.join_run(self.at, owner.pubkey(), terms), owner)

    def add(self, roles: int = 3) -> int:
        """One more participant with keys of its own; joins and returns its index."""
        index = len(self.owners)
        self.owners.append(key("owner", index))
        self.sessions.append(key("session", index))
        self.roles.append(roles)
        for payer in (self.owners[index], self.sessions[index]):
            self.chain.airdrop(payer.pubkey(), 100 * SOL)
        self.join(index)
        return index

    def leave(self, index: int) -> Landed:
        """The owner asks to leave; a member of the open round serves to its end."""
        owner = self.owners[index]
        return self.send(make.leave_run(self.at, owner.pubkey()), owner)

    # Steps.

    def report_instruction(self, index: int, target: int, round_: int | None = None) -> Instruction:
        """`index` reports the payload of `target`; the open round builds on `round_`."""
        base = self.open.base_round if round_ is None else round_
        session = self.sessions[index].pubkey()
        return make.report_missing(self.at, session, index, base, target, self.run.round)

    def post_ready(self, index: int, root: bytes | None = None) -> Landed:
        """Post ready for the stored root while the run waits, else for the open round."""
        return self.send(self.ready_instruction(index, root), self.sessions[index])

    def ready_instruction(self, index: int, root: bytes | None = None) -> Instruction:
        run = self.run
        waits = run.phase in (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP)
        round_ = run.root_round if waits else run.round
        held = root or (run.root if waits else root_of(round_))
        vote = self.vote(index, round_, held)
        return make.post_ready(self.at, self.sessions[index].pubkey(), index, round_, vote)

    def activate(self, index: int) -> Landed:
        ready_round = self.entries[index].ready_round
        instruction = make.activate(self.at, self.cranker.pubkey(), index, ready_round)
        return self.send(instruction, self.cranker)

    def tick_instruction(self) -> Instruction:
        return make.advance_phase(self.at, self.cranker.pubkey(), self.run.round)

    def advance_phase(self) -> Landed:
        return self.send(self.tick_instruction(), self.cranker)

    def start(self) -> None:
        """From WaitingForMembers through Warmup into Commit, everybody ready."""
        self.advance_phase()
        for index, entry in enumerate(self.entries):
            if entry.status == Status.PENDING:
                self.post_ready(index)
        self.advance_phase()

    def commit_instruction(self, index: int, root: bytes | None = None) -> Instruction:
        run = self.run
        cooldown = run.phase == Phase.COOLDOWN
        header = bytes(32) if cooldown else header_of(index, run.round)
        vote = self.vote(index, run.round, root or root_of(run.round))
        session = self.sessions[index].pubkey()
        return make.commit_payload(self.at, session, index, run.round, header, vote)

    def commit(self, index: int, root: bytes | None = None) -> Landed:
        return self.send(self.commit_instruction(index, root), self.sessions[index])

    def attest_instruction(self, index: int, bitmap: int | None = None) -> Instruction:
        committed = self.open.committed
        held = committed if bitmap is None else bitmap
        possession = bytes(7 if held >> i & 1 else 0 for i in range(64))
        session = self.sessions[index].pubkey()
        return make.attest(self.at, session, index, self.run.round, held, possession)

    def attest(self, index: int, bitmap: int | None = None) -> Landed:
        return self.send(self.attest_instruction(index, bitmap), self.sessions[index])

    def close_instruction(self, root: bytes | None = None) -> Instruction:
        run = self.run
        return make.close_round(
            self.at,
            self.cranker.pubkey(),
            run.round,
            root or root_of(run.round),
            with_checkpoint=make.is_checkpoint_due(run),
        )

    def close(self, root: bytes | None = None) -> Landed:
        self.freeze_old_seed()
        return self.send(self.close_instruction(root), self.cranker)

    def close_void(self) -> Landed:
        self.freeze_old_seed()
        instruction = make.close_void(self.at, self.cranker.pubkey(), self.run.round)
        return self.send(instruction, self.cranker)

    def freeze(self, round_: int) -> Landed:
        return self.send(make.freeze_seed(self.at, self.cranker.pubkey(), round_), self.cranker)

    def freeze_old_seed(self) -> None:
        """Freeze the seed that the next open waits for, if it is pending."""
        kept = self.run.round + 1 - self.params.keep_rounds
        if kept < 0 or not self.run.seeds_pending >> kept % 64 & 1:
            return
        if self.slot - self.round(kept).seed_slot > SLOTS_LISTED:
            retarget = make.retarget_seed(self.at, self.cranker.pubkey(), kept)
            self.send(retarget, self.cranker)
        wanted = self.round(kept).seed_slot
        if self.slot <= wanted:
            self.chain.advance(wanted + 1 - self.slot)
        self.freeze(kept)

    def run_out(self) -> None:
        """Move to the first slot after the phase's last one."""
        if self.slot <= self.run.phase_end_slot:
            self.chain.advance(self.run.phase_end_slot + 1 - self.slot)

    def members(self) -> list[int]:
        return list(indices_of(self.open.members))

    def trainers(self) -> list[int]:
        return list(indices_of(self.open.trainers))

    def commit_all(self, indices: Sequence[int] | None = None) -> None:
        """These trainers commit (default: all), then Commit ends."""
        for index in self.trainers() if indices is None else indices:
            self.commit(index)
        self._end_phase()
        self.advance_phase()

    def attest_all(self, indices: Sequence[int] | None = None, bitmap: int | None = None) -> None:
        """These members attest (default: all), then Attest has ended."""
        for index in self.members() if indices is None else indices:
            self.attest(index, bitmap)
        self._end_phase()

    def _end_phase(self) -> None:
        run, round_ = self.run, self.open
        acted, all_ = (
            (round_.attested, round_.members)
            if run.phase == Phase.ATTEST
            else (round_.committed, round_.trainers)
        )
        if acted != all_:
            self.run_out()

    def play(self, num_rounds: int = 1) -> Landed:
        """Whole rounds in which everybody does everything."""
        for _ in range(num_rounds):
            self.commit_all()
            self.attest_all()
            landed = self.close()
            self.chain.advance()
        return landed

    def jail(self, index: int) -> None:
        """Three rounds in which nobody vouches for its payload."""
        for _ in range(3):
            self.commit_all()
            self.attest_all(bitmap=self.open.committed & ~(1 << index))
            self.close()
            self.chain.advance()
        assert self.entries[index].status == Status.JAILED

    def play_rest(self) -> Landed:
        """Finish a round in whose Commit some have committed already."""
        committed = self.open.committed
        self.commit_all([i for i in self.trainers() if not committed >> i & 1])
        self.attest_all()
        return self.close()

    def cool_down(self) -> Landed:
        """The root-only step, everybody voting for the same root."""
        for index in self.trainers():
            self.commit(index)
        return self.close()
