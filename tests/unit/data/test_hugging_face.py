"""Data sets of the Hugging Face hub: the package, the network, the rows."""

import bz2
import gzip
import io
import lzma
import os
import socket
import sys
import threading
import zipfile
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.data_sets import kill_preparation

from troth_client.data.errors import DatasetsMissingError, SourceError
from troth_client.data.hugging_face import HuggingFaceSource, require_answer
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.tokens import ByteTokenizer

OPTIONS = PrepareOptions(sequence_tokens=31, shard_tokens=2048, validation_ppm=100_000)
TWO_SETS = """\
---
configs:
- config_name: en
  data_files: en.parquet
- config_name: de
  data_files:
  - {split: train, path: de.parquet}
  - {split: test, path: de-test.parquet}
---
"""


def texts(number, word="row"):
    return [f"{word} {at} " * 30 for at in range(number)]


def write(path, rows, column="text"):
    """A parquet file of several row groups, as the hub has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = list(range(len(rows)))
    pq.write_table(pa.table({"id": numbers, column: rows}), path, row_group_size=10)
    return path


@pytest.fixture
def folder(tmp_path):
    """A data set of two files, in a folder as `datasets` finds them."""
    first, second = texts(60), texts(40, "more")
    write(tmp_path / "set" / "data" / "train-00000-of-00002.parquet", first)
    write(tmp_path / "set" / "data" / "train-00001-of-00002.parquet", second)
    return tmp_path / "set"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The place in which the library would keep copies."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def refused(source, out):
    with pytest.raises(SourceError) as caught:
        prepare(out, source, ByteTokenizer(), OPTIONS)
    assert not (out / "manifest.json").exists()
    return str(caught.value)


def test_without_the_package_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetsMissingError, match=r"Install it with: .*install .*\[data\]"):
        prepare(tmp_path / "out", HuggingFaceSource("a/b"), ByteTokenizer(), OPTIONS)


def test_rows_become_documents_and_nothing_is_copied(tmp_path, folder, cache):
    manifest = prepare(tmp_path / "out", HuggingFaceSource(str(folder)), ByteTokenizer(), OPTIONS)
    with TokenData(tmp_path / "out", manifest) as train:
        first = bytes(train.sequences([0])[0].astype("u1"))
    assert texts(1)[0].encode().startswith(first)
    num_tokens = (manifest.num_sequences + manifest.num_validation_sequences) * 32
    total = sum(len(text) + 1 for text in [*texts(60), *texts(40, "more")])
    assert total - 64 < num_tokens <= total, "all rows of both files, less two unfinished sequences"
    assert not list(cache.rglob("*.arrow"))


def test_only_the_rows_that_are_asked_for_are_read(folder):
    """A file behind the first rows may be damaged: streaming has not come so far."""
    second = folder / "data" / "train-00001-of-00002.parquet"
    whole = second.read_bytes()
    second.write_bytes(b"PAR1" + bytes(len(whole) - 8) + b"PAR1")
    pieces = HuggingFaceSource(str(folder)).pieces()
    assert [one.text for one in islice(pieces, 60)] == [text.encode() for text in texts(60)]
    with pytest.raises(SourceError, match=str(folder)):
        next(pieces)


def test_a_killed_preparation_goes_on_and_gives_the_same_bytes(tmp_path, folder):
    source = HuggingFaceSource(str(folder))
    whole = prepare(tmp_path / "whole", source, ByteTokenizer(), OPTIONS)
    partial = kill_preparation(tmp_path / "again", source, 80, OPTIONS)  # in the second file
    shards = list(partial.glob("train-*.bin"))
    written = {path: path.stat().st_mtime_ns for path in shards}
    assert written
    assert prepare(tmp_path / "again", source, ByteTokenizer(), OPTIONS).hash == whole.hash
    kept = {tmp_path / "again" / path.name: time for path, time in written.items()}
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "whole shards stay"


def test_a_folder_that_changed_meanwhile_begins_anew(tmp_path, folder):
    source = HuggingFaceSource(str(folder))
    before = source.fingerprint
    write(folder / "data" / "train-00001-of-00002.parquet", texts(50, "more"))
    assert source.fingerprint != before
    assert HuggingFaceSource("a/b").fingerprint == HuggingFaceSource("a/b").fingerprint


def test_a_file_of_the_same_size_written_anew_begins_anew(folder):
    source = HuggingFaceSource(str(folder))
    before = source.fingerprint
    file = folder / "data" / "train-00001-of-00002.parquet"
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))
    assert source.fingerprint != before


def test_a_subset_a_split_and_a_column_are_chosen(tmp_path):
    write(tmp_path / "en.parquet", ["english"] * 3)
    write(tmp_path / "de.parquet", ["deutsch"] * 3, "satz")
    write(tmp_path / "de-test.parquet", ["probe"] * 2, "satz")
    (tmp_path / "README.md").write_text(TWO_SETS)
    german = HuggingFaceSource(str(tmp_path), "de", "test", "satz")
    assert [one.text for one in german.pieces()] == [b"probe"] * 2
    assert all(one.ends_document for one in german.pieces())


def test_json_lines_are_read_as_well(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    assert [one.text for one in HuggingFaceSource(str(tmp_path)).pieces()] == [b"one", b"two"]


def test_what_the_library_refuses_is_named(tmp_path, folder):
    text = refused(HuggingFaceSource(str(folder), split="tests"), tmp_path / "out")
    assert "Bad split: tests" in text
    assert "--hf-split" in text
    text = refused(HuggingFaceSource(str(folder), "fr"), tmp_path / "out")
    assert "'fr' not found" in text
    text = refused(HuggingFaceSource(str(folder), column="body"), tmp_path / "out")
    assert "columns ['id', 'text']. Name the column that holds the text with --hf-column" in text


def test_files_that_are_none_rows_without_text_and_empty_folders_are_named(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "doesn't contain any data files" in refused(
        HuggingFaceSource(str(empty)), tmp_path / "o"
    )
    file = write(tmp_path / "cut" / "train.parquet", texts(3))
    file.write_bytes(file.read_bytes()[:-10])
    assert "ArrowInvalid" in refused(HuggingFaceSource(str(file.parent)), tmp_path / "o")
    file = write(tmp_path / "null" / "train.parquet", ["a", None])
    text = refused(HuggingFaceSource(str(file.parent)), tmp_path / "o")
    assert "a row with NoneType there" in text
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "train.jsonl").write_text('{"text": "one"}\n{broken\n')
    assert "lines" in refused(HuggingFaceSource(str(tmp_path / "lines")), tmp_path / "o")


LINES = "".join(f'{{"text": "row {number}"}}\n' for number in range(20_000)).encode()


def cut(data):
    return data[: len(data) // 2]


def zipped(data):
    """The archive with one file, without its directory at the end."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as stream:
        stream.writestr("train.jsonl", data)
    return archive.getvalue()[:-80]


