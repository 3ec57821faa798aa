from types import SimpleNamespace

import pytest
from support.cli import Cli


@pytest.fixture
def cli(capsys):
    return Cli(capsys)


@pytest.fixture
def asked(monkeypatch):
    """The requests of `join` and `witness` that reach the workflow, which ends there."""
    found = []

    def note(request, output):
        del output
        found.append(request)
        return SimpleNamespace(rows=[], end=None)

    monkeypatch.setattr("troth_cli.workflows.join.join", note)
    return found
