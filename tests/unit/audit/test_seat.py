"""A seat: says the same again after a restart, judges anew after a fork, knows when it is late."""

from dataclasses import replace
from types import SimpleNamespace

import opened
import pytest

from troth_attestation.header import encode, header_hash
from troth_attestation.state import data_root
from troth_attestation.verdict import Statement, VerdictKind
from troth_client.audit.errors import WeightsLostError
from troth_client.audit.seat import (
    Exhibit,
    assigned_sequences,
    find_exhibit,
    find_submission,
    is_late,
    recall,
    sit,
)
from troth_client.store import Submission
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.audit_view import AuditStage, SeatFlag
from troth_coordinator.rules.audits import Act

from ..rules.builders import RUN_ADDRESS
from .scene import AUDIT, FROZEN_AT, INDEX, ROUND, Scene, audit_view, closed_round, seat, view_at

SKETCH = tuple(range(64))
WITNESS = 1
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


def test_the_last_third_of_the_window_is_late():
    audit = shown(stage_end=1_090)
    assert [is_late(audit, clock, 90) for clock in (1_000, 1_059, 1_060, 1_090)] == [
        False,
        False,
        True,
        True,
    ]


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


async def test_lost_weights_delay_the_judgement_and_are_told(scene):
    """Who cannot recompute says nothing: another seat is drawn, and no honest work is doubted."""
    scene.store.save_peer(submission())
    scene.peer.kept = Lost()
    audit = audit_view(header_hash=header_hash(AUDIT.header))
    assert await find_exhibit(scene.peer, view_at(FROZEN_AT + 1), audit) is None
    (told,) = scene.named("judging_delayed")
    assert (told["round"], told["target"]) == (ROUND, INDEX)


class Data:
    """A data set of so many sequences."""

    def __len__(self):
        return 100


def exhibit_of(cursor=0, data_root=bytes(32)):
    header = replace(AUDIT.header, data_root=data_root)
    return Exhibit(submission(), header, SimpleNamespace(cursor=cursor))


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
    copied = exhibit_of(700, data_root(ids[2]))
    assert await assigned_sequences(scene.peer, audit_view(), copied) == ids[INDEX]
    await scene.peer.docket.refresh(view_at())
    assert await assigned_sequences(scene.peer, audit_view(), copied) == ids[INDEX]


async def test_beyond_the_ring_the_header_names_the_data_and_no_rank_is_a_mismatch(assigned):
    """Judges that said nothing about a false data root would pay for their silence."""
    scene, ids = assigned
    scene.node.rounds = {}
    named = exhibit_of(700, data_root(ids[3]))
    assert await assigned_sequences(scene.peer, audit_view(), named) == ids[3]
    false = exhibit_of(700, b"?" * 32)
    assert await assigned_sequences(scene.peer, audit_view(), false) == ids[0]


class Lost:
    """Weights whose file is gone."""

    def load(self, round_, root):
        raise WeightsLostError(f"weights of round {round_}", "none on disk", "Judge others.")
