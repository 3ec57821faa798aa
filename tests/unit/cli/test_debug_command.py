"""`troth debug`: the bytes are those of the independent reference."""

import hashlib
import json

import numpy as np
import pytest
from support import reference

K = 8


def tiles(seed, count=5):
    values = np.random.default_rng(seed).standard_normal((count, 64, 64)).astype(np.float32)
    values[1] = 0
    return values


def payload(cli, folder, seed):
    np.save(folder / f"{seed}.npy", tiles(seed))
    out = folder / f"{seed}.payload"
    done = cli.ok("debug", "payload", "--tiles", folder / f"{seed}.npy", "--k", K, "--out", out)
    return out, done.json


@pytest.mark.parametrize("seed", [1, 2])
def test_payload_writes_the_reference_bytes_and_always_prints_json(cli, tmp_path, seed):
    out, facts = payload(cli, tmp_path, seed)
    expected = reference.pack([reference.choose(tile, K) for tile in tiles(seed)], K)
    assert out.read_bytes() == expected
    assert facts == {
        "length": len(expected),
        "sha256": hashlib.sha256(expected).hexdigest(),
        "payload_root": reference.payload_root(expected).hex(),
    }


def test_apply_writes_the_reference_direction_and_prints_its_hash(cli, tmp_path):
    files = [payload(cli, tmp_path, seed)[0] for seed in (1, 2, 3)]
    votes = [[reference.choose(tile, K) for tile in tiles(seed)] for seed in (1, 2, 3)]
    expected = reference.direction(votes, 5).tobytes()
    out = tmp_path / "direction"
    command = ("debug", "apply", "--tiles", 5, "--k", K, "--out", out)
    done = cli.ok(*command, *files)
    assert out.read_bytes() == expected
    assert hashlib.sha256(expected).hexdigest() in done.out
    found = cli.json(*command, *reversed(files))
    assert found["sha256"] == hashlib.sha256(expected).hexdigest()
    assert found["num_payloads"] == 3


def test_an_empty_round_has_no_direction(cli, tmp_path):
    cli.ok("debug", "apply", "--tiles", 3, "--k", K, "--out", tmp_path / "zero")
    assert (tmp_path / "zero").read_bytes() == bytes(3 * 4096)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda data: data[:-1], "PayloadLengthError"),
        (lambda data: data + b"\0", "PayloadLengthError"),
        (lambda data: data[:-1] + b"\x80", "PaddingError"),
        (lambda data: bytes([data[0] & ~1]) + data[1:], "AbsentTileError"),
    ],
)
def test_a_malformed_payload_is_named_and_nothing_is_written(cli, tmp_path, change, kind):
    file, _ = payload(cli, tmp_path, 1)
    file.write_bytes(change(file.read_bytes()))
    out = tmp_path / "direction"
    error = cli.refused("debug", "apply", "--tiles", 5, "--k", K, "--out", out, file)
    assert error["kind"] == kind
    assert str(file) in error["found"]
    assert not out.exists()


def test_bad_tiles_are_named(cli, tmp_path):
    np.save(tmp_path / "u.npy", tiles(1).astype(np.float64))
    command = ("debug", "payload", "--tiles", tmp_path / "u.npy", "--out", tmp_path / "o")
    assert cli.refused(*command, "--k", K)["kind"] == "InputFileError"
    np.save(tmp_path / "u.npy", tiles(1))
    assert cli.refused(*command, "--k", 3)["kind"] == "UnsupportedKError"
    np.save(tmp_path / "u.npy", np.full((1, 64, 64), np.nan, np.float32))
    assert cli.refused(*command, "--k", K)["kind"] == "NonFiniteError"
    assert not (tmp_path / "o").exists()


def test_a_folder_is_no_file_to_write(cli, tmp_path):
    np.save(tmp_path / "u.npy", tiles(1))
    command = ("debug", "payload", "--tiles", tmp_path / "u.npy", "--k", K, "--out")
    done = cli(*command, tmp_path, "--json")
    assert json.loads(done.err)["error"]["kind"] == "OutputFileError"
    assert cli.refused(*command, tmp_path / "no" / "such")["kind"] == "FileError"
