"""Where the tests get solana-test-validator from: the variable TROTH_VALIDATOR, or PATH."""

import atexit
import os
import shlex
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from troth_localnet.validator import BINARY_NAME

VARIABLE: Final = "TROTH_VALIDATOR"
GENTLE: Final = """#!/bin/sh
# An idle validator keeps more than a core busy. Linux shares the cores among sessions first and
# asks for the nice value within each, so the session of the validator gets one as well.
if [ -w /proc/self/autogroup ]; then
  echo 5 >/proc/self/autogroup || true
fi
exec nice -n 5 {binary} "$@"
"""


def validator_binary() -> Path:
    """The path of a script that starts the binary gently; skips the test if there is no binary.

    A variable that names no file fails the test: whoever sets it wants these tests to run.
    """
    named = os.environ.get(VARIABLE)
    if named:
        assert Path(named).is_file(), f"{VARIABLE} names no file: {named}"
    found = named or shutil.which(BINARY_NAME)
    if found is None:
        pytest.skip(f"{VARIABLE} is not set and {BINARY_NAME} is not on PATH")
    return _gentle(Path(found).resolve())


@cache
def _gentle(binary: Path) -> Path:
    """Write the script, which knows the binary without any variable; it goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix="troth-validator-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / BINARY_NAME
    script.write_text(GENTLE.format(binary=shlex.quote(str(binary))))
    script.chmod(0o755)
    return script
