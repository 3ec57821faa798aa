"""A whole run inside one process: LiteSVM called directly, memory transport, stepped slots.

Owns: wiring for tests and experiments; the same client code as in real processes runs here.
Never: sleeps or opens a socket; equal seeds give equal runs.
Next: `stepped.py` for time; `tests/integration/test_inprocess.py` for its use.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_client.checkpoint.folder import Weights
from troth_client.member import Member
from troth_client.model.device import CPU, Device
from troth_client.model.genesis import genesis_root
from troth_client.network.chain import OUTSIDE, Identity
from troth_client.participant.assembly import Ports, Resources, assemble, early_parts, joined
from troth_client.participant.restarting import tell_while
from troth_client.participant.supervisor import Beside, Supervisor
from troth_client.participant.validating import HeldOut, validate
from troth_client.run_files.files import member_files
from troth_client.state.past_states import MEMORY_BYTES
from troth_client.state.round_state import Sequences
from troth_client.storage import Store, report_damage
from troth_client.storage.entries import StoreIdentity
from troth_client.telemetry.events import EventList
from troth_client.transport.exchange import Exchange
from troth_client.transport.files import FolderBlobs
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_coordinator import artifacts
from troth_coordinator.chain.addresses import RunAddresses, run_address
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.instructions import RunTerms
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.operations import Authority, JoinOffer, Owner
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.ids import Digest, ParticipantIndex
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.view import NetworkView, Role
from troth_localnet.direct import DirectRpc
from troth_localnet.svm import Chain, ChainConfig
from troth_simulation.stepped import SteppedRuntime

SOL = 10**9


@dataclass(slots=True)
class SimulatedMember:
    """One participant of the run: keys, parts, events, the task that follows the run.

    `device` is the device for training and judging; change it before `start`. One that does not
    listen announces no endpoint: all its connections are outbound. One that `has_start` has the
    given first weights of the run, and others fetch them.
    """

    name: str
    owner: Keypair
    session: Keypair
    index: ParticipantIndex
    folder: Path
    events: EventList
    device: Device = CPU
    listens: bool = True
    has_start: bool = False
    parts: Member | None = None
    task: "asyncio.Task[NetworkView] | None" = None

    @property
    def here(self) -> Member:
        """The parts of the member; only after `InProcessRun.start`."""
        if self.parts is None:
            raise RuntimeError(f"{self.name} is not started")
        return self.parts

    @property
    def is_running(self) -> bool:
        """Whether it follows the run now."""
        return self.task is not None and not self.task.done()


@dataclass(slots=True)
class InProcessRun:
    """A chain with one run on it. Use `create`, then `add` members, `start` them, `finish`.

    `wrap` may replace the ports of a started member: tests use it to kill a member or to let it
    lie. `on_slot` is called at each new slot. With `has_blob_folders` the bytes that members hold
    for others lie in their folders, as those of a process do; otherwise in memory. Members that
    start later validate on `held_out`, and keep `past_bytes` of past rounds in memory.
    """

    settings: RunSettings
    folder: Path
    data: Sequences
    seed: int
    chain: Chain
    rpc: DirectRpc
    client: CoordinatorClient
    runtime: SteppedRuntime
    at: RunAddresses
    authority: Keypair
    network: MemoryNetwork = field(default_factory=MemoryNetwork)
    members: list[SimulatedMember] = field(default_factory=list)
    on_slot: list[Callable[[int], None]] = field(default_factory=list)
    wrap: Callable[[SimulatedMember, Ports], Ports] = field(default=lambda _member, ports: ports)
    has_blob_folders: bool = False
    held_out: HeldOut | None = None
    given: Weights | None = None
    past_bytes: int = MEMORY_BYTES

    @classmethod
    async def create(
        cls,
        settings: RunSettings,
        data: Sequences,
        folder: Path,
        seed: int = 0,
        given: Weights | None = None,
    ) -> "InProcessRun":
        """Start a chain, load the shipped program, create and fund a run on it.

        `given` weights are its start, as the config says; a member `has_start` if they lie on its
        own machine.
        """
        chain = Chain(ChainConfig(seed=u64(seed), has_token_programs=False))
        chain.add_program(program_layout().program_id, artifacts.program_image())
        rpc = DirectRpc(chain)
        client = CoordinatorClient(rpc, sleeper=_no_wait)
        authority = _key("authority", seed)
        chain.airdrop(authority.pubkey(), 1_000 * SOL)
        run_id = H("troth:inprocess", u64(seed))
        run = run_address(authority.pubkey(), run_id, client.program_id)
        terms = RunTerms(
            run_id=run_id,
            config_hash=settings.config.config_hash(),
            manifest_hash=settings.config.manifest_digest(),
            genesis_root=genesis_root(bytes(run), settings.config, given),
            council=authority.pubkey(),
            params=settings.chain.to_view(),
        )
        at = RunAddresses(run, settings.chain.ring, client.program_id)
        created = cls(
            settings=settings,
            folder=folder,
            data=data,
            seed=seed,
            chain=chain,
            rpc=rpc,
            client=client,
            runtime=SteppedRuntime(lambda: None),
            at=at,
            authority=authority,
            given=given,
        )
        created.runtime = SteppedRuntime(created._advance)
        await Authority(client, at, authority).create_run(terms, SOL)
        return created

    async def add(
        self, name: str, roles: Role = Role.TRAINER | Role.WITNESS, *, listens: bool = True
    ) -> SimulatedMember:
        """Let a participant join with its stake; it does nothing until `start`."""
        member = self._newcomer(name)
        member.listens = listens
        self.members.append(member)
        try:
            await self._deposit(member, roles)
        except BaseException:
            self.members.remove(member)
            raise
        return member

    async def add_late(self, name: str) -> SimulatedMember:
        """Start a participant that has not joined: it fetches, replays, and then joins itself."""
        member = self._newcomer(name)
        self.members.append(member)
        await self.start(member)
        return member

    async def start(self, member: SimulatedMember) -> None:
        """Assemble the member from its folder and let it follow the run.

        A member that was stopped or killed resumes from its folder.
        """
        store = self._open_store(member)
        transport = self._open_transport(member)
        transport.show_files(member_files(member.folder / "data", self.settings.config))
        client = CoordinatorClient(self.rpc, sleeper=_no_wait)
        ports = self.wrap(member, Ports(client, transport, store, self.runtime, member.events))
        genesis = Digest(bytes(await self.rpc.genesis_hash()))
        view = await self.client.read_run(self.at.run)
        identity = Identity(member.owner.pubkey(), member.session, member.index)
        config, rng = self.settings.config, random.Random(f"{self.seed} {member.name}")
        start = (lambda: self.given or {}) if member.has_start else None
        resources = Resources(
            self.data, member.device, start, random=rng, past_bytes=self.past_bytes
        )
        try:
            early = early_parts(view, config, identity, genesis, ports)
            load = partial(ports.runtime.compute, assemble, view, config, early, ports, resources)
            member.parts = await tell_while(early, load)
            await transport.__aenter__()
        except BaseException:
            store.close()
            raise
        self.runtime.join()

        def end(_task: object) -> None:
            self.network.leave(member.name)
            store.close()
            self.runtime.leave()

        member.task = asyncio.create_task(self._follow(member), name=member.name)
        # Not a `finally` in the task: one that is cancelled before its first step never enters it.
        member.task.add_done_callback(end)

    async def _follow(self, member: SimulatedMember) -> NetworkView:
        is_late = member.index == OUTSIDE
        if is_late:
            await Supervisor(member.here).arrive()
            await self._deposit(member, Role.TRAINER | Role.WITNESS)
            member.events.emit("joined", index=int(member.index))
            member.parts = joined(member.here, member.index)
        owner = Owner(member.here.chain.client, self.at, member.owner)
        besides: dict[str, Beside] = {}
        if self.held_out is not None:
            besides["validation"] = partial(validate, held_out=self.held_out)
        return await Supervisor(
            member.here, has_arrived=is_late, owner=owner, besides=besides
        ).run()

    def _newcomer(self, name: str) -> SimulatedMember:
        owner, session = _key(name, self.seed), _key(name + " session", self.seed)
        self.chain.airdrop(owner.pubkey(), self.settings.chain.min_stake_lamports + 10 * SOL)
        return SimulatedMember(name, owner, session, OUTSIDE, self.folder / name, EventList())

    async def _deposit(self, member: SimulatedMember, roles: Role) -> None:
        joining = Owner(self.client, self.at, member.owner)
        session = member.session.pubkey()
        endpoint = member.name if member.listens else ""
        index, _ = await joining.join_run(JoinOffer(session, int(roles), endpoint, 5 * SOL))
        member.index = ParticipantIndex(index)

    async def stop(self, member: SimulatedMember) -> None:
        """Kill a member at once, as kill -9 would: nothing is saved or sent any more."""
        task, member.task = member.task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def finish(self) -> list[NetworkView]:
        """Wait until every started member has ended; on the first failure end the others."""
        try:
            return await asyncio.gather(*(m.task for m in self.members if m.task is not None))
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop all running members at once; harmless when repeated.

        If they were stopped one by one, the last one would wait for ever for the next slot.
        """
        await asyncio.gather(*(self.stop(member) for member in self.members))

    async def view(self) -> NetworkView:
        """Return a fresh view of the chain."""
        return await self.client.snapshot(self.at.run)

    def balance(self, address: Pubkey) -> int:
        """Return the lamports of an address."""
        account = self.chain.accounts.get(address)
        return 0 if account is None else account.lamports

    def _open_store(self, member: SimulatedMember) -> Store:
        config_hash = self.settings.config.config_hash()
        identity = StoreIdentity(bytes(self.at.run), bytes(member.owner.pubkey()), config_hash)

        def draw(num_bytes: int) -> bytes:
            # Salts must not differ between two runs of one seed.
            return H("troth:draw", u64(self.seed), identity.owner)[:num_bytes]

        report = report_damage(member.events)
        return Store(member.folder, identity, report, durable=False, draw=draw)

    def _open_transport(self, member: SimulatedMember) -> Exchange:
        blobs = FolderBlobs(member.folder / "blobs") if self.has_blob_folders else None
        return memory_transport(self.network, member.name, listens=member.listens, blobs=blobs)

    def _advance(self) -> None:
        self.chain.advance(1)
        for callback in list(self.on_slot):
            callback(self.chain.slot)


async def run_members(run: InProcessRun, names: Sequence[str]) -> list[NetworkView]:
    """Let members of these names join and take part to the end; return their views."""
    for name in names:
        await run.add(name)
    for member in run.members:
        await run.start(member)
    return await run.finish()


async def _no_wait(_seconds: float) -> None:
    """Yield to the loop: on a stepped chain a sent transaction has landed."""
    await asyncio.sleep(0)


def _key(name: str, seed: int) -> Keypair:
    return Keypair.from_seed(H("troth:key", name.encode().ljust(32, b"\0")[:32], u64(seed)))
