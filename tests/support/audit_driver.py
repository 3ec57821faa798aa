"""One participant before audits that a test writes down: real parts, a node that is scripted.

Owns: the views, rounds and audits that the node shows, what is sent to it, what holders answer.
The watcher, the tracker, the stores and the submissions are real; time stands until `pass_slot`.
Never: the program; whole runs on it are in tests/integration. Next: audit_views.py, opened.py.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from support import opened
from support.audit_node import ENDPOINTS, FROZEN_AT, ROUND, Node, view_at
from support.audit_views import SEED
from support.views import BALLOT, PARAMS, key, round_view, run_view
from troth_attestation.header import encode, header_hash
from troth_attestation.sketch import Sketch
from troth_attestation.state import state_root
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_client.audit.witness import Witness
from troth_client.checkpoint.state_store import StateStore
from troth_client.member import Member
from troth_client.network.chain import Identity, RunChain
from troth_client.network.submissions import Submissions
from troth_client.network.watch import ChainWatcher
from troth_client.runtime.base import end
from troth_client.state.audit_state import AuditState
from troth_client.state.audit_tracker import AuditTracker
from troth_client.state.kept_weights import KeptWeights
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.residual_archive import KeptRounds, ResidualArchive
from troth_client.state.retention import Retention
from troth_client.state.round_state import RoundState
from troth_client.state.verdict_store import VerdictStore
from troth_client.state.work import HonestWork
from troth_client.steps.replay import Replay
from troth_client.storage import (
    ResidualEntry,
    Store,
    StoreIdentity,
    Submission,
    WeightState,
    report_damage,
)
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobId, BlobKind, PushResult
from troth_client.transport.errors import FetchError, HolderRefusedError
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.config import JudgeSection, RunConfig
from troth_coordinator.rules.ids import NONE, Digest, ParticipantIndex, RoundIndex
from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView, SeedStatus
from troth_simulation.stepped import SteppedRuntime

__all__ = ["ENDPOINTS", "FROZEN_AT", "ROUND", "Node", "view_at"]

INDEX, PREVIOUS = 5, 7
AUDIT = opened.opened(ROUND, INDEX, PREVIOUS, SEED)
SKETCH = tuple(range(64))
TRAIN = RunConfig().train.model_copy(update={"sequences_per_payload": 2})
JUDGE = JudgeSection(openings_tiles=opened.NUM_DRAWN)
CONFIG = RunConfig(judge=JUDGE).with_manifest(b"m" * 32).model_copy(update={"train": TRAIN})
WEIGHTS = {"w": np.zeros(4, np.float32)}
ROOT = state_root(WEIGHTS, ROUND, 0, CONFIG.config_hash())
"""The root of the weights that `save_weights` leaves at the start of round 9."""
MANY_STEPS = 100  # turns of the loop: every task runs until it waits


def closed_round(number: int = ROUND, **changes: Any) -> RoundView:
    """A closed round whose seed is frozen and asks for participant 5."""
    about: dict[str, Any] = {
        "flags": RoundFlag.CLOSED,
        "seed_status": SeedStatus.FROZEN,
        "seed": SEED,
        "freeze_clock": FROZEN_AT,
        "close_clock": 0,
        "included": 0b111111,
        "eligible": 0b111111,
        "sampled": 1 << INDEX,
        "trainers": 0b111111,
        "ballots": {INDEX: replace(BALLOT, header_hash=header_hash(AUDIT.header))},
    }
    return round_view(round=number, **(about | changes))


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(MANY_STEPS):
        await asyncio.sleep(0)


class Holders:
    """A transport that brings these in turn, None for nothing, and then never answers.

    Nobody ever answers for the openings roots in `hidden`. `refusing` take no push."""

    def __init__(self, *answers: bytes | None, hidden: Sequence[bytes] = ()) -> None:
        self.answers = list(answers)
        self.hidden = hidden
        self.asked: list[BlobId] = []
        self.refusing: set[str] = set()
        self.offers: list[list[str]] = []

    async def offer(self, blob: BlobId, holders: Sequence[str]) -> tuple[PushResult, ...]:
        self.offers.append(list(holders))
        fate = {True: HolderRefusedError("it to be taken", "status 409", ""), False: None}
        return tuple(PushResult(one, 1, fate[one in self.refusing]) for one in holders)

    async def fetch(self, blob: BlobId, _holders: Any, _num_bytes: int, check: Any) -> Any:
        self.asked.append(blob)
        if not self.answers or blob.key in self.hidden:
            await asyncio.Event().wait()
        data = self.answers.pop(0)
        if data is None:
            raise FetchError(blob.address, ())
        return check(data)

    @property
    def num_searches(self) -> int:
        """How often openings were asked for."""
        return sum(blob.kind == BlobKind.OPENINGS for blob in self.asked)


class Data:
    """A data set of 100 sequences."""

    def __len__(self) -> int:
        return 100

    def sequences(self, ids: Sequence[int]) -> NDArray[np.int64]:
        return np.zeros((len(ids), 3), np.int64)


@dataclass
class ScriptedJudge:
    """The work of a witness: counts gradients and says what the test wants to hear."""

    verdict: Verdict = field(default_factory=lambda: Verdict(VerdictKind.OK, Reason.WORK_MATCHES))
    failure: Exception | None = None
    num_gradients: int = 0
    num_references: int = 0

    def gradient(self, _weights: Any, _batch: Any) -> Any:
        self.num_gradients += 1
        return np.zeros((opened.NUM_TILES, 64, 64), np.float32)

    def reference_gradient(self, weights: Any, batch: Any) -> Any:
        self.num_references += 1
        return np.zeros((opened.NUM_TILES, 64, 64), np.float32)

    def second_gradient(self, weights: Any, batch: Any, *, in_reference: bool) -> Any:
        return self.reference_gradient(weights, batch)

    def judge(self, _evidence: Any, _own: Any) -> Verdict:
        if self.failure is not None:
            raise self.failure
        return self.verdict

    def sketch(self, _gradient: Any, _seed: Digest, _target: int) -> Sketch:
        return SKETCH


class AuditDriver:
    """A participant with its folder; `restart` is what a new process finds."""

    def __init__(self, folder: Path, index: int = INDEX) -> None:
        self.folder = folder
        self.index = index
        self.node = Node(rounds={ROUND: closed_round()})
        self.events = EventList()
        self.judge = ScriptedJudge()
        self.holders: Any = Holders()
        self.tasks: list[asyncio.Task[Any]] = []
        self.slots = 0
        self._open()

    def _open(self) -> None:
        identity = StoreIdentity(bytes(32), b"o" * 32, CONFIG.config_hash())
        self.store = Store(self.folder, identity, report_damage(self.events), durable=False)
        self.runtime = SteppedRuntime(self._advanced)
        # The test is a task, too: no slot passes while it looks.
        self.runtime.join()
        self.chain = self._chain()
        self.state = self._state()
        self.audits = AuditState(
            openings=OpeningsStore(self.folder / "openings"),
            kept=KeptWeights(self.store, CONFIG.config_hash()),
            verdicts=VerdictStore(
                self.folder / "verdicts",
                self.store.salt_key,
                report_damage(self.events),
                durable=False,
            ),
            tracker=AuditTracker(self.chain.client, self.chain.at, self.runtime, self.events),
        )
        transport: Any = _Redirected(self)
        self.submissions = Submissions(
            self.chain, self.state, transport, Random(0), endpoints_of=dict(ENDPOINTS)
        )
        self.witness = Witness(self.chain, self.submissions, self.audits, self.judge)

    def _chain(self) -> RunChain:
        client: Any = self.node
        owner, session = Pubkey(key(self.index + 1)), Keypair.from_seed(b"k" * 32)
        identity = Identity(owner, session, ParticipantIndex(self.index))
        at = RunAddresses.of(run_view())
        watch = ChainWatcher(client, at.run, self.runtime, self.events)
        return RunChain(client, at, Digest(bytes(32)), identity, watch, self.runtime, self.events)

    def _state(self) -> RoundState:
        # The weights and the momentum themselves are used by no audit.
        layout = SimpleNamespace(num_tiles=opened.NUM_TILES)
        replica: Any = SimpleNamespace(layout=layout, known_root=None, round=0)
        residual: Any = SimpleNamespace(zero_root=bytes(32))
        return RoundState(
            config=CONFIG,
            data=Data(),
            replica=replica,
            residual=residual,
            archive=ResidualArchive(self.store, KeptRounds(PARAMS.keep_rounds, PARAMS.ring)),
            store=self.store,
            states=StateStore(self.store, lambda error: None),
            retention=Retention.of(PARAMS),
            runtime=self.runtime,
            events=self.events,
        )

    def _advanced(self) -> None:
        self.slots += 1

    @property
    def tracker(self) -> AuditTracker:
        return self.audits.tracker

    @property
    def work(self) -> HonestWork:
        """The trainer's work: only what opens tiles is there."""
        state, openings = self.state, self.audits.openings
        parts: Any = (CONFIG, None, None, None, None, state.archive, openings, None)
        return HonestWork(*parts)

    @property
    def member(self) -> Member:
        replay = Replay(self.chain, self.submissions, self.audits)
        return Member(
            self.chain, self.state, self.audits, self.submissions, self.work, self.witness, replay
        )

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start a task of the participant; `close` ends it."""
        task = self.runtime.start(work, "driven")
        self.tasks.append(task)
        return task

    async def see(self, view: NetworkView, *audits: AuditView) -> None:
        """Show a look at the chain, with these audits if any are given; let everybody act on it."""
        if audits:
            self.node.audits = list(audits)
        self.node.view = view
        await self.tracker.refresh(view)
        await settle()

    async def look(self, view: NetworkView, *audits: AuditView) -> None:
        """Let the watcher read this; let everybody act on it."""
        if audits:
            self.node.audits = list(audits)
        self.node.view = view
        await self.chain.watch.look()
        await settle()

    async def pass_slot(self) -> None:
        """Let a slot pass if every task waits for it."""
        self.runtime.leave()
        self.runtime.join()
        await settle()

    async def restart(self) -> None:
        await self.close()
        self._open()

    async def close(self) -> None:
        await end(*self.tasks)
        await end(*self.chain.sends)
        self.tasks.clear()
        self.store.close()

    def propose(
        self, audit: opened.Opened = AUDIT, round_: int = ROUND, previous: int = PREVIOUS
    ) -> None:
        """Have submitted this payload, on the one before."""
        assert audit.before is not None
        made = ((previous, NONE, audit.before), (round_, previous, audit.after))
        for number, before, residual in made:
            submission = Submission(number, self.index, encode(audit.header), b"s", b"p")
            root = residual.tree.root
            entry = ResidualEntry(number, before, bytes(32), root, residual.u)
            self.store.save_submission(submission, entry)
            self.state.archive.put(entry)
        self.state.archive.release(RoundIndex(previous))

    def save_payload(self) -> Submission:
        """Hold the audited payload as one of its judges does."""
        found = Submission(ROUND, INDEX, encode(AUDIT.header), b"s" * 64, b"payload")
        self.store.save_peer(found)
        return found

    def save_weights(self) -> None:
        """Hold the weights that the target computed with."""
        self.store.save_weights(WeightState(ROUND, 0, ROOT, WEIGHTS))

    def named(self, event: str) -> list[Any]:
        return self.events.named(event)

    def last_data(self) -> bytes:
        """Return the data of the instruction that was sent last."""
        (instruction,) = self.node.sent[-1]
        return bytes(instruction.data)


class _Redirected:
    """The transport of a driver: whatever `holders` it has at the moment."""

    def __init__(self, driver: AuditDriver) -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver.holders, name)


@contextmanager
def complaints() -> Iterator[list[dict[str, Any]]]:
    """Collect what the event loop reports of exceptions that nobody has retrieved."""
    found: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: found.append(context))
    try:
        yield found
    finally:
        loop.set_exception_handler(None)
