"""The packaged files: found, read, and named when something is wrong with them."""

import json

import pytest

from troth_coordinator import artifacts
from troth_coordinator.chain.errors import ArtifactError


def test_the_package_holds_the_program():
    image = artifacts.program_image()
    assert image[:4] == b"\x7fELF"
    assert artifacts.path(artifacts.PROGRAM_V0).read_bytes() == image
    assert artifacts.exists(artifacts.IDL)
    assert json.loads(artifacts.read_bytes(artifacts.LAYOUT)) == artifacts.read_json(
        artifacts.LAYOUT
    )


def test_a_file_that_is_not_there():
    assert not artifacts.exists("nothing.json")
    with pytest.raises(ArtifactError, match=r"nothing\.json: .* run `make program`"):
        artifacts.read_json("nothing.json")


@pytest.mark.parametrize(("content", "found"), [(b"[1]", "a JSON list"), (b"{", "not JSON")])
def test_a_file_that_was_altered(monkeypatch, content, found):
    monkeypatch.setattr(artifacts, "read_bytes", lambda name: content)
    with pytest.raises(ArtifactError, match=found):
        artifacts.read_json(artifacts.IDL)
