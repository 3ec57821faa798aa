"""Data sets of the Hugging Face hub: the package, the network, the rows."""

import socket
import sys
import threading

import pytest

from troth_client.data.errors import DatasetsMissingError, SourceError
from troth_client.data.hugging_face import HuggingFaceSource, require_answer
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.tokens import ByteTokenizer

OPTIONS = PrepareOptions(sequence_tokens=31, shard_tokens=2048, validation_ppm=100_000)
PACKAGE = """
def load_dataset(name, config, split, revision, streaming):
    if split != "train":
        raise ValueError(f"Unknown split {split!r}")
    assert (config, revision, streaming) == (None, "r1", True)
    return ({"text": f"row {number} " * 30, "id": number} for number in range(100))
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A stand-in for the extra, which the tests do not install; returns a local data set."""
    (tmp_path / "datasets.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "datasets", raising=False)
    yield str(tmp_path)
    sys.modules.pop("datasets", None)


def test_without_the_package_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetsMissingError, match=r"Install it with: .*install .*\[data\]"):
        prepare(tmp_path / "out", HuggingFaceSource("a/b"), ByteTokenizer(), OPTIONS)


def test_a_data_set_is_streamed_row_by_row(tmp_path, package):
    source = HuggingFaceSource(package, revision="r1")
    manifest = prepare(tmp_path / "out", source, ByteTokenizer(), OPTIONS)
    assert manifest.num_sequences > 500
    bad = HuggingFaceSource(package, revision="r1", column="body")
    with pytest.raises(SourceError, match=r"'body'.*\['id', 'text'\]"):
        prepare(tmp_path / "other", bad, ByteTokenizer(), OPTIONS)


def test_what_the_library_refuses_is_named(tmp_path, package):
    source = HuggingFaceSource(package, split="tests", revision="r1")
    with pytest.raises(SourceError, match=r"Unknown split 'tests'.*--hf-split"):
        prepare(tmp_path / "out", source, ByteTokenizer(), OPTIONS)
    assert not (tmp_path / "out" / "manifest.json").exists()


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
