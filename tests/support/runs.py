"""Whole runs in one process: settings, members, waiting, and what every run must leave behind.

Owns: factories, waits and assertions on a whole run. Never: lies for a member; see ports.py.
Next: run_fixtures.py; the test_inprocess_* files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from support.event_fields import number, numbers, text
from troth_client.checkpoint.folder import Weights
from troth_client.data.manifest import Manifest
from troth_client.data.shards import TokenData
from troth_client.telemetry.events import int_of
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.events import Event, EventReader
from troth_coordinator.chain.operations import Authority, Session
from troth_coordinator.config_files import load_config
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.view import NetworkView, Role
from troth_localnet.direct import record_of
from troth_localnet.history import LandedTransaction
from troth_simulation.in_process import InProcessRun, SimulatedMember

MODEL = {
    "vocab_size": 256,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,
}
CHAIN = {"commit_slots": 40, "attest_slots": 30, "close_grace_slots": 5, "warmup_slots": 20}
WINDOWS = {
    "openings_slots": 20,
    "verdict_commit_slots": 30,
    "verdict_reveal_slots": 20,
    "jury_commit_slots": 30,
    "jury_reveal_slots": 20,
    "appeal_slots": 20,
    "breaker_slots": 20,
    "case_slots": 60,
}
"""Windows of audits and cases that are a few rounds of these runs."""
AUDITED = {**WINDOWS, "p_new_ppm": 1_000_000, "audit_cap": 2}
"""Audits every payload of a new member, up to two a round."""
FIVE = ("anna", "bob", "carl", "dora", "emma")
NO_AUDITS = {"p_base_ppm": 0, "p_new_ppm": 0}
"""For tests of who is missing: a silent member is fined, and jailed, for its seats as well."""
SLOT_LIMIT = 100_000
BOTH = Role.TRAINER | Role.WITNESS


def settings_of(
    manifest: Manifest, rounds: int, *, sequences: int = 2, is_tied: bool = True, **chain: int
) -> RunSettings:
    """Settings of a tiny run on a data set, with so many sequences in a payload.

    `is_tied`: the output matrix is the embedding, so that every row has a gradient.
    """
    found = load_config(
        [],
        {
            "model": MODEL | {"tie_word_embeddings": is_tied},
            "data": {"sequence_tokens": manifest.sequence_tokens},
            "demo": {"k": 8},
            "schedule": {"rounds": rounds, "lr_nano": 5_000_000},
            "train": {"sequences_per_payload": sequences, "microbatch_sequences": 2},
            "chain": {"min_members": 2, **CHAIN, **chain},
        },
    )
    return found.model_copy(update={"config": found.config.with_manifest(manifest.hash)})


class RunFactory:
    """Makes runs on one data set and ends them when the test ends; they start from `given`."""

    def __init__(self, data: tuple[Path, Manifest], folder: Path) -> None:
        self._data = data
        self._folder = folder
        self.runs: list[InProcessRun] = []
        self.given: Weights | None = None

    async def create(self, rounds: int = 6, *, seed: int = 0, **changes: int) -> InProcessRun:
        """A run without members; `changes` of its settings are those of `settings_of`."""
        folder, manifest = self._data
        settings = settings_of(manifest, rounds, **changes)
        if self.given is not None:
            config = settings.config.with_given_start()
            settings = settings.model_copy(update={"config": config})
        tokens = TokenData(folder, manifest)
        own = self._folder / f"run-{len(self.runs)}"
        run = await InProcessRun.create(settings, tokens, own, seed=seed, given=self.given)
        self.runs.append(run)
        return run

    async def start(
        self, rounds: int = 6, *, names: str, seed: int = 0, **changes: int
    ) -> InProcessRun:
        """A run with these members, all started; none of them has done anything yet."""
        run = await self.create(rounds, seed=seed, **changes)
        await start_members(run, names.split())
        return run

    async def close(self) -> None:
        for run in self.runs:
            await run.close()


async def start_members(
    run: InProcessRun, names: Iterable[str], roles: Role = BOTH
) -> list[SimulatedMember]:
    """Let members join and start; the runtime waits for all of them from the first slot on."""
    members = [await run.add(name, roles) for name in names]
    for member in members:
        await run.start(member)
    return members


def member(run: InProcessRun, name: str) -> SimulatedMember:
    return next(one for one in run.members if one.name == name)


@contextmanager
def time_stopped(run: InProcessRun) -> Iterator[None]:
    """No slot passes inside, unless by `until`: what the test does happens in one slot."""
    run.runtime.join()
    try:
        yield
    finally:
        run.runtime.leave()


async def until(
    run: InProcessRun, holds: Callable[[NetworkView], bool], *, is_stopped: bool = False
) -> NetworkView:
    """Let slots pass until the chain shows something; a member that fails fails the test.

    is_stopped: called inside `time_stopped`; otherwise time goes on when this returns.
    """
    with nullcontext() if is_stopped else time_stopped(run):
        for _ in range(SLOT_LIMIT):
            view = await run.view()
            if holds(view):
                return view
            raise_failures(run)
            assert view.run.phase != Phase.FINISHED, "the run ended before it came to that"
            await run.runtime.wait()
    raise AssertionError(f"not within {SLOT_LIMIT} slots")


async def until_round(
    run: InProcessRun, round_: int, phase: Phase | None = None, *, is_stopped: bool = False
) -> NetworkView:
    return await until(
        run,
        lambda view: view.run.round >= round_ and (phase is None or view.run.phase == phase),
        is_stopped=is_stopped,
    )


def raise_failures(run: InProcessRun) -> None:
    for one in run.members:
        if one.task is not None and one.task.done() and not one.task.cancelled():
            error = one.task.exception()
            if error is not None:
                raise error


class Chronicle:
    """All events of the program from now on, in order."""

    def __init__(self, run: InProcessRun) -> None:
        self._reader = EventReader(program_codec())
        self.events: list[Event] = []
        run.chain.observers.append(self)

    def slot_opened(self, slot: int, parent: int) -> None:
        """A new slot alone is no event."""

    def transaction_landed(self, landed: LandedTransaction, changed: Sequence[Pubkey]) -> None:
        self.events += self._reader.read(record_of(landed)).events

    def named(self, name: str, **fields: object) -> list[Any]:
        """Events of a name whose fields have these values."""
        return [
            event
            for event in self.events
            if event.name == name and all(getattr(event, k) == v for k, v in fields.items())
        ]


def authority(run: InProcessRun) -> Authority:
    return Authority(run.client, run.at, run.authority)


def new_session(run: InProcessRun, one: SimulatedMember) -> Keypair:
    """Another session key for a member, with money for its fees."""
    key = Keypair.from_seed(bytes(one.session)[:31] + b"\x01")
    run.chain.airdrop(key.pubkey(), 5 * 10**9)
    return key


# The state that every run must leave behind.


def roots(run: InProcessRun) -> dict[int, dict[str, str]]:
    """Root of w_{r+1} that each member held after round r, as it last said."""
    found: dict[int, dict[str, str]] = {}
    for one in run.members:
        for event in one.events.named("round_closed"):
            found.setdefault(number(event, "round"), {})[one.name] = text(event, "root")
        for event in one.events.named("healed"):
            found[number(event, "round") - 1][one.name] = text(event, "root")
    return found


def assert_one_root_per_round(run: InProcessRun, at_least: int = 2) -> None:
    found = roots(run)
    assert found, "no round was closed"
    for round_, held in sorted(found.items()):
        assert len(set(held.values())) == 1, f"roots differ after round {round_}: {held}"
    assert max(len(held) for held in found.values()) >= at_least


async def assert_conserved(run: InProcessRun) -> None:
    """The vault holds what the program says, to the lamport."""
    chain = (await run.view()).run
    owed = (
        chain.vault_rent + chain.total_stake + chain.total_unbonding + chain.total_unvested,
        chain.total_claimable + chain.total_bonds + chain.total_escrow,
        chain.total_withheld + chain.reward_pool,
    )
    assert run.balance(run.at.vault) == sum(owed)


async def assert_finished(run: InProcessRun) -> NetworkView:
    """Every member that saw the end holds the weights whose root is on chain.

    A member that left may have seen the end too, but it has applied nothing since it left.
    """
    view = await run.view()
    assert view.run.phase == Phase.FINISHED
    saw_it = [one for one in run.members if phases(one)[-1:] == ["FINISHED"]]
    there = [one for one in saw_it if view.entries[one.index].left_round == NONE]
    assert len(there) >= 2
    for one in there:
        assert one.here.state.replica.root() == view.run.root, one.name
    assert_one_root_per_round(run)
    await assert_conserved(run)
    return view


def assert_fees_reported(run: InProcessRun) -> None:
    """The fees in the events add up to what the session keys paid."""
    for one in run.members:
        payer = one.session.pubkey()
        sent = (found for found in run.chain.history.newest_first(payer))
        paid = sum(found.fee_lamports for found in sent if found.keys.all[0] == payer)
        assert sum(int_of(event, "fee") for event in one.events.events) == paid > 0, one.name


def phases(one: SimulatedMember) -> list[str]:
    return [text(event, "phase") for event in one.events.named("phase")]


def included(run: InProcessRun, name: str) -> dict[int, list[int]]:
    """Which payloads each round included, as one member saw it last."""
    events = member(run, name).events.named("round_closed")
    return {number(event, "round"): numbers(event, "included") for event in events}


def void_rounds(run: InProcessRun, name: str) -> list[int]:
    events = member(run, name).events.named("round_closed")
    return [number(event, "round") for event in events if event["void"]]


def events_of(run: InProcessRun, name: str, event: str) -> list[dict[str, Any]]:
    return member(run, name).events.named(event)


async def join_by_hand(run: InProcessRun, name: str) -> Session:
    """A participant without a client: joined and ready, it does what the test says."""
    one = await run.add(name)
    session = Session(run.client, run.at, one.session, one.index)
    view = await until(run, lambda view: view.run.phase == Phase.WARMUP, is_stopped=True)
    await session.post_ready(0, vote_of(run, name, 0, view.run.root))
    return session


def num_committed(view: NetworkView) -> int:
    return 0 if view.round is None else bitmap.count(view.round.committed)


def vote_of(run: InProcessRun, name: str, round_: int, root: bytes) -> bytes:
    return root_vote(bytes(run.at.run), round_, bytes(member(run, name).owner.pubkey()), root)
