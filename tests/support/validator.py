"""Where the tests get solana-test-validator from: the variable TROTH_VALIDATOR, or PATH."""

import os
import shutil
from pathlib import Path

import pytest

from troth_localnet.validator import BINARY_NAME

VARIABLE = "TROTH_VALIDATOR"


def validator_binary() -> Path:
    """The path of the binary; skips the test if there is none.

    A variable that names no file fails the test: whoever sets it wants these tests to run.
    """
    named = os.environ.get(VARIABLE)
    if named:
        assert Path(named).is_file(), f"{VARIABLE} names no file: {named}"
        return Path(named)
    found = shutil.which(BINARY_NAME)
    if found is None:
        pytest.skip(f"{VARIABLE} is not set and {BINARY_NAME} is not on PATH")
    return Path(found)
