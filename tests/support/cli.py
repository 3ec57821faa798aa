"""Runs the command line inside the test's process, or as a child of it.

Owns: arguments in, exit code and output out. Never: a chain; see network.py.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from troth_cli.main import run

SECONDS = 60
IMPORTS = """
import json, sys
from troth_cli.main import run
code = run(sys.argv[2:])
print(json.dumps([name for name in json.loads(sys.argv[1]) if name in sys.modules]))
sys.exit(code)
"""


@dataclass(frozen=True)
class Done:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The one error object, the last line of stderr with --json."""
        found: dict[str, Any] = json.loads(self.err.splitlines()[-1])["error"]
        return found


class Cli:
    """`cli("keys", "new", path)` -> Done; `cli.ok(...)` insists on exit code 0."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Done:
        self._capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Done(code, captured.out, captured.err)

    def ok(self, *arguments: object) -> Done:
        done = self(*arguments)
        assert done.code == 0, done.err
        return done

    def json(self, *arguments: object) -> Any:
        return self.ok(*arguments, "--json").json

    def refused(self, *arguments: object, code: int = 1) -> dict[str, Any]:
        """The error object of a command that must fail; stdout stays empty."""
        done = self(*arguments, "--json")
        assert done.code == code, done
        assert done.out == ""
        return done.error


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line as a child process, output as text."""
    command = [sys.executable, "-m", "troth_cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def imported_by(
    modules: Iterable[str], *arguments: object, **options: Any
) -> tuple[Done, set[str]]:
    """A command line as a child process, and which of these modules it had imported at its end."""
    command = [sys.executable, "-c", IMPORTS, json.dumps(list(modules)), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS, **options
    )
    *out, last = done.stdout.splitlines(keepends=True)
    return Done(done.returncode, "".join(out), done.stderr), set(json.loads(last))
