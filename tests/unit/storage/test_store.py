"""Local state: comes back bit for bit, is never torn, never shared, never half trusted."""

import dataclasses
import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from troth_client.runtime.files import DiskFullError, FolderInUseError
from troth_client.storage import ResidualEntry, Store, StoreIdentity, Submission, WeightState
from troth_client.storage.errors import StoreConflictError, StoreIdentityError
from troth_client.storage.sealed import DamagedFileError

IDENTITY = StoreIdentity(bytes(32), b"o" * 32, b"c" * 32)
NONE = 2**64 - 1


def submission(round_, index=3, fill=b"p"):
    return Submission(round_, index, b"header %d" % round_, b"s" * 64, fill * 2048)


def residual(round_, tiles=2):
    draw = np.random.default_rng(round_)
    u = draw.normal(size=(tiles, 64, 64)).astype(np.float32)
    u[0, 0, 0] = -0.0
    return ResidualEntry(round_, NONE, b"b" * 32, b"a" * 32, u)


def weights(round_, size=1000):
    draw = np.random.default_rng(round_)
    tensors = {
        "lm_head.weight": draw.normal(size=(size, 3)).astype(np.float32),
        "model.norm.weight": np.array([1e-45, -0.0, 3.5], np.float32),
    }
    return WeightState(round_, round_ * 16, bytes([round_ % 256]) * 32, tensors)


@pytest.fixture
def damaged():
    return []


@pytest.fixture
def open_store(tmp_path, damaged):
    opened = []

    def open_it(identity=IDENTITY, **options):
        store = Store(tmp_path / "state", identity, damaged.append, **options)
        opened.append(store)
        return store

    yield open_it
    for store in opened:
        store.close()


def same_arrays(found, expected):
    return (
        found.keys() == expected.keys()
        and all(found[name].dtype == expected[name].dtype for name in found)
        and all(found[name].shape == expected[name].shape for name in found)
        and all(found[name].tobytes() == expected[name].tobytes() for name in found)
    )


def test_everything_comes_back_bit_for_bit_after_a_restart(open_store):
    store = open_store()
    store.save_submission(submission(7), residual(7))
    store.save_weights(weights(7))
    store.save_peer(submission(7, index=11, fill=b"q"))
    store.close()
    store = open_store()
    assert store.load_submission(7) == submission(7)
    found, expected = store.load_residual(7), residual(7)
    assert found.round == 7
    assert found.previous_round == NONE
    assert found.root_before == b"b" * 32
    assert found.root_after == b"a" * 32
    assert same_arrays({"u": found.u}, {"u": expected.u})
    state = store.load_weights(7)
    assert state.round == 7
    assert state.cursor == 112
    assert state.state_root == bytes([7]) * 32
    assert same_arrays(state.tensors, weights(7).tensors)
    assert store.load_peer(7, 11) == submission(7, index=11, fill=b"q")
    assert store.peer_indices(7) == [11]


def test_what_was_never_saved_is_none(open_store):
    store = open_store()
    assert store.load_submission(1) is None
    assert store.load_residual(1) is None
    assert store.load_weights(1) is None
    assert store.load_peer(1, 1) is None
    assert store.newest_weights() is None
    assert store.newest_residual() is None
    assert store.submission_rounds() == store.weight_rounds() == store.peer_indices(1) == []


def test_the_first_submission_of_a_round_stays(open_store):
    store = open_store()
    store.save_submission(submission(7), residual(7))
    store.save_submission(submission(7), residual(7))
    with pytest.raises(StoreConflictError, match="round 7"):
        store.save_submission(submission(7, fill=b"x"), residual(7))
    assert store.load_submission(7) == submission(7)


def test_a_residual_belongs_to_its_submission_and_is_fp32(open_store):
    store = open_store()
    with pytest.raises(ValueError, match="submission of 7, residual of 8"):
        store.save_submission(submission(7), residual(8))
    half = residual(7)
    half = ResidualEntry(7, NONE, b"", b"", half.u.astype(np.float16))
    with pytest.raises(TypeError, match="never bf16"):
        store.save_submission(submission(7), half)
    assert store.submission_rounds() == []


def test_the_newest_weights_up_to_a_round(open_store):
    store = open_store()
    for round_ in (3, 5, 4):
        store.save_weights(weights(round_))
    assert store.weight_rounds() == [3, 4, 5]
    assert store.newest_weights().round == 5
    assert store.newest_weights(at_most=4).round == 4
    assert store.newest_weights(at_most=2) is None


