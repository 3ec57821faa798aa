"""A seat: says the same again after a restart, judges anew after a fork, knows when it is late."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support import opened

from troth_attestation.header import encode, header_hash
from troth_attestation.sketch import sketch_hash
from troth_attestation.state import data_root
from troth_attestation.verdict import Statement, VerdictKind
from troth_client.audit.evidence import assigned_sequences, find_submission
from troth_client.audit.seat import LAST_SHARE, recall, sit
from troth_client.state.errors import WeightsLostError
from troth_client.storage import Submission
from troth_client.transport.errors import FetchError
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.audit_view import AuditStage, SeatFlag
from troth_coordinator.rules.audits import Act

from ..rules.builders import PARAMS, RUN_ADDRESS, key
from .scene import AUDIT, FROZEN_AT, INDEX, ROUND, Scene, audit_view, closed_round, seat, view_at

SKETCH = tuple(range(64))
WITNESS = 1
ENDPOINTS = {index: (key(index + 1), f"peer-{index}") for index in range(6)}
WINDOW = PARAMS.verdict_commit_slots
EARLY, LATE = FROZEN_AT + 1, FROZEN_AT + WINDOW - WINDOW // LAST_SHARE
SEATS = tuple(seat(index) for index in (WITNESS, 2, 3, 4, 0))


@pytest.fixture
def scene(tmp_path):
    one = Scene(tmp_path, index=WITNESS)
    yield one
    one.close()


def say(scene, kind=VerdictKind.OK, evidence=AUDIT.root):
    about = (RUN_ADDRESS, ROUND, INDEX, WITNESS, kind, evidence, bytes(32))
    return scene.peer.verdicts.seal_verdict(Statement(*about), SKETCH)


def shown(stage=AuditStage.COMMIT, flags=0, **changes):
    seats = (seat(WITNESS, flags), *SEATS[1:])
    return audit_view(stage, seats=seats, openings_root=AUDIT.root, **changes)


def hidden():
    """An audit of the payload on disk that has just come to its commits."""
    return shown(header_hash=header_hash(AUDIT.header), stage_end=FROZEN_AT + WINDOW)


def last_data(scene):
    (instruction,) = scene.node.sent[-1]
    return bytes(instruction.data)


async def test_after_a_kill_before_the_commit_the_same_is_committed(scene):
    said = say(scene)
    scene.restart()
    await sit(scene.peer, view_at(), shown())
    assert last_data(scene).endswith(said.commit())


async def test_after_a_kill_between_commit_and_reveal_the_verdict_is_revealed(scene):
    """Who could not would pay the maximum of P7."""
    said = say(scene)
    await sit(scene.peer, view_at(), shown())
    scene.restart()
    audit = shown(AuditStage.REVEAL, SeatFlag.COMMITTED)
    await sit(scene.peer, view_at(), audit)
    assert said.salt in last_data(scene)
    assert len(scene.named("verdict_revealed")) == 1


async def test_what_is_committed_on_chain_is_never_forgotten(scene):
    """Also where the openings are others now: what is on chain must be revealed."""
    said = say(scene, evidence=b"e" * 32)
    audit = shown(AuditStage.REVEAL, SeatFlag.COMMITTED)
    assert recall(scene.peer, audit, Act.REVEAL) == said


async def test_what_speaks_of_other_openings_is_judged_anew(scene):
    """A fork drew the seed anew, and our commit was on the fork that lost."""
    say(scene, VerdictKind.UNAVAILABLE, b"e" * 32)
    assert recall(scene.peer, shown(), Act.COMMIT) is None
    again = say(scene)
    assert recall(scene.peer, shown(), Act.COMMIT) == again
    assert again.kind is VerdictKind.OK


@pytest.mark.parametrize("damage", [b"", b"rubbish"])
async def test_a_damaged_entry_is_told_and_reveals_nothing(scene, damage):
    say(scene)
    (path,) = (scene.folder / "verdicts").iterdir()
    path.write_bytes(damage)
    await sit(scene.peer, view_at(), shown(AuditStage.REVEAL, SeatFlag.COMMITTED))
    assert scene.node.sent == []
    assert scene.named("file_damaged")


async def test_who_has_no_seat_or_has_acted_sends_nothing(scene):
    say(scene)
    for audit in (
        replace(shown(), seats=SEATS[1:] + SEATS[:1]),
        shown(flags=SeatFlag.COMMITTED),
        shown(AuditStage.OPENINGS),
        shown(AuditStage.SETTLED),
        shown(AuditStage.REVEAL),
    ):
        await sit(scene.peer, view_at(), audit)
    assert scene.node.sent == []


def submission(audit=AUDIT):
    return Submission(ROUND, INDEX, encode(audit.header), b"s" * 64, b"payload")


async def test_the_submission_on_disk_is_used_where_it_is_the_audited_one(scene):
    scene.store.save_peer(submission())
    audit = audit_view(header_hash=header_hash(AUDIT.header))
    found = await find_submission(scene.peer, view_at(), audit, INDEX)
    assert found == submission()


async def test_a_submission_that_a_fork_took_back_is_not_judged(scene):
    scene.store.save_peer(submission())
    other = opened.opened(ROUND, INDEX, 7, b"t" * 32)
    named = replace(other.header, salt=b"z" * 32)
    scene.node.rounds[ROUND] = closed_round()
    audit = audit_view(header_hash=header_hash(named))
    assert await find_submission(scene.peer, view_at(), audit, INDEX) is None


async def test_a_submission_that_left_the_ring_and_the_disk_is_out_of_reach(scene):
    scene.node.rounds = {}
    assert await find_submission(scene.peer, view_at(), audit_view(), INDEX) is None


class Data:
    """A data set of so many sequences."""

    def __len__(self):
        return 100


@pytest.fixture
def assigned(scene):
    """The scene of a run with data, and what ranks 0..5 of round 9 have to take."""
    manifest = b"m" * 32
    train = SimpleNamespace(sequences_per_payload=2)
    scene.peer.data = Data()
    scene.peer.config = SimpleNamespace(manifest_digest=lambda: manifest, train=train)
    order = SequenceOrder(100, manifest)
    return scene, [order.sequences(700 + 2 * rank, 2) for rank in range(6)]


async def test_the_chain_says_on_which_data_the_work_must_be_whatever_the_header_says(assigned):
    """The target signed the data root of another rank, and copied that trainer's gradient."""
    scene, ids = assigned
    scene.node.rounds[ROUND] = closed_round(trainers=0b111111, cursor=700)
    copied = replace(AUDIT.header, data_root=data_root(ids[2]))
    assert await assigned_sequences(scene.peer, audit_view(), copied, 700) == ids[INDEX]
    await scene.peer.tracker.refresh(view_at())
    assert await assigned_sequences(scene.peer, audit_view(), copied, 700) == ids[INDEX]


