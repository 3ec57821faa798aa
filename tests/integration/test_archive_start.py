"""An archive of a run from given weights holds them, and an audit takes them from it."""

import asyncio
from shutil import copytree

import numpy as np
import pytest
from support.archives import Archivist, RecordedRun
from support.cli import Cli
from support.runs import MODEL, NO_AUDITS, RunFactory

from troth_client.archive.check import check_archive
from troth_client.model.init import initial_weights
from troth_coordinator.rules.config import ModelSection

ROUNDS = 2


@pytest.fixture(scope="module")
def past(data, tmp_path_factory):
    """A short run from weights that no run's address gives, and its archive."""
    folder = tmp_path_factory.mktemp("given")

    async def play():
        factory = RunFactory(data, folder)
        drawn = initial_weights(b"g" * 32, ModelSection(**MODEL))
        factory.given = {name: (value * 3).astype(np.float32) for name, value in drawn.items()}
        run = await factory.create(ROUNDS, **NO_AUDITS)
        (folder / "run-0" / "ada" / "data").mkdir(parents=True)
        manifest = (data[0] / "manifest.json").read_bytes()
        (folder / "run-0" / "ada" / "data" / "manifest.json").write_bytes(manifest)
        for name in ("ada", "bob"):
            (await run.add(name)).has_start = name == "ada"
        for one in run.members:
            await run.start(one)
        archivist = Archivist(run, folder / "archive")
        async with archivist.at_work():
            await run.finish()
        await archivist.until_done()
        await factory.close()
        return RecordedRun(run, archivist.path)

    return asyncio.run(play())


@pytest.fixture
def cli(capsys, monkeypatch) -> Cli:
    """The command line, with no RPC node in the environment."""
    monkeypatch.delenv("TROTH_RPC", raising=False)
    return Cli(capsys)


def test_the_given_weights_are_archived_and_audited_from(past, cli):
    checked = check_archive(past.path)
    assert checked.problems == []
    assert checked.whole["pieces"] == 1
    assert checked.whole["piece"] > 5
    found = cli.json("audit", "--archive", past.path)
    assert found["conclusion"] == "good"
    assert found["counts"]["payloads"] == 2 * ROUNDS


@pytest.mark.parametrize("kind", ["piece", "pieces"])
@pytest.mark.parametrize("damage", ["gone", "flipped"])
async def test_a_piece_that_is_missing_or_damaged_is_named_and_fetched_again(
    past, tmp_path, kind, damage
):
    archivist = past.archivist(tmp_path / "out")
    await archivist.until_done()
    assert check_archive(archivist.path).is_whole
    name = sorted(archivist.kept(kind))[0]
    path = archivist.path / kind / name
    data = path.read_bytes()
    path.unlink()
    if damage == "flipped":
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    (problem,) = check_archive(archivist.path).problems
    assert problem.kind == kind
    assert problem.key == name
    assert problem.what.startswith("missing" if damage == "gone" else "damaged")
    if damage == "flipped" and kind == "piece":
        return  # like all bytes, they are looked at by their size alone at a start
    await past.archivist(archivist.path).until_done()
    assert check_archive(archivist.path).is_whole


async def test_members_that_send_other_pieces_are_passed_over(past, tmp_path):
    def flip(at, data):
        is_piece = at.startswith("piece")
        return bytes([data[0] ^ 1]) + data[1:] if is_piece else data

    archivist = past.archivist(tmp_path / "out", network=past.network(flip, "ada"))
    await archivist.until_done()
    assert check_archive(archivist.path).is_whole


def test_an_audit_without_the_given_weights_proves_nothing(past, tmp_path, cli):

    archive = copytree(past.path, tmp_path / "archive")
    sorted((archive / "piece").iterdir())[0].unlink()
    done = cli("audit", "--archive", archive, "--json")
    assert done.code == 2
    assert done.json["conclusion"] != "good"
