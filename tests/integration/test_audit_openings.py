"""Opening sets that an archive lacks: an audit says what it tested, and no more."""

import shutil
from pathlib import Path

import pytest
from support.archives import recorded
from support.cli import Cli
from support.forgeries import blobs
from support.recordings import audit_of
from support.runs import AUDITED

from troth_audit.replay.report import Conclusion
from troth_cli.view.audit_checks import checks_of


@pytest.fixture(scope="module")
def past(data, tmp_path_factory) -> Path:
    """The archive of a run with audits, and all of its opening sets."""
    with recorded(data, tmp_path_factory.mktemp("past"), 4, **AUDITED) as found:
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
    assert report.conclusion is Conclusion.GOOD  # an archive may keep them for some days only
    shown = cli.ok("audit", "--archive", archive).out
    line = next(one for one in shown.splitlines() if one.split()[:2] == ["openings", "0"])
    assert line.split(maxsplit=2)[2].strip() == f"not kept: {num}"
