"""Files given to `troth debug` become the protocol's bytes, or an error names the file."""

import hashlib

import numpy as np
import pytest
from support import reference

from troth_client.compression import debug, known_answer
from troth_client.compression.errors import NonFiniteError
from troth_client.compression.payload_errors import (
    InputFileError,
    PaddingError,
    PayloadLengthError,
    UnsupportedKError,
)

PATH = known_answer.choose_path("cpu")


def save(folder, array, name="u.npy"):
    np.save(folder / name, array)
    return folder / name


def u(seed=0, tiles=5):
    values = np.random.default_rng(seed).standard_normal((tiles, 64, 64)).astype(np.float32)
    values[1] = 0
    return values


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("k", reference.ALL_K)
def test_a_file_of_tiles_becomes_the_reference_payload(tmp_path, k, order):
    file = save(tmp_path, np.array(u(), order=order))
    data, facts = debug.payload_from_file(file, k)
    assert data == reference.pack([reference.choose(tile, k) for tile in u()], k)
    assert facts.length == len(data)
    assert facts.sha256 == hashlib.sha256(data).hexdigest()
    assert facts.payload_root == reference.payload_root(data).hex()


def test_files_of_payloads_become_the_reference_direction(tmp_path):
    plain = [[reference.choose(tile, 4) for tile in u(seed)] for seed in (1, 2)]
    files = [tmp_path / "a", tmp_path / "b"]
    for file, votes in zip(files, plain, strict=True):
        file.write_bytes(reference.pack(votes, 4))
    data, digest = debug.direction_from_files(files, 5, 4, PATH)
    assert data == reference.direction(plain, 5).tobytes()
    assert digest == hashlib.sha256(data).hexdigest()


def test_no_files_give_zeros():
    assert debug.direction_from_files([], 2, 8, PATH)[0] == bytes(2 * 4096)


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.zeros((2, 64, 64)), "float64"),
        (np.zeros((2, 64, 64), ">f4"), ">f4"),
        (np.zeros((2, 64, 63), np.float32), "63"),
        (np.zeros((64, 64), np.float32), "64, 64"),
        (np.zeros((0, 64, 64), np.float32), "none"),
        (np.array([object()]), "dtype"),
    ],
)
def test_arrays_that_are_not_tiles_are_refused(tmp_path, array, found):
    with pytest.raises(InputFileError, match=found):
        debug.payload_from_file(save(tmp_path, array), 8)


def test_files_that_are_not_arrays_are_refused(tmp_path):
    with pytest.raises(InputFileError, match=r"missing\.npy"):
        debug.payload_from_file(tmp_path / "missing.npy", 8)
    for content in (b"", b"hello", b"\x93NUMPY", save(tmp_path, u()).read_bytes()[:500]):
        (tmp_path / "bad.npy").write_bytes(content)
        with pytest.raises(InputFileError, match=r"bad\.npy"):
            debug.payload_from_file(tmp_path / "bad.npy", 8)
    np.savez(tmp_path / "many.npz", u=u())
    with pytest.raises(InputFileError, match="npz"):
        debug.payload_from_file(tmp_path / "many.npz", 8)
    with pytest.raises(InputFileError):
        debug.payload_from_file(tmp_path, 8)


def test_values_that_are_not_finite_are_refused(tmp_path):
    bad = u()
    bad[3, 0, 0] = np.nan
    with pytest.raises(NonFiniteError, match="tile 3"):
        debug.payload_from_file(save(tmp_path, bad), 8)


def test_bad_k_and_tile_counts_are_refused(tmp_path):
    with pytest.raises(UnsupportedKError):
        debug.payload_from_file(save(tmp_path, u()), 7)
    with pytest.raises(UnsupportedKError):
        debug.direction_from_files([], 5, 7, PATH)
    with pytest.raises(InputFileError):
        debug.direction_from_files([], 0, 8, PATH)


def test_payload_files_that_fail_the_checks_are_named(tmp_path):
    file = tmp_path / "p"
    with pytest.raises(InputFileError, match="p"):
        debug.direction_from_files([file], 5, 4, PATH)
    raw = bytearray(reference.pack([reference.choose(tile, 4) for tile in u()], 4))
    file.write_bytes(raw + b"\0")
    with pytest.raises(PayloadLengthError, match=str(file)):
        debug.direction_from_files([file], 5, 4, PATH)
    raw[-1] = 0x80
    file.write_bytes(raw)
    with pytest.raises(PaddingError, match=str(file)):
        debug.direction_from_files([file], 5, 4, PATH)
