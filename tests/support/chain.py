"""A stepped chain with the program, a client on it, and what a run needs."""

import hashlib
from dataclasses import dataclass, field

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from support.faulty_rpc import Faults, FaultyRpc
from troth_coordinator import artifacts
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.instructions import RunTerms
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.operations import Authority, Crank, JoinOffer, Owner, Session
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.root import root_vote
from troth_localnet.svm import Chain, ChainConfig

SOL = 10**9
PROGRAM = program_layout().program_id
GENESIS_ROOT = b"g" * 32


def key(*names: object) -> Keypair:
    return Keypair.from_seed(hashlib.sha256(repr(names).encode()).digest())


@dataclass
class World:
    """`slots_per_sleep` slots pass whenever the client waits."""

    chain: Chain = field(default_factory=lambda: Chain(ChainConfig(has_token_programs=False)))
    faults: Faults = field(default_factory=Faults)
    slots_per_sleep: int = 1
    has_program: bool = True
    num_sleeps: int = 0

    def __post_init__(self) -> None:
        self.chain.advance(5)
        if self.has_program:
            self.chain.add_program(PROGRAM, artifacts.program_image())
        self.rpc = FaultyRpc(self.chain, self.faults)
        self.client = CoordinatorClient(
            self.rpc, policy=SendPolicy(poll_seconds=0, max_polls=500), sleeper=self._sleep
        )

    async def _sleep(self, _seconds: float) -> None:
        self.num_sleeps += 1
        if self.slots_per_sleep:
            self.chain.advance(self.slots_per_sleep)

    def wallet(self, *names: object, lamports: int = 100 * SOL) -> Keypair:
        one = key(*names)
        self.chain.airdrop(one.pubkey(), lamports)
        return one

    def balance(self, address: Pubkey) -> int:
        return self.chain.accounts.balance(address)

    def terms(self, run_id: bytes = b"r" * 32, **changes: int | str) -> RunTerms:
        values = {"ring": 8, "capacity": 8, "audit_cap": 2, "max_witness_only": 2, **changes}
        params = ChainParams.localnet(**values).to_view()
        council = key("council").pubkey()
        return RunTerms(run_id, b"c" * 32, b"m" * 32, GENESIS_ROOT, council, params)

    async def create(self, **changes: int | str) -> Authority:
        terms = self.terms(**changes)
        authority = Authority.create_at(self.client, self.wallet("authority"), terms)
        await authority.create_run(terms, 10 * SOL)
        return authority

    async def join(self, at: RunAddresses, name: object) -> tuple[Owner, Session]:
        owner = Owner(self.client, at, self.wallet("owner", name))
        session = key("session", name)
        index, _sent = await owner.join_run(JoinOffer(session.pubkey(), 3, f"http://{name}", SOL))
        return owner, Session(self.client, at, session, index)

    async def start(self, num: int = 3, **changes: int | str) -> "Running":
        """Create a run, let `num` participants join and become ready: the first Commit is open."""
        authority = await self.create(**changes)
        at = authority.at
        peers = [await self.join(at, number) for number in range(num)]
        crank = Crank(self.client, at, authority.key)
        await crank.advance_phase(0)
        for owner, session in peers:
            await session.post_ready(0, vote(at, owner, 0, GENESIS_ROOT))
        await crank.advance_phase(0)
        return Running(self, authority, at, peers, crank)


@dataclass
class Running:
    world: World
    authority: Authority
    at: RunAddresses
    peers: list[tuple[Owner, Session]]
    crank: Crank

    def vote(self, number: int, round_: int, root: bytes) -> bytes:
        return vote(self.at, self.peers[number][0], round_, root)


def vote(at: RunAddresses, owner: Owner, round_: int, root: bytes) -> bytes:
    return root_vote(bytes(at.run), round_, bytes(owner.key.pubkey()), root)
