"""Fixtures of tests of the command line; a conftest takes them over by name.

Owns: one chain and one small data set for a file of tests, and a folder of keys for each test.
Never: creates a run. Next: network.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import Cli
from support.network import Bench, prepare_text, start
from troth_localnet.embedded import EmbeddedLauncher


@pytest.fixture(scope="module")
def network() -> Iterator[EmbeddedLauncher]:
    """A running chain with the shipped program."""
    launcher = start()
    yield launcher
    launcher.stop()


@pytest.fixture(scope="module")
def text_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small data set."""
    return prepare_text(tmp_path_factory.mktemp("data"))


@pytest.fixture
def bench(
    capsys: pytest.CaptureFixture[str], network: EmbeddedLauncher, tmp_path: Path, text_data: Path
) -> Bench:
    """The commands of one test, with keys and state folders of its own."""
    return Bench(Cli(capsys), network, tmp_path, text_data)


__all__ = ["bench", "network", "text_data"]
