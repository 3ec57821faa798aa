"""Where the tests get solana-test-validator from: the variable TROTH_VALIDATOR, or PATH."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from troth_localnet.validator import BINARY_NAME

VARIABLE: Final = "TROTH_VALIDATOR"
GENTLE: Final = Path(__file__).with_suffix(".sh")


def validator_binary() -> Path:
    """The path of a script that starts the binary gently; skips the test if there is no binary.

    A variable that names no file fails the test: whoever sets it wants these tests to run.
    """
    named = os.environ.get(VARIABLE)
    if named:
        assert Path(named).is_file(), f"{VARIABLE} names no file: {named}"
    elif shutil.which(BINARY_NAME) is None:
        pytest.skip(f"{VARIABLE} is not set and {BINARY_NAME} is not on PATH")
    return GENTLE
