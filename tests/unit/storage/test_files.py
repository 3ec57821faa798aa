"""Atomic files, sealed records and folder locks."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_st

from troth_client.runtime.files import (
    FolderLock,
    atomic_stream,
    atomic_write,
    read_file,
    read_regular,
    read_whole,
    remove_temporaries,
)
from troth_client.storage.sealed import DamagedFileError, Record, read_record, write_record


def test_a_failed_write_leaves_the_old_file_and_no_trace(tmp_path):
    path = tmp_path / "a"
    atomic_write(path, [b"old"])

    def chunks():
        yield b"new"
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        atomic_write(path, chunks())
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_new_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "a"
    with atomic_stream(path) as stream:
        stream.write(b"half")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == b"half"


def test_other_os_errors_pass_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError):
        atomic_write(tmp_path / "absent" / "a", [b""])


KILLED = """
import os, signal, sys
from pathlib import Path
from troth_client.runtime.files import atomic_write

def chunks():
    for _ in range(int(sys.argv[2])):
        yield bytes(1 << 20)
    os.kill(os.getpid(), signal.SIGKILL)

atomic_write(Path(sys.argv[1]), chunks())
"""


@pytest.mark.parametrize("chunks", [0, 1, 5])
def test_kill_9_between_any_two_chunks_leaves_the_old_file(tmp_path, chunks):
    path = tmp_path / "a"
    atomic_write(path, [b"old"])
    command = [sys.executable, "-c", KILLED, str(path), str(chunks)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    remove_temporaries(tmp_path, re.compile("a"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / "a.tmp").write_bytes(b"half")
    (tmp_path / "a").write_bytes(b"whole")
    (tmp_path / "draft.tmp").write_bytes(b"somebody's own")
    remove_temporaries(tmp_path, re.compile("a"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "draft.tmp"]


def test_a_lock_can_be_taken_again_after_release(tmp_path):
    lock = FolderLock(tmp_path / "f")
    lock.close()
    lock.close()
    with FolderLock(tmp_path / "f"):
        pass


def test_a_lock_that_is_a_link_changes_no_file_elsewhere(tmp_path):
    mine = tmp_path / "mine"
    mine.write_bytes(b"secret")
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "lock").symlink_to(mine)
    with pytest.raises(OSError, match="Too many levels"):
        FolderLock(tmp_path / "f")
    assert mine.read_bytes() == b"secret"


def test_only_files_are_read_and_none_makes_us_wait(tmp_path):
    whole = tmp_path / "whole"
    whole.write_bytes(b"12345")
    assert read_regular(whole, 5) == b"12345"
    assert read_regular(whole, 3) == b"1234", "one more byte shows that it is too long"
    assert read_regular(tmp_path / "absent", 3) is None
    assert read_regular(whole / "below", 3) is None
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(whole)
    for name in ("pipe", "link", "."):
        assert read_regular(tmp_path / name, 3) == b""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_file_of_a_user_may_be_a_link_and_nothing_stays_open(tmp_path):
    whole = tmp_path / "whole"
    whole.write_bytes(b"12345")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(whole)
    before = num_open()
    assert read_file(tmp_path / "link", 5) == read_whole(tmp_path / "link", 5) == b"12345"
    assert read_file(whole, 4) is None
    with pytest.raises(ValueError, match="more than 4 bytes"):
        read_whole(whole, 4)
    for name, error in (("pipe", OSError), (".", IsADirectoryError), ("gone", FileNotFoundError)):
        assert read_file(tmp_path / name, 5) is None
        with pytest.raises(error):
            read_whole(tmp_path / name, 5)
    assert num_open() == before


def num_open():
    return len(list(Path("/proc/self/fd").iterdir()))


ARRAYS = numpy_st.arrays(
    st.sampled_from([np.uint8, np.float32, np.int64]),
    numpy_st.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)
FIELDS = st.dictionaries(st.text(), st.text() | st.integers(-(2**70), 2**70), max_size=3)


@given(FIELDS, st.dictionaries(st.text(max_size=5), ARRAYS, max_size=3))
def test_any_record_comes_back(tmp_path_factory, fields, arrays):
    path = tmp_path_factory.mktemp("records") / "r"
    write_record(path, Record(fields, arrays), durable=False)
    found = read_record(path)
    assert found.fields == fields
    assert found.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found.arrays[name].tobytes() == array.tobytes()
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].dtype == array.dtype


@given(st.data())
def test_any_changed_or_missing_byte_is_seen(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("records") / "r"
    write_record(path, Record({"a": 1}, {"x": np.arange(9, dtype=np.float32)}), durable=False)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[at] ^= data.draw(st.integers(1, 255))
    for bad in (bytes(flipped), whole[:at], whole[at + 1 :], whole + b"\0"):
        path.write_bytes(bad)
        with pytest.raises(DamagedFileError) as caught:
            read_record(path)
        assert caught.value.path == path


def test_the_head_is_readable_json(tmp_path):
    write_record(tmp_path / "r", Record({"round": 5}, {"x": np.zeros((2, 3), np.float32)}))
    raw = (tmp_path / "r").read_bytes()
    size = int.from_bytes(raw[8:12], "little")
    head = json.loads(raw[12 : 12 + size])
    assert head == {"fields": {"round": 5}, "arrays": [["x", "<f4", [2, 3]]]}
