"""Somebody who types what a page says into shells, in a folder of its own.

Owns: the shells, what they print, their end. Never: knows what a page says: see pages.py.
"""

import contextlib
import random
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from support.pages import filled

SECONDS = 300
PRESSES = 20
KEEPS_RUNNING = re.compile(r"troth (localnet up|join|witness|hub|dashboard|data serve)\b")


class Shell:
    """A command that keeps running, in a shell of its own."""

    def __init__(self, line: str, folder: Path, variables: Mapping[str, str], log: Path) -> None:
        self.line, self._log = line, log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=folder,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        """Press Ctrl-C until it ends, once a second; kill what is left."""
        for _ in range(PRESSES):  # two at once may arrive as one
            if self.process.poll() is not None:
                return
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
        self.process.kill()
        self.process.wait()


class Reader:
    """A context manager; leaving it stops every shell.

    `words` are replaced in every line.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder, self.variables = folder, dict(variables)
        self.words: dict[str, str] = {}
        self.shells: list[Shell] = []
        folder.mkdir(exist_ok=True)
        self._logs = folder.with_name(f"{folder.name}-logs")
        shutil.rmtree(self._logs, ignore_errors=True)
        self._logs.mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End all shells, the last one first."""
        for shell in reversed(self.shells):
            shell.stop()

    def types(self, line: str) -> str:
        """Type a line and return what it printed; what keeps running prints into its own shell."""
        line = filled(line, self.words)
        if line.startswith("export "):
            name, value = line.removeprefix("export ").split("=")
            self.variables[name] = value
            return ""
        if KEEPS_RUNNING.match(line):
            self.shells.append(Shell(line, self.folder, self.variables, self._next_log()))
            return ""
        done = self._run(line)
        assert done.returncode == 0, f"{line}: {done.stderr}\n{self.story()}"
        return done.stdout

    def is_refused(self, line: str) -> str:
        """Type a line that must fail with exit code 1; return the error."""
        done = self._run(filled(line, self.words))
        assert done.returncode == 1, f"{line}: {done.stdout}{done.stderr}"
        assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr, done.stderr
        return done.stderr

    def answer(self, line: str) -> str:
        """Type a line that may do something or be refused; return what it says either way."""
        done = self._run(filled(line, self.words))
        assert done.returncode in (0, 1), done.stderr
        return done.stdout + done.stderr

    def story(self) -> str:
        """The last lines of every shell that keeps running, for a test that fails."""
        return "\n".join(f"$ {shell.line}\n{shell.text[-1_500:]}" for shell in self.shells)

    def _run(self, line: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    def _next_log(self) -> Path:
        return self._logs / f"{len(self.shells)}.log"


def free_port(count: int = 2) -> int:
    """A port that is free together with those after it: a chain takes two.

    It is not one of those that the system gives to connections, of which other tests make many.
    """
    for _ in range(100):
        port = random.randrange(20_000, 32_000)
        if all(_is_free(port + offset) for offset in range(count)):
            return port
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
