"""`troth profile`: what is refused before anything is measured."""

import contextlib
import importlib
import os

import pytest

from troth_cli.commands.profile import MODELS
from troth_client.model.shapes import num_parameters
from troth_coordinator.config_files import load_config
from troth_simulation.faults.namespaces import refusal

NOBODY = 65_534


@pytest.fixture(scope="module", autouse=True)
def measuring():
    """Load what measures, while we may read everything."""
    importlib.import_module("troth_simulation.profile.study")


def test_help_tells_the_model_from_the_one_of_that_name_in_the_benchmarks(cli):
    changes = {f"model.{name}": value for name, value in MODELS["6m"].items()}
    count = num_parameters(load_config((), changes).config.model)
    assert f"6m: {count:,} parameters" in " ".join(cli("profile", "--help").out.split())


@pytest.mark.parametrize(
    ("arguments", "subject", "found"),
    [
        (["--mbit", "0"], "--mbit", "0"),
        (["--mbit", "-5"], "--mbit", "-5"),
        (["--mbit", "10", "--mbit", "0"], "--mbit", "0"),
        (["--ranks", "1"], "--ranks", "1"),
        (["--method", "sgd"], "--method", "sgd"),
        (["--model", "70b"], "--model", "70b"),
        (["--adamw-lr", "0"], "--adamw-lr", "0.0"),
        (["--adamw-lr", "nan"], "--adamw-lr", "nan"),
        (["--inner-steps", "7"], "--inner-steps", "rounds of 7 steps"),
    ],
)
def test_an_option_that_makes_no_measurement_is_refused(cli, arguments, subject, found):
    error = cli.refused("profile", "--no-shaping", *arguments)
    assert error["kind"] == "InputError"
    assert error["subject"] == subject
    assert error["found"] == found
    assert error["next_step"]


def test_data_without_held_out_text_for_every_rank_is_refused(cli, tmp_path):
    (tmp_path / "text").mkdir()
    for number in range(9):
        (tmp_path / "text" / f"{number}.txt").write_text("Few words are soon told. " * 40)
    words = ("data", "prepare", "--text", tmp_path / "text", "--sequence-tokens", 64)
    prepared = cli.json(*words, "--out", tmp_path / "data")
    error = cli.refused(
        "profile",
        "--no-shaping",
        "--ranks",
        64,
        "--data",
        tmp_path / "data",
        "--set",
        "data.sequence_tokens=64",
    )
    assert error["subject"] == "--data"
    assert error["found"] == str(prepared["num_validation_sequences"])


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(cli, tmp_path):
    (tmp_path / "file").touch()
    error = cli.refused("profile", "--no-shaping", "--out", tmp_path / "file" / "folder")
    assert error["kind"] == "OutputFileError"
    assert error["found"] == "not a directory"


def test_a_folder_without_the_right_to_write_is_refused_before_the_work(cli, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    with as_nobody(tmp_path):
        error = cli.refused("profile", "--no-shaping", "--out", folder)
    assert error["kind"] == "OutputFileError"
    assert error["found"] == "permission denied"


def with_commands(monkeypatch, folder):
    """Put on PATH an `ip` and a `tc` that fail; Debian hides the true `tc` from plain users."""
    for name in ("ip", "tc"):
        command = folder / name
        command.write_text("#!/bin/sh\necho 'no such device type' >&2\nexit 2\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")


def test_without_root_the_command_says_so_and_offers_loopback(cli, monkeypatch, tmp_path):
    with_commands(monkeypatch, tmp_path)
    with as_nobody(tmp_path):
        user = os.geteuid()
        error = cli.refused("profile", "--mbit", "10")
    assert error["kind"] == "ShapingError"
    assert error["found"] == f"user {user}, who is not root"
    assert error["next_step"].endswith("measure on loopback without a bound: --no-shaping.")


def test_without_ip_and_tc_the_command_says_so(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    error = cli.refused("profile")
    assert error["kind"] == "ShapingError"
    assert error["found"] == "no command ip and no command tc"


def test_a_kernel_that_refuses_is_quoted(monkeypatch, tmp_path):
    if os.geteuid():
        pytest.skip("root gets as far as the kernel; others are refused before")
    with_commands(monkeypatch, tmp_path)
    assert "no such device type" in refusal()


@contextlib.contextmanager
def as_nobody(folder):
    """Inside the block this process has the rights of nobody, as far as files and root go."""
    user = os.geteuid()
    if user == 0:
        for one in (folder, *folder.parents):
            if one == folder or one.name.startswith(("pytest-", "popen-")):
                one.chmod(0o755)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