def damage_last_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def damage_one_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def exchange(path):
    """A sound file of another kind in the place."""
    path.write_bytes(path.with_name("peer-00000000000000000001-00001.record").read_bytes())


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: os.truncate(path, path.stat().st_size - 5),
    "head only": lambda path: os.truncate(path, 60),
    "extended": lambda path: path.open("ab").write(b"\0"),
    "one bit": damage_one_bit,
    "seal": damage_last_byte,
    "exchanged": exchange,
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damage_is_named_and_the_one_before_is_used(open_store, damaged, tmp_path, damage):
    store = open_store()
    store.save_peer(submission(1, index=1))
    for round_ in (4, 5):
        store.save_submission(submission(round_), residual(round_))
        store.save_weights(weights(round_))
    for kind in ("weights", "residual", "submission"):
        DAMAGES[damage](tmp_path / "state" / f"{kind}-{5:020d}.record")
    store.close()
    store = open_store()
    assert same_arrays(store.newest_weights().tensors, weights(4).tensors)
    assert store.newest_residual().u.tobytes() == residual(4).u.tobytes()
    assert [error.path.name for error in damaged] == [
        f"weights-{5:020d}.record",
        f"residual-{5:020d}.record",
    ]
    for load in (store.load_weights, store.load_residual, store.load_submission):
        damaged.clear()
        assert load(5) is None
        assert f"{5:020d}.record" in str(damaged[0])
    # A damaged submission does not stand in the way of making it again.
    store.save_submission(submission(5), residual(5))
    assert store.load_submission(5) == submission(5)
    assert store.load_submission(4) == submission(4)


def test_a_damaged_peer_payload_counts_as_absent(open_store, damaged, tmp_path):
    store = open_store()
    store.save_peer(submission(2, index=9))
    damage_one_bit(tmp_path / "state" / f"peer-{2:020d}-00009.record")
    assert store.load_peer(2, 9) is None
    assert "peer-" in str(damaged[0])


def test_a_record_under_the_name_of_another_round_is_damage(open_store, tmp_path, damaged):
    store = open_store()
    store.save_weights(weights(4))
    (tmp_path / "state" / f"weights-{4:020d}.record").rename(
        tmp_path / "state" / f"weights-{6:020d}.record"
    )
    assert store.load_weights(6) is None
    assert "its own name" in str(damaged[0])


def test_dropping_keeps_what_replay_and_audits_need(open_store):
    store = open_store()
    for round_ in range(10):
        store.save_submission(submission(round_), residual(round_))
        store.save_peer(submission(round_, index=1))
        if round_ % 4 == 0:
            store.save_weights(weights(round_))
    store.drop_before(7, keep={2})
    assert store.submission_rounds() == [2, 7, 8, 9]
    assert [r for r in range(10) if store.load_residual(r)] == list(range(10))
    assert [r for r in range(10) if store.peer_indices(r)] == [2, 7, 8, 9]
    # Weights of 4 are what a replay up to 7 starts from.
    assert store.weight_rounds() == [4, 8]
    store.drop_before(8)
    assert store.weight_rounds() == [8]
    store.drop_after(7)
    assert store.weight_rounds() == []


def test_momentum_is_dropped_by_round_and_lists_what_it_builds_on(open_store, damaged, tmp_path):
    store = open_store()
    for round_, previous in ((3, NONE), (5, 3), (9, 5)):
        entry = dataclasses.replace(residual(round_), previous_round=previous)
        store.save_submission(submission(round_), entry)
    assert store.residual_links() == {3: NONE, 5: 3, 9: 5}
    store.drop_residuals({3, 9, 4})
    assert store.residual_links() == {3: NONE, 9: 5}
    assert store.submission_rounds() == [3, 5, 9]
    (tmp_path / "state" / f"residual-{3:020d}.record").write_bytes(b"trothrec\xff\xff\xff\xff")
    (tmp_path / "state" / f"residual-{9:020d}.record").write_bytes(b"")
    assert store.residual_links() == {}
    assert len(damaged) == 2


def test_one_process_at_a_time(open_store, tmp_path):
    store = open_store()
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from troth_client.storage import Store, StoreIdentity\n"
        "Store(Path(sys.argv[1]), StoreIdentity(bytes(32), b'o' * 32, b'c' * 32), print)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "state")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "FolderInUseError" in refused.stderr
    assert f"process {os.getpid()}" in refused.stderr
    with pytest.raises(FolderInUseError):
        open_store()
    store.close()
    subprocess.run(command, capture_output=True, check=True)


@pytest.mark.parametrize("field", ["run", "owner", "config_hash"])
def test_the_folder_of_another_is_refused_and_left_alone(open_store, field):
    store = open_store()
    store.save_weights(weights(1))
    store.close()
    other = StoreIdentity(**(vars(IDENTITY) | {field: b"x" * 32}))
    with pytest.raises(StoreIdentityError, match=field):
        open_store(other)
    assert open_store().newest_weights().round == 1


