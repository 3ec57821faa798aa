"""The imports of a command before it answers, and an early Ctrl-C, in real processes."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from solders.keypair import Keypair
from support.cli import SECONDS, imported_by

from troth_cli.keyfiles import write_key

RUN = str(Keypair.from_seed(bytes(32)).pubkey())

INTERRUPTED = """
import os, signal, sys
from troth_cli.main import main

MOMENT = sys.argv.pop(1)

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == MOMENT:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.exit(main())
"""


def interrupted(module, *arguments):
    """A command line that gets Ctrl-C when it begins to import a module."""
    command = [sys.executable, "-c", INTERRUPTED, module, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)


@pytest.fixture
def files(tmp_path):
    write_key(tmp_path / "key", Keypair())
    (tmp_path / "bad.toml").write_text("[chain]\nno_such_key = 1\n")
    return tmp_path


JOIN = ("join", RUN, "--data", "no-data")
FURTHER = [
    (("--key", "key", "--config", "no.toml"), "no.toml"),
    (("--key", "key", "--role", "miner"), "--role"),
    (("--key", "key", "--listen", "nowhere"), "--listen"),
    (("--key", "key", "--listen", "none", "--endpoint", "http://a:1"), "nothing listens"),
    (("--key", "key", "--listen", "none"), "manifest"),
    (("--key", "key", "--endpoint", "ftp://x"), "ftp://"),
    (("--key", "key", "--device", "abacus"), "abacus"),
    (("--key", "key", "--session-sol", "much"), "--session-sol"),
]
AGAIN = pytest.mark.long(reason="the same command with another mistake")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("join", "--bad-flag"), "No such option"),
        ((*JOIN, "--key", "no-key"), "key file missing"),
        ((*JOIN, "--key", "key", "--config", "bad.toml"), "no_such_key"),
        *(pytest.param((*JOIN, *more), found, marks=AGAIN) for more, found in FURTHER),
        ((*JOIN, "--key", "key"), "no such file"),
        (("witness", RUN, "--data", "no-data", "--key", "no-key"), "key file missing"),
        (("checkpoint", "verify", "key"), "safetensors header"),
        (("checkpoint", "fetch", RUN, "--out", "x", "--from", "ftp://x"), "ftp://"),
        (("checkpoint", "export", RUN, "--out", "key"), "a new or empty folder"),
        (("demo", "--cheat", "kind"), "kind"),
        pytest.param(("demo", "--out", "key"), "a new or empty folder", marks=AGAIN),
    ],
)
def test_flags_and_files_are_checked_before_torch_is_imported(files, arguments, found):
    done, imported = imported_by(["torch"], *arguments, cwd=files)
    assert imported == set()
    assert done.code in (1, 2)
    assert found in done.err
    assert "Traceback" not in done.err
    assert "loading" not in done.err


LATER = pytest.mark.long(reason="the same at another moment")


@pytest.mark.parametrize(
    "module",
    [
        "typer",
        "troth_cli.commands.participation",
        "solders",
        *(pytest.param(n, marks=LATER) for n in ("troth_cli.options", "pydantic")),
        pytest.param("troth_cli.keyfiles", marks=LATER),
    ],
)
def test_ctrl_c_while_modules_are_imported_is_one_line(files, module):
    done = interrupted(module, *JOIN, "--key", files / "key")
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "interrupted\n"


@pytest.mark.parametrize(
    "module",
    [
        "troth_client.data.prepare",
        *(pytest.param(n, marks=LATER) for n in ("troth_cli.demo.summary", "rich.live")),
    ],
)
def test_ctrl_c_while_the_demo_loads_comes_after_a_word_and_is_one_line(files, module):
    done = interrupted(module, "demo", "--out", files / "demo")
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "loading…\ninterrupted\n"
    assert not (files / "demo").exists()


def test_the_demo_itself_needs_no_torch_before_its_summary():
    """Its participants do, in processes of their own; the demo starts seconds sooner."""
    script = "import sys, troth_cli.demo.runner; print('torch' in sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    assert done.stdout == "False\n"


def test_ctrl_c_in_a_network_command_is_one_line():
    done = interrupted("httpx", "status", RUN)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "interrupted\n"


def test_the_version_is_the_distributions():
    command = [sys.executable, "-m", "troth_cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    assert done.stdout == f"troth {version('troth')}\n"
