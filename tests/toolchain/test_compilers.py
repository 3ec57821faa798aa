"""Versions are checked before anything is built."""

from dataclasses import replace
from pathlib import Path

import pytest
from troth_toolchain import compilers, process
from troth_toolchain.compilers import Compilers
from troth_toolchain.errors import CommandError, CompilerError

FOUND = Compilers(
    rustc="rustc 1.96.0 (ac68faa20 2026-05-25)",
    cargo="cargo 1.96.0 (30a34c682 2026-05-25)",
    rustc_llvm="22.1.8",
    llvm="22.1.8",
    clang="22.1.8",
    sysroot=Path("/usr"),
)


def test_the_accepted_line_passes():
    compilers.check(FOUND)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rustc": "rustc 1.97.0 (x)"}, "expected rustc 1.96, found 'rustc 1.97.0"),
        ({"cargo": "cargo 1.95.0"}, "expected cargo 1.96"),
        ({"rustc_llvm": "23.0.0"}, "expected rustc's LLVM 22.x, found 23.0.0"),
        ({"llvm": "21.1.0"}, "expected llvm 22.x"),
        ({"clang": "21.1.0"}, "expected clang 22.x"),
    ],
)
def test_other_versions_are_refused_with_the_packages_to_install(change, message):
    with pytest.raises(CompilerError, match=message) as caught:
        compilers.check(replace(FOUND, **change))
    assert f"apt-get install {compilers.PACKAGES}" in str(caught.value)


def test_missing_compilers_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(compilers, "RUSTC", tmp_path / "rustc")
    with pytest.raises(CompilerError, match=r"rustc.*not found.*rustc-web") as caught:
        compilers.find()
    assert str(tmp_path) in str(caught.value)


def test_the_caller_cannot_steer_the_compilers(monkeypatch):
    for name in ("RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_PROFILE_RELEASE_LTO", "RUSTC"):
        monkeypatch.setenv(name, "bad")
    monkeypatch.setenv("PATH", "/home/me/.cargo/bin:/usr/bin")
    monkeypatch.setenv("https_proxy", "kept")
    environment = process.build_environment({"RUSTC_BOOTSTRAP": "1"})
    assert environment["PATH"] == "/usr/bin:/bin"
    assert environment["RUSTC"] == "/usr/bin/rustc"
    assert environment["https_proxy"] == "kept"
    assert "bad" not in environment.values()


def test_a_failing_command_shows_the_end_of_its_stderr():
    with pytest.raises(CommandError, match="status 3: why"):
        process.run(["/bin/sh", "-c", "echo why >&2; exit 3"])


def test_a_missing_command_is_a_normal_error():
    with pytest.raises(CommandError, match="expected the command /no/such"):
        process.run(["/no/such"])
