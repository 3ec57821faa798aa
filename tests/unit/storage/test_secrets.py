"""Secrets are private from their first byte, whatever the user's umask allows."""

import os
import stat

import numpy as np
import pytest
from solders.keypair import Keypair

from troth_attestation.cases import NO_SKETCH, Vote
from troth_attestation.sketch import sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_cli.keyfiles import write_key
from troth_client.runtime.files import TEMPORARY_SUFFIX, atomic_write
from troth_client.state.verdict_store import VerdictStore
from troth_client.storage import ResidualEntry, Store, StoreIdentity, Submission, WeightState

SECRET = 0o600
PRIVATE = 0o700


@pytest.fixture(autouse=True)
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_secret_file_is_private_while_it_is_written(tmp_path):
    path, seen = tmp_path / "salt", []

    def chunks():
        yield b"first"
        seen.extend(mode(one) for one in tmp_path.iterdir())
        yield b"last"

    atomic_write(path, chunks(), is_secret=True)
    assert seen == [SECRET]
    assert mode(path) == SECRET


def test_the_open_file_that_a_killed_process_left_is_not_filled_with_a_secret(tmp_path):
    """Somebody who holds the old half-written file open reads nothing of the new one."""
    left = tmp_path / ("salt" + TEMPORARY_SUFFIX)
    left.write_bytes(b"")
    with left.open("rb") as reader:
        atomic_write(tmp_path / "salt", [b"secret"], is_secret=True)
        assert reader.read() == b""
    assert mode(tmp_path / "salt") == SECRET


def test_a_link_in_the_place_of_the_temporary_file_leads_nowhere(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"untouched")
    (tmp_path / ("salt" + TEMPORARY_SUFFIX)).symlink_to(other)
    atomic_write(tmp_path / "salt", [b"secret"], is_secret=True)
    assert other.read_bytes() == b"untouched"


def test_every_secret_of_a_participant_is_its_own(tmp_path):
    """Session key, salts, hidden verdicts and votes, payloads before their commit, momentum."""
    folder = tmp_path / "state"
    with Store(folder, StoreIdentity(b"r" * 32, b"o" * 32, b"c" * 32), pytest.fail) as store:
        tiles = np.zeros((1, 64, 64), np.float32)
        residual = ResidualEntry(4, 3, b"a" * 32, b"b" * 32, tiles)
        store.save_submission(Submission(4, 1, b"header", b"signature", b"payload"), residual)
        store.save_weights(WeightState(4, 0, b"s" * 32, {"w": np.zeros(3, np.float32)}))
        verdicts = VerdictStore(folder / "verdicts", store.salt_key, pytest.fail)
        about = (VerdictKind.OK, b"e" * 32, sketch_hash(NO_SKETCH))
        verdicts.seal_verdict(Statement(b"r" * 32, 4, 3, 1, *about), NO_SKETCH)
        verdicts.seal_vote(Vote(b"r" * 32, 4, 3, 0, 1, *about), NO_SKETCH)
    write_key(folder / "session.json", Keypair())
    assert mode(folder) == PRIVATE
    assert mode(folder / "verdicts") == PRIVATE
    secret = {"salt.key", "session.json", "lock"}
    found = {path for path in folder.rglob("*") if path.is_file()}
    hidden = {
        path
        for path in found
        if path.name in secret or path.name.startswith(("submission", "residual", "seat", "juror"))
    }
    assert len(hidden) == 7
    assert {path.name: mode(path) for path in hidden} == {path.name: SECRET for path in hidden}
    assert [mode(path) for path in found if path.name.startswith("weights")] == [0o666]


def test_the_verdicts_of_an_earlier_version_are_closed(tmp_path):
    (tmp_path / "verdicts").mkdir(0o755)
    VerdictStore(tmp_path / "verdicts", b"k" * 32, pytest.fail)
    assert mode(tmp_path / "verdicts") == PRIVATE
