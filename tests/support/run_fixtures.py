"""Fixtures of whole runs in one process; a conftest takes them over by name.

Owns: a small data set of real text, and the factory that ends every run when its test ends.
Never: says what a run must show. Next: runs.py.
"""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import torch

from support.runs import RunFactory
from troth_client.data.manifest import Manifest
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer

WORDS = ("slot", "round", "peer", "root", "vote", "stake", "seed", "tile", "holds", "gives", "not")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Gradients of a few milliseconds gain nothing from threads, and lose their order."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    """Folder and manifest of some hundred sequences of 16 byte tokens."""
    folder = tmp_path_factory.mktemp("data")
    draw = random.Random(7)
    for number in range(40):
        text = " ".join(draw.choice(WORDS) for _ in range(100))
        (folder / f"text-{number:02d}.txt").write_text(text)
    shape = PrepareOptions(sequence_tokens=16, validation_ppm=100_000)
    manifest = prepare(folder / "out", text_source([folder]), ByteTokenizer(), shape)
    return folder / "out", manifest


@pytest.fixture
async def run_factory(data: tuple[Path, Manifest], tmp_path: Path) -> AsyncIterator[RunFactory]:
    """Makes runs; members that still run are stopped when the test ends."""
    made = RunFactory(data, tmp_path)
    yield made
    await made.close()


__all__ = ["data", "one_thread", "run_factory"]