def test_a_damaged_identity_is_named(open_store, tmp_path):
    open_store().close()
    (tmp_path / "state" / "identity.json").write_text("{")
    with pytest.raises(DamagedFileError, match="identity"):
        open_store()


def test_the_salt_key_is_drawn_once_and_private(open_store, tmp_path):
    draws = iter([b"1" * 32, b"2" * 32])
    store = open_store(draw=lambda count: next(draws)[:count])
    assert store.salt_key == b"1" * 32
    store.close()
    path = tmp_path / "state" / "salt.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert open_store().salt_key == b"1" * 32


WRITER = """
import resource, sys
from pathlib import Path
import numpy as np
from troth_client.storage import StoreIdentity, ResidualEntry, Store, Submission, WeightState

def fill(round_, size):
    return np.full(size, round_, np.float32)

identity = StoreIdentity(bytes(32), b"o" * 32, b"c" * 32)
store = Store(Path(sys.argv[1]), identity, lambda error: None)
limit = int(sys.argv[2])
for round_ in range(1, 100_000):
    if limit and round_ == 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    entry = ResidualEntry(round_, 0, bytes(32), bytes(32), fill(-round_, (8, 64, 64)))
    store.save_submission(Submission(round_, 0, b"h%d" % round_, b"s", b"p" * 50_000), entry)
    store.save_weights(WeightState(round_, 0, bytes(32), {"w": fill(round_, 100_000)}))
    store.drop_before(round_ - 2)
    store.drop_residuals(range(round_ - 2, round_ + 1))
    print(round_, flush=True)
"""


def start_writer(folder, limit=0):
    command = [sys.executable, "-c", WRITER, str(folder), str(limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_sound(store, finished, damaged):
    """All that was finished is there, and nothing that is there is torn."""
    for round_ in store.submission_rounds():
        assert store.load_submission(round_).header == b"h%d" % round_
        assert (store.load_residual(round_).u == -round_).all()
    for round_ in store.weight_rounds():
        assert (store.load_weights(round_).tensors["w"] == round_).all()
    assert store.newest_weights().round in (finished, finished + 1)
    assert finished in store.submission_rounds()
    assert not damaged


@pytest.mark.parametrize("attempt", range(4))
def test_kill_9_in_the_middle_of_writing_loses_nothing(open_store, tmp_path, damaged, attempt):
    with start_writer(tmp_path / "state") as writer:
        for _ in range(3 + attempt):
            finished = int(writer.stdout.readline())
        # The writer never pauses: by the time the signal lands it is somewhere in round + 1 or on.
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
    finished = int(rest[-1]) if rest else finished
    store = open_store()
    check_sound(store, finished, damaged)
    assert not list((tmp_path / "state").glob("*.tmp"))


def test_a_full_disk_says_so_and_keeps_the_old_state(open_store, tmp_path, damaged):
    """A limit on file size is met in the middle of a write, as a full disk is."""
    with start_writer(tmp_path / "state", limit=120_000) as writer:
        lines, errors = writer.communicate()
    assert lines.split() == ["1", "2"]
    assert "DiskFullError" in errors
    assert "Nothing that was stored is lost" in errors
    assert not list((tmp_path / "state").glob("*.tmp"))
    check_sound(open_store(), 2, damaged)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_really_full_disk(small_disk, damaged):
    with Store(small_disk / "state", IDENTITY, damaged.append) as store:
        store.save_weights(weights(1))
        store.save_weights(weights(2, size=200_000))
        assert store.load_weights(2) is None
        assert same_arrays(store.newest_weights().tensors, weights(1).tensors)
        store.save_weights(weights(3))
        assert store.weight_rounds() == [1, 3]
    (full,) = damaged
    assert "no space left on device" in full.found
    assert "free some space" in full.next_step


def test_copies_of_others_make_room_for_our_own_work(small_disk, damaged):
    """The last place is for what must be on disk before it is committed to."""
    with Store(small_disk / "state", IDENTITY, damaged.append) as store:
        big = bytes(100_000)
        for index in range(20):
            store.save_peer(Submission(1, index, b"header", b"signature", big))
        assert len(store.peer_indices(1)) < 20
        store.save_submission(submission(2), residual(2, tiles=20))
        assert store.load_submission(2) == submission(2)
        assert store.peer_indices(1) == []
        assert store.load_residual(2) is not None


def test_without_room_for_our_own_work_nothing_is_lost_and_the_error_names_the_file(small_disk):
    with Store(small_disk / "state", IDENTITY, lambda _error: None) as store:
        store.save_submission(submission(1), residual(1))
        with pytest.raises(DiskFullError, match=r"no space left on device.*free some space"):
            store.save_submission(submission(2), residual(2, tiles=100))
        assert store.submission_rounds() == [1]
        assert store.newest_residual().round == 1
