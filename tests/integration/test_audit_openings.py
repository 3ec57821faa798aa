"""Opening sets that an archive lacks, or has wrong: an audit says what it tested, and no more."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.archives import recorded
from support.cli import Cli
from support.forgeries import blobs, flip
from support.recordings import audit_of
from support.runs import AUDITED

from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Verdict
from troth_cli.view.audit_checks import checks_of
from troth_coordinator.chain.event_types_audits import OpeningsPosted
from troth_coordinator.ledger.file import Ledger


@pytest.fixture(scope="module")
def past(data, tmp_path_factory) -> Path:
    """The archive of a run with audits, and all of its opening sets."""
    with recorded(data, tmp_path_factory.mktemp("past"), 5, **AUDITED) as found:
        yield found.path


@pytest.fixture
def archive(past, tmp_path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(past, tmp_path / "archive"))


@pytest.fixture
def cli(capsys, monkeypatch) -> Cli:
    """The command line, with no RPC node in the environment."""
    monkeypatch.delenv("TROTH_RPC", raising=False)
    return Cli(capsys)


def row(report) -> str:
    """Return the line of the report about opening sets: how many were checked, and the result."""
    (found,) = (one for one in checks_of(report) if one.name == "openings")
    return f"{found.num_checked} {found.result}"


def test_opening_sets_that_nobody_keeps_are_not_said_to_pass(archive, cli):
    whole = audit_of(archive)
    num = whole.counts["exact_tests"]
    assert row(whole) == f"{num} pass"
    blobs(archive, "openings")[0].unlink()
    assert row(audit_of(archive)) == f"{num - 1} pass, not kept: 1"
    shutil.rmtree(archive / "openings")
    report = audit_of(archive)
    assert row(report) == f"0 not kept: {num}"
    assert report.verdict is Verdict.GOOD  # an archive may keep them for some days only
    shown = cli.ok("audit", "--archive", archive).out
    line = next(one for one in shown.splitlines() if one.split()[:2] == ["openings", "0"])
    assert line.split(maxsplit=2)[2].strip() == f"not kept: {num}"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def replace(path: Path) -> None:
    others = [one for one in path.parent.iterdir() if one != path]
    path.write_bytes(others[0].read_bytes())


FORGED: dict[str, Callable[[Path], object]] = {
    "flipped": lambda path: flip(path, 9),
    "cut": cut,
    "of another audit": replace,
    "empty": lambda path: path.write_bytes(b""),
    "too long": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("at", [0, -1])
def test_a_forged_opening_set_is_named_with_its_round_and_participant(archive, name, at):
    path = blobs(archive, "openings")[at]
    (posted,) = (one for one in posted_in(archive) if one.root.hex() == path.name)
    FORGED[name](path)
    (found,) = audit_of(archive).findings
    assert found.grade is Grade.DISCREPANCY
    assert found.rule is Rule.OPENINGS
    assert found.round == posted.round
    assert found.participant == posted.target
    assert found.expected == f"openings {path.name}"
    assert found.found


def posted_in(folder: Path) -> list[OpeningsPosted]:
    """The roots of opening sets that the ledger tells of."""
    ledger = Ledger.of(folder / "ledger.jsonl")
    events = (one for entry in ledger.entries() for one in ledger.head.reader().events(entry))
    return [one for one in events if isinstance(one, OpeningsPosted)]
