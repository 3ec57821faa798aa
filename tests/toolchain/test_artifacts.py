"""The shipped files against their sources: said without compilers, refused when out of date."""

import hashlib
import json

import pytest
from troth_toolchain import artifacts, cli, compilers, crate
from troth_toolchain.errors import ArtifactError, CompilerError

VERSIONS = {"rustc": "rustc 1.96.0"}


@pytest.fixture
def shipped(tmp_path):
    """A crate and matching shipped files, as `make program` leaves them."""
    directory = tmp_path / "work/programs/one"
    (directory / "src").mkdir(parents=True)
    (directory / "src/lib.rs").write_text("// one\n")
    (directory / "Cargo.toml").write_text('[package]\nname = "one-two"\n')
    (tmp_path / "work/Cargo.toml").write_text('[workspace]\nmembers = ["programs/one"]\n')
    (tmp_path / "work/Cargo.lock").write_text("version = 4\n")
    destination = tmp_path / "artifacts"
    destination.mkdir()
    (destination / artifacts.IMAGE).write_bytes(b"image")
    described = crate.describe_without_cargo(directory)
    info = {
        "compilers": VERSIONS,
        "cargo_lock_sha256": hashlib.sha256(described.lock_file.read_bytes()).hexdigest(),
        "sources_sha256": artifacts.source_hash(described),
        "files": {artifacts.IMAGE: {"bytes": 5, "sha256": hashlib.sha256(b"image").hexdigest()}},
    }
    (destination / artifacts.BUILD_INFO).write_text(json.dumps(info))
    return directory, destination


@pytest.fixture
def no_compilers(monkeypatch):
    def missing():
        raise CompilerError("expected /usr/bin/rustc; not found. Install Debian's packages")

    monkeypatch.setattr(compilers, "find", missing)


def check(shipped, tmp_path):
    directory, destination = shipped
    return artifacts.check(directory, destination, tmp_path / "cache")


def test_a_workspace_member_is_described_without_cargo(shipped):
    described = crate.describe_without_cargo(shipped[0])
    assert described.library == "one_two"
    assert described.workspace == shipped[0].parents[1]


@pytest.mark.usefixtures("no_compilers")
def test_without_compilers_the_hashes_are_compared_and_the_reason_is_said(shipped, tmp_path):
    outcome = check(shipped, tmp_path)
    assert outcome.is_acceptable
    assert "not rebuilt" in outcome.message
    assert "Install Debian's packages" in outcome.message


def test_other_compilers_are_said_and_accepted(shipped, tmp_path, monkeypatch):
    found = compilers.Compilers("rustc 1.96.1", "c", "22", "22", "22", tmp_path)
    monkeypatch.setattr(compilers, "find", lambda: found)
    outcome = check(shipped, tmp_path)
    assert outcome.is_acceptable
    assert "rustc 1.96.0" in outcome.message
    assert "rustc 1.96.1" in outcome.message


@pytest.mark.usefixtures("no_compilers")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("work/programs/one/src/lib.rs", "sources: built from"),
        ("work/programs/one/src/new.rs", "sources: built from"),
        ("work/programs/one/examples/export_layout.rs", "sources: built from"),
        ("work/Cargo.toml", "sources: built from"),
        ("work/Cargo.lock", "Cargo.lock: built from"),
        (f"artifacts/{artifacts.IMAGE}", f"{artifacts.IMAGE}: expected sha256"),
    ],
)
def test_a_change_of_any_input_or_file_fails_even_without_compilers(shipped, tmp_path, name, what):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as handle:
        handle.write("[workspace.package]\n" if name.endswith(".toml") else "changed")
    outcome = check(shipped, tmp_path)
    assert not outcome.is_acceptable
    assert what in outcome.message
    assert "run `make program`" in outcome.message


@pytest.mark.usefixtures("no_compilers")
def test_exit_codes_of_the_command(shipped, tmp_path, capsys):
    directory, destination = shipped
    words = ["check", "--crate", str(directory), "--artifacts", str(destination)]
    assert cli.main(words) == 0
    (destination / artifacts.IMAGE).unlink()
    assert cli.main(words) == 1
    assert "found no file" in capsys.readouterr().out
    (destination / artifacts.BUILD_INFO).unlink()
    assert cli.main(words) == 1
    assert "run `make program`" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"compilers": {}, "files": []}'])
def test_damaged_build_information_is_named(shipped, tmp_path, text):
    (shipped[1] / artifacts.BUILD_INFO).write_text(text)
    with pytest.raises(ArtifactError, match=r"build-info.json.*run `make program`"):
        check(shipped, tmp_path)


def test_a_directory_without_a_crate_is_named(tmp_path):
    with pytest.raises(ArtifactError, match="expected a program crate"):
        crate.describe_without_cargo(tmp_path)


def test_the_shipped_image_is_within_its_budget():
    options = cli.parse(["check"])
    image = options.artifacts / artifacts.IMAGE
    assert image.stat().st_size <= artifacts.MAX_IMAGE_BYTES
