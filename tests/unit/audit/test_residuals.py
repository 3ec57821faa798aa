"""The kept residuals: what a seed may ask for is there, the rest is not, memory is bounded."""

import dataclasses

import numpy as np
import pytest
from support import opened

from troth_attestation import openings
from troth_client.state.errors import ResidualLostError
from troth_client.state.residual_archive import KeptRounds, ResidualArchive
from troth_client.storage import ResidualEntry, Store, StoreIdentity, Submission
from troth_coordinator.rules.ids import NONE

IDENTITY = StoreIdentity(bytes(32), b"o" * 32, b"c" * 32)
U_BYTES = opened.NUM_TILES * 4 * 4096
KEEPING = KeptRounds(keep_rounds=4, ring=16, memory_bytes=2 * U_BYTES)


@pytest.fixture
def damaged():
    return []


@pytest.fixture
def store(tmp_path, damaged):
    with Store(tmp_path / "state", IDENTITY, damaged.append, durable=False) as one:
        yield one


def entry(round_, previous=NONE):
    made = opened.residual(round_)
    return ResidualEntry(round_, previous, bytes(32), made.tree.root, made.u)


def propose(store, archive, round_, previous=NONE):
    one = entry(round_, previous)
    store.save_submission(Submission(round_, 0, b"h", b"s", b"p"), one)
    archive.put(one)


def is_kept(archive, round_):
    try:
        return np.array_equal(
            archive.load(round_, opened.residual(round_).tree.root).u, opened.residual(round_).u
        )
    except ResidualLostError:
        return False


def kept(archive, rounds):
    return [round_ for round_ in rounds if is_kept(archive, round_)]


def run(store, archive, rounds, released=()):
    """Propose these rounds, each on the one before; all are included and closed."""
    previous = NONE
    for round_ in rounds:
        propose(store, archive, round_, previous)
        if round_ in released:
            archive.release(round_)
        archive.tidy(round_, {round_})
        previous = round_


def test_a_pair_opens_under_the_signed_roots(store, tmp_path):
    archive = ResidualArchive(store, KEEPING)
    propose(store, archive, 7)
    propose(store, archive, 9, previous=7)
    audit = opened.opened()
    after, before = archive.pair(audit.sampled)
    assert openings.encode(audit.sampled, after, before) == audit.data
    first = opened.opened(round_=7, previous=NONE)
    assert archive.pair(first.sampled)[1] is None


def test_memory_is_bounded_and_the_disk_has_the_rest(store):
    archive = ResidualArchive(store, KEEPING)
    for round_ in range(6):
        propose(store, archive, round_)
        assert archive.memory_bytes <= KEEPING.memory_bytes
    assert archive.memory_bytes == 2 * U_BYTES
    assert kept(archive, range(6)) == list(range(6))
    none_in_memory = ResidualArchive(store, dataclasses.replace(KEEPING, memory_bytes=0))
    propose(store, none_in_memory, 6)
    assert none_in_memory.memory_bytes == 0
    assert is_kept(none_in_memory, 6)


def test_a_stopped_process_finds_its_residuals_again(store):
    run(store, ResidualArchive(store, KEEPING), range(3))
    again = ResidualArchive(store, KEEPING)
    assert again.waiting() == [0, 1, 2]
    assert kept(again, range(3)) == [0, 1, 2]
    again.tidy(30, set())
    assert store.residual_links() == {}


def test_what_no_seed_released_stays_as_long_as_its_round_account(store):
    archive = ResidualArchive(store, KEEPING)
    run(store, archive, range(20))
    # 4..19 may be asked for, and 4 builds on 3.
    assert kept(archive, range(20)) == list(range(3, 20))
    assert archive.waiting() == list(range(3, 20))


def test_released_rounds_stay_for_keep_rounds_and_one_predecessor(store):
    archive = ResidualArchive(store, KEEPING)
    run(store, archive, range(20), released=range(20))
    assert kept(archive, range(20)) == [15, 16, 17, 18, 19]
    assert archive.memory_bytes <= KEEPING.memory_bytes
    assert archive.waiting() == []


def test_the_predecessor_of_a_waiting_round_stays_however_old(store):
    """A trainer that was away for long builds on a round that left the ring."""
    archive = ResidualArchive(store, KEEPING)
    run(store, archive, [2], released=[2])
    archive.tidy(40, {2})
    propose(store, archive, 41, previous=2)
    archive.tidy(41, {41})
    assert kept(archive, [2, 41]) == [2, 41]
    archive.release(41)
    archive.tidy(45, {41})
    assert kept(archive, [2, 41]) == [41]


def test_what_a_rewind_may_carry_on_from_stays(store):
    archive = ResidualArchive(store, KEEPING)
    run(store, archive, [1, 2], released=[1, 2])
    archive.tidy(30, {1, 2})
    assert kept(archive, [1, 2]) == [1, 2]
    archive.tidy(30, {2})
    assert kept(archive, [1, 2]) == [2]


def test_a_rewind_takes_releases_back(store):
    archive = ResidualArchive(store, KEEPING)
    run(store, archive, range(4), released=range(4))
    archive.rewind(2)
    assert archive.waiting() == [2, 3]
    archive.tidy(12, {3})
    assert kept(archive, range(4)) == [1, 2, 3]


@pytest.mark.parametrize("memory", [0, 2 * U_BYTES])
def test_another_root_than_the_signed_one_is_named(store, memory):
    archive = ResidualArchive(store, dataclasses.replace(KEEPING, memory_bytes=memory))
    propose(store, archive, 7)
    with pytest.raises(ResidualLostError, match=r"round 7.*found root"):
        archive.load(7, opened.residual(8).tree.root)


def test_a_missing_or_damaged_file_is_named(store, tmp_path, damaged):
    archive = ResidualArchive(store, dataclasses.replace(KEEPING, memory_bytes=0))
    propose(store, archive, 7)
    path = tmp_path / "state" / f"residual-{7:020d}.record"
    data = bytearray(path.read_bytes())
    data[-50_000] ^= 1
    path.write_bytes(data)
    with pytest.raises(ResidualLostError, match="round 7"):
        archive.load(7, opened.residual(7).tree.root)
    assert [error.path for error in damaged] == [path]
    path.unlink()
    with pytest.raises(ResidualLostError, match="round 7"):
        archive.load(7, opened.residual(7).tree.root)
    with pytest.raises(ResidualLostError, match="round 3"):
        archive.load(3, bytes(32))