BROKEN = {
    "gz": ("train.jsonl.gz", cut(gzip.compress(LINES)), "EOFError"),
    "bz2": ("train.jsonl.bz2", cut(bz2.compress(LINES)), "EOFError"),
    "xz": ("train.jsonl.xz", cut(lzma.compress(LINES)), "EOFError"),
    "zip": ("train.zip", zipped(LINES), "BadZipFile"),
    "empty": ("train.jsonl", b"", ""),
    "yaml": ("README.md", b"---\nconfigs: [\n---\n", "ParserError"),
}


@pytest.mark.parametrize("kind", list(BROKEN))
def test_a_file_that_was_cut_off_or_is_none_is_named_and_may_be_repeated(tmp_path, kind):
    """A download broke off: each library below has an error of its own for it."""
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "other.jsonl").write_bytes(LINES[:20])
    name, data, found = BROKEN[kind]
    (tmp_path / "set" / name).write_bytes(data)
    text = refused(HuggingFaceSource(str(tmp_path / "set")), tmp_path / "out")
    assert found in text
    assert "or repeat the command: it goes on" in text


def test_files_of_different_columns_are_named(tmp_path):
    write(tmp_path / "set" / "train-0.parquet", ["a"] * 3)
    write(tmp_path / "set" / "train-1.parquet", [[1]] * 3)
    assert "TypeError" in refused(HuggingFaceSource(str(tmp_path / "set")), tmp_path / "out")


def test_too_little_memory_is_no_fault_of_the_data_set(folder, monkeypatch):
    def short(*_, **__):
        raise MemoryError("too little")

    monkeypatch.setattr("datasets.load_dataset", short)
    with pytest.raises(MemoryError, match="too little"):
        next(HuggingFaceSource(str(folder)).pieces())


def test_a_hub_that_refuses_or_stays_silent_is_named_soon():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(SourceError, match=r"Hugging Face hub .*(no answer|timed out).*--text"):
            require_answer(f"http://127.0.0.1:{port}", seconds=0.2)
    with pytest.raises(SourceError, match=r"refused"):
        require_answer(f"http://127.0.0.1:{port}")
    with pytest.raises(SourceError, match=r"Hugging Face hub"):
        require_answer("http://hub.invalid")


def test_a_hub_that_drips_an_answer_is_left_alone_soon():
    """Each byte comes in time, and the answer never ends; after 4 s it would."""
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                for _ in range(200):
                    if is_over.wait(0.02):
                        return
                    connection.sendall(b"a: b\r\n")
                connection.sendall(b"\r\n")

        dripping = threading.Thread(target=drip)
        dripping.start()
        with pytest.raises(SourceError, match=r"no answer in 0.3 s"):
            require_answer(f"http://127.0.0.1:{server.getsockname()[1]}", seconds=0.3)
        is_over.set()
        dripping.join()


def test_any_answer_will_do():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            connection.close()

        answering = threading.Thread(target=answer)
        answering.start()
        require_answer(f"http://127.0.0.1:{server.getsockname()[1]}")
        answering.join()
