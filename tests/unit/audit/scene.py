"""One participant before audits that a test writes down: real parts, a node that is scripted.

The tracker, the archive, the desk, the book and the store are real. The node shows what the test
says and notes what is sent to it; whole runs on the real program are in tests/integration.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace

from solders.keypair import Keypair
from support import opened

from troth_attestation.header import encode
from troth_client.audit.chamber import Chamber
from troth_client.audit.tracker import AuditTracker
from troth_client.runtime.clock import SteppedClock
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.residual_archive import Keeping, ResidualArchive
from troth_client.state.verdict_store import VerdictStore
from troth_client.storage import Identity, ResidualEntry, Store, Submission
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import RoundFlag, SeedStatus

from ..rules.builders import PARAMS, RUN_ADDRESS, network, round_view, run_view
from ..rules.trials import SEED, STAGE_END, audit_view, juror, seat

__all__ = ["audit_view", "juror", "seat"]

INDEX, ROUND, PREVIOUS = 5, 9, 7
FROZEN_AT = STAGE_END - 60
AUDIT = opened.opened(ROUND, INDEX, PREVIOUS, SEED)


def closed_round(number=ROUND, **changes):
    """A closed round whose seed is frozen and asks for participant 5."""
    about = {
        "flags": RoundFlag.CLOSED,
        "seed_status": SeedStatus.FROZEN,
        "seed": SEED,
        "freeze_clock": FROZEN_AT,
        "included": 0b111111,
        "eligible": 0b111111,
        "sampled": 1 << INDEX,
    }
    return round_view(round=number, **(about | changes))


def view_at(slot=FROZEN_AT + 1, sequence=1, round_=ROUND + 2, **changes):
    """What the chain shows of the run at a slot; another sequence says that something happened."""
    run = run_view(round=round_, event_sequence=sequence, num_audits=1, **changes)
    return network(slot=slot, run=run)


@dataclass
class Node:
    """A node that shows these rounds and audits, and takes or refuses what is sent."""

    rounds: dict = field(default_factory=dict)
    audits: list = field(default_factory=list)
    failure: Exception | None = None
    num_reads: int = 0
    sent: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    async def read_rounds(self, _run, numbers):
        self.asked.append(list(numbers))
        return [self.rounds.get(number) for number in numbers]

    async def find_audits(self, _run):
        self.num_reads += 1
        return list(self.audits)

    async def send(self, instructions, _signers):
        self.sent.append(instructions)
        if self.failure is not None:
            raise self.failure
        return SimpleNamespace(fee_lamports=5_000)


class Scene:
    """A participant with its folder; `restart` is what a new process finds."""

    def __init__(self, folder, index=INDEX):
        self.folder = folder
        self.index = index
        self.node = Node(rounds={ROUND: closed_round()})
        self.events = EventList()
        self._open()

    def _open(self):
        identity = Identity(bytes(32), b"o" * 32, b"c" * 32)
        self.store = Store(self.folder, identity, self._damaged, durable=False)
        at = RunAddresses.of(run_view())
        clock = SteppedClock(lambda: None)
        keeping = Keeping(PARAMS.keep_rounds, PARAMS.ring)
        key_of_salts = self.store.salt_key
        self.peer = SimpleNamespace(
            index=self.index,
            at=at,
            run=RUN_ADDRESS,
            chain=self.node,
            store=self.store,
            clock=clock,
            events=self.events,
            identity=SimpleNamespace(session=Keypair.from_seed(b"k" * 32)),
            replica=SimpleNamespace(layout=SimpleNamespace(num_tiles=opened.NUM_TILES)),
            archive=ResidualArchive(self.store, keeping),
            desk=OpeningsStore(self.folder / "openings"),
            verdicts=VerdictStore(self.folder / "verdicts", key_of_salts, self._damaged, False),
            tracker=AuditTracker(self.node, at, self.events),
            chamber=Chamber(),
        )

    def _damaged(self, error):
        self.events.emit("file_damaged", reason=str(error))

    def restart(self):
        self.close()
        self._open()

    def close(self):
        self.store.close()

    def propose(self, audit=AUDIT, round_=ROUND, previous=PREVIOUS):
        """Have submitted this payload, on the one before."""
        for number, before, residual in (
            (previous, NONE, audit.before),
            (round_, previous, audit.after),
        ):
            submission = Submission(number, self.index, encode(audit.header), b"s", b"p")
            root = residual.tree.root
            entry = ResidualEntry(number, before, bytes(32), root, residual.u, residual.u)
            self.store.save_submission(submission, entry)
            self.peer.archive.put(entry)
        self.peer.archive.release(previous)

    def named(self, event):
        return self.events.named(event)
