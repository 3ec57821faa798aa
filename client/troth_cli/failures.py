"""Errors of every tree as three or four lines, or as one JSON object.

Owns: the form of a failure, and the file for the traceback of an unexpected one.
Never: catches anything; `main.py` does, and passes the error here.
Next: `errors.py` of each package, whose classes carry expected, found and next step.
"""

import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from troth_cli.refusals import STEPS
from troth_client.runtime.files import FULL_DISK
from troth_client.runtime.installed import install_command
from troth_client.telemetry.printable import one_line, printable
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.errors import TrothError

_OPTIONAL: Final = {
    "torch": "train",
    "safetensors": "train",
    "tokenizers": "train",
    "matplotlib": "plot",
    "tensorboardX": "tensorboard",
}
"""Packages that only some commands need, and the extra that brings them."""
CONTINUED: Final = "\n" + " " * 12
"""Further lines of one part of an error stand below its text."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as users read it. `kind`: the error's class name. `extra`: for the JSON only."""

    kind: str
    subject: str
    expected: str
    found: str
    next_step: str
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The kind in words, and its subject."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", self.kind.removesuffix("Error")).lower()
        return f"{words}: {self.subject}" if self.subject else words


def explain(error: BaseException) -> Failure | None:
    """Return the failure of a known error, None for an error that nobody foresaw."""
    if isinstance(error, TrothError):
        parts = (error.subject, error.expected, error.found, error.next_step)
        subject, expected, found, next_step = (part.strip() for part in parts)
        extra = {
            name: _plain(getattr(error, name))
            for name in ("name", "code", "logs", "checks")
            if getattr(error, name, None)
        }
        if isinstance(error, ProgramRefusedError):
            next_step = STEPS.get(error.name, next_step)
        return Failure(type(error).__name__, subject, expected, found, next_step, extra)
    if isinstance(error, ModuleNotFoundError) and error.name in _OPTIONAL:
        return Failure(
            "PackageMissingError",
            error.name,
            f"the package `{error.name}`",
            "it is not installed",
            f"install it with: {install_command(_OPTIONAL[error.name])}",
        )
    if isinstance(error, OSError) and error.errno in FULL_DISK:
        return Failure(
            "DiskFullError",
            "" if error.filename is None else str(error.filename),
            "room for what is written",
            (error.strerror or str(error)).lower(),
            "free some space, or lift the limit on the size of files (ulimit -f); then repeat it",
        )
    if isinstance(error, OSError) and error.filename is not None:
        return Failure(
            "FileError",
            str(error.filename),
            "a file or folder that can be used",
            (error.strerror or str(error)).lower(),
            "check the path and its permissions",
        )
    return None


def unforeseen(error: BaseException) -> Failure:
    """Return the failure of an error that nobody foresaw; its traceback goes to a file."""
    return Failure(
        type(error).__name__,
        "",
        "no such error",
        str(error).strip() or "no message",
        f"please report it with the traceback in {write_traceback(error)}",
    )


def write_traceback(error: BaseException) -> Path:
    """Write the traceback to a new private file in the temporary folder and return its path."""
    handle, name = tempfile.mkstemp(prefix="troth-error-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(f"troth {' '.join(sys.argv[1:])}\n")
        traceback.print_exception(error, file=stream)
    return Path(name)


def report(error: BaseException, stream: TextIO, *, is_json: bool, is_debug: bool) -> None:
    """Print any error as a failure; `is_debug` prints its traceback before."""
    if is_debug:
        stream.write(printable("".join(traceback.format_exception(error))))
    show(explain(error) or unforeseen(error), stream, is_json=is_json)


def show(failure: Failure, stream: TextIO, *, is_json: bool) -> None:
    """Print a failure: lines for people, or one JSON object with the key `error`."""
    if is_json:
        record = {
            "kind": failure.kind,
            "subject": failure.subject,
            "expected": failure.expected,
            "found": failure.found,
            "next_step": failure.next_step,
            **failure.extra,
        }
        stream.write(json.dumps({"error": record}) + "\n")
        return
    lines = [f"error: {one_line(failure.headline)}"]
    for label, text in (
        ("expected", failure.expected),
        ("found", failure.found),
        ("next", failure.next_step),
    ):
        if text:
            # A line of somebody else's text must not pass for one of these four.
            lines.append(f"  {label:<9} {text.replace(chr(10), CONTINUED)}")
    stream.write(printable("\n".join(lines)) + "\n")


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