async def test_beyond_the_ring_the_header_names_the_data_and_no_rank_is_a_mismatch(assigned):
    """Judges that said nothing about a false data root would pay for their silence."""
    scene, ids = assigned
    scene.node.rounds = {}
    for root, expected in ((data_root(ids[3]), ids[3]), (b"?" * 32, ids[0])):
        header = replace(AUDIT.header, data_root=root)
        assert await assigned_sequences(scene.peer, audit_view(), header, 700) == expected


class Lost:
    """Weights whose file is gone."""

    def load(self, round_, root):
        raise WeightsLostError(f"weights of round {round_}", "none on disk", "Judge others.")


class Served:
    """A transport that brings these in turn, None for nothing, and then never answers."""

    def __init__(self, *answers):
        self._answers = list(answers)

    async def fetch(self, blob, _holders, _num_bytes, check):
        if not self._answers:
            await asyncio.Event().wait()
        data = self._answers.pop(0)
        if data is None:
            raise FetchError(blob.address, ())
        return check(data)


async def hold(scene, transport, *slots):
    """Sit through these slots, all weights lost."""
    scene.peer.kept, scene.peer.transport, scene.peer.endpoints = Lost(), transport, ENDPOINTS
    for slot in slots:
        await sit(scene.peer, view_at(slot), hidden())
        for _ in range(20):
            await asyncio.sleep(0)


async def test_who_is_kept_waiting_says_in_time_that_nothing_was_served(scene):
    """The target took the second call and has not answered yet; the window is nearly over."""
    scene.store.save_peer(submission())
    await hold(scene, Served(None), EARLY, EARLY, LATE - 1)
    assert scene.node.sent == []
    await hold(scene, Served(), LATE)
    (judged,) = scene.named("judged")
    assert (judged["verdict"], judged["seconds"]) == ("UNAVAILABLE", None)
    (duty,) = scene.peer.verdicts.duties()
    said = scene.peer.verdicts.find(duty)
    assert not any(said.sketch), "nothing was recomputed"
    about = (RUN_ADDRESS, ROUND, INDEX, WITNESS, VerdictKind.UNAVAILABLE, AUDIT.root)
    statement = Statement(*about, sketch_hash(said.sketch))
    assert last_data(scene).endswith(statement.commit(said.salt))
    await scene.peer.chamber.close()


async def test_who_comes_late_asks_before_it_says_that_nothing_was_served(scene):
    """It trained, or was restarted; its word may cost the target ten rewards."""
    scene.store.save_peer(submission())
    await hold(scene, Served(None), LATE)
    assert scene.node.sent == []
    await hold(scene, Served(), LATE + 1)
    assert [one["verdict"] for one in scene.named("judged")] == ["UNAVAILABLE"]
    await scene.peer.chamber.close()


async def test_a_payload_that_only_we_lack_is_not_held_against_its_target(scene):
    """Three such seats would fine somebody who serves all that it owes."""
    scene.node.rounds = {}
    await hold(scene, Served(), EARLY, LATE, LATE + 1)
    assert scene.named("judged") == []
    await scene.peer.chamber.close()


async def test_who_cannot_recompute_says_nothing_and_tells_why(scene):
    """Another seat is drawn, and no honest work is doubted."""
    scene.store.save_peer(submission())
    await hold(scene, Served(AUDIT.data), EARLY, EARLY, LATE, LATE)
    assert scene.named("judged") == scene.node.sent == []
    assert {told["round"] for told in scene.named("judging_delayed")} == {ROUND}
    await scene.peer.chamber.close()
