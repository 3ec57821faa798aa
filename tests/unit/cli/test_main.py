"""Exit codes, what an error looks like, and that --help stays fast."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from support.cli import process

from troth_cli import main as entry
from troth_cli.app import MODULES, build
from troth_cli.tree import leaves

# Not pydantic: recent releases of typer import it themselves.
SLOW = ("torch", "solana", "anchorpy", "solders", "numpy", "rich", "aiohttp", "transformers")
COMMANDS = dict(leaves(build(), ""))


@pytest.mark.parametrize("arguments", [["--help"], ["join", "--help"], ["run", "create", "--help"]])
def test_help_imports_nothing_that_takes_time(arguments):
    code = (
        "import sys; from troth_cli.main import run;"
        f"assert run({arguments!r}) == 0;"
        f"sys.stderr.write(' '.join(name for name in {SLOW!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("Usage: troth")


@pytest.mark.parametrize("words", sorted(COMMANDS), ids=str.strip)
def test_every_command_explains_itself_and_has_json_config_and_debug(cli, words):
    done = cli.ok(*words.split(), "--help")
    assert {"json", "config", "debug"} <= {param.name for param in COMMANDS[words].params}
    assert len(COMMANDS[words].help) > 20
    for param in COMMANDS[words].params:
        assert getattr(param, "help", None), (words, param.name)
        assert param.param_type_name == "argument" or param.opts[0] in done.out


@pytest.mark.parametrize("module", sorted(set(MODULES.values())))
def test_to_register_a_command_again_adds_nothing_to_it(module):
    def parts():
        app = typer.Typer()
        import_module(f"troth_cli.commands.{module}").register(app)
        groups = [one.typer_instance for one in app.registered_groups]
        return [part.name for one in (app, *groups) for part in one.registered_commands]

    first = parts()
    assert parts() == first


def test_the_issue_names_these_commands():
    wanted = """demo; join; status; leave; withdraw; claim; localnet up; data prepare; keys new;
    keys show; run create; run show; run fund; run pause; run resume; debug payload; debug apply"""
    assert {word.strip() for word in wanted.split(";")} <= {path.strip() for path in COMMANDS}


@pytest.mark.parametrize("arguments", [[], ["run"], ["keys"]])
def test_without_a_command_the_help_appears(cli, arguments):
    done = cli(*arguments)
    assert done.code == 2
    assert "Commands:" in done.err


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["joinn"], "No such command 'joinn'"),
        (["keys", "new"], "FILE"),
        (["keys", "new", "x", "--jsn"], "No such option: --jsn"),
        (["localnet", "up", "--port", "many", "--json"], "integer"),
        (["localnet", "up", "some/binary"], "--validator"),
        (["data", "prepare", "--out", "d"], "one source"),
        (["data", "prepare", "--out", "d", "--stdlib", "--hf", "x"], "one source"),
        (["data", "prepare", "--out", "d", "--stdlib", "more.txt"], "--text"),
    ],
)
def test_what_is_not_understood_is_exit_code_2(cli, arguments, found):
    error = cli.refused(*arguments, code=2)
    assert error["kind"] == "UsageError"
    assert found in error["found"]
    assert error["next_step"].endswith("--help")


def test_an_error_for_people_has_four_lines(cli, tmp_path):
    done = cli("keys", "show", tmp_path / "none")
    assert done.code == 1
    first, expected, found, following = done.err.splitlines()
    assert first == f"error: key file missing: {tmp_path / 'none'}"
    assert expected.split() == ["expected", "a", "key", "file"]
    assert found.split(maxsplit=1) == ["found", "no such file or directory"]
    assert f"troth keys new {tmp_path / 'none'}" in following


def test_an_unforeseen_error_is_short_and_its_traceback_lies_in_a_file(cli, monkeypatch):
    def broken():
        raise LookupError("nobody thought of this")

    monkeypatch.setattr("troth_cli.view.amounts.address", broken)
    monkeypatch.setattr("troth_cli.commands.status.address_of_run", broken)
    error = cli.refused("status", "x")
    assert error["kind"] == "TypeError"
    assert error["found"][:6] == "test_a"
    path = Path(error["next_step"].rpartition(" ")[2])
    try:
        assert "Traceback" in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
    finally:
        path.unlink()
    done = cli("status", "x", "--debug")
    assert "Traceback" in done.err
    Path(done.err.rpartition(" ")[2].strip()).unlink()


def test_a_known_error_shows_its_traceback_only_with_debug(cli, tmp_path):
    assert "Traceback" not in cli("keys", "show", tmp_path / "none").err
    assert "Traceback" in cli("keys", "show", tmp_path / "none", "--debug").err


def test_a_file_that_cannot_be_used_is_named(cli, tmp_path):
    (tmp_path / "file").write_text("")
    error = cli.refused("keys", "new", tmp_path / "file" / "below")
    assert error["subject"] == str(tmp_path / "file")


def test_a_file_that_ends_too_soon_is_a_failure_and_no_interruption(cli, monkeypatch, tmp_path):
    """typer takes an EOFError of a command for Ctrl-D."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # its traceback is written there

    def ended(*_):
        raise EOFError("Compressed file ended before the end-of-stream marker was reached")

    monkeypatch.setattr("troth_cli.keyfiles.read_key", ended)
    done = cli("keys", "show", "any.json")
    assert done.code == 1
    assert "interrupted" not in done.err
    assert "Compressed file ended before the end-of-stream marker was reached" in done.err


def test_ctrl_c_is_130(cli, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("troth_cli.keyfiles.read_key", interrupted)
    done = cli("keys", "show", "x")
    assert done.code == 130
    assert done.err == "interrupted\n"


def test_a_reader_that_went_away_is_no_traceback(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "troth_cli", "keys", "new", str(tmp_path / "k")]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == ""


def test_the_process_ends_with_the_exit_code_and_one_json_object(tmp_path):
    done = process("keys", "new", tmp_path / "key", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert set(json.loads(done.stdout)) == {"address", "file"}
    done = process("keys", "new", tmp_path / "key", "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert json.loads(done.stderr)["error"]["kind"] == "KeyFileExistsError"
    assert process("keys", "neww").returncode == entry.NOT_UNDERSTOOD
