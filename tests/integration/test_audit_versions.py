"""An honest run of another version of troth is audited: nothing is proven, and the way out said."""

import json
import shutil
from pathlib import Path

import pytest
from support.cli import Cli
from support.forgeries import blobs, lines, reforge, rewrite, swapped
from support.recordings import audit_of, play, put

from troth_audit.replay.findings import Grade, Rule
from troth_client.run_files.fetch import parse_config
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.rules.hashing import H, var

WAY_OUT = "install the version of troth that plays this run"


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory) -> Path:
    """The archive of an honest run of two."""
    return play(data, tmp_path_factory.mktemp("recorded"), 2, ("ada", "bob"))


@pytest.fixture
def archive(recorded, tmp_path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(recorded, tmp_path / "archive"))


@pytest.fixture
def cli(capsys, monkeypatch) -> Cli:
    """The command line, with no RPC node in the environment."""
    monkeypatch.delenv("TROTH_RPC", raising=False)
    return Cli(capsys)


def with_event(folder: Path, old: str, new: str, grown: int = 0) -> None:
    """Give the first event of a name another one, or less of its bytes."""
    found = lines(folder)
    at = next(at for at, line in enumerate(found) if f'"{old}"'.encode() in line)
    told = json.loads(found[at])
    for event in told["events"]:
        if event[0] == old:
            event[:] = [new, event[1][: len(event[1]) - grown]]
            break
    found[at] = json.dumps(told).encode() + b"\n"
    rewrite(folder, found)


@pytest.mark.parametrize(
    ("old", "new", "cut"),
    [
        ("RoundSettled", "RoundSettledAnew", 0),
        ("RunCreated", "RunCreatedAnew", 0),
        ("RoundSettled", "RoundSettled", 8),
    ],
)
def test_an_event_of_another_version_proves_nothing(cli, archive, old, new, cut):
    """Its name is unknown, or it has other fields than ours."""
    with_event(archive, old, new, cut)
    done = cli("audit", "--archive", archive, "--json")
    assert done.code == 2
    assert {one["grade"] for one in done.json["findings"]} == {"missing"}
    assert any(WAY_OUT in one["found"] for one in done.json["findings"])
    shown = cli("audit", "--archive", archive).out
    assert "contradicts" not in shown
    assert "proven" not in shown
    assert shown.splitlines()[-1].startswith("INCOMPLETE: nothing wrong was found")


def test_a_ledger_that_does_not_fold_is_still_proven_to_be_wrong(archive):
    found = lines(archive)
    rewrite(archive, [*found, found[-1]])
    assert [one.grade for one in audit_of(archive).findings] == [Grade.DISCREPANCY]


def name_instead(folder: Path, kind: str, data: bytes) -> bytes:
    """Let the run be created with another file; all hashes fit. Return the new hash."""
    key = H(f"troth:{kind}", var(data))
    put(folder, kind, key.hex(), data)

    def edit(event: object) -> bytes | None:
        if not isinstance(event, RunCreated):
            return None
        return swapped(event, getattr(event, f"{kind}_hash"), key)

    reforge(folder, edit)
    return key


@pytest.mark.parametrize("kind", ["config", "manifest"])
def test_a_file_that_only_another_version_reads_proves_nothing(archive, kind):
    """The run was created with a field that this version does not know."""
    (path,), (config,) = blobs(archive, kind), blobs(archive, "config")
    told = json.loads(path.read_text()) | {"of_later": 1}
    key = name_instead(archive, kind, json.dumps(told).encode())
    if kind == "manifest":
        ours = parse_config(config.read_bytes()).with_manifest(key)
        name_instead(archive, "config", ours.canonical_json())
    (archive / "chain.json").unlink()
    (found,) = (one for one in audit_of(archive).findings if one.rule is not Rule.RUN_ACCOUNT)
    assert found.grade is Grade.MISSING
    assert found.rule is Rule(kind)
    assert WAY_OUT in found.found
