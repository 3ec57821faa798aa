"""Fixtures of the toolchain's tests.

The package lies beside the programs and is not installed. Tests that compile ask for
`packaged_compilers` and are skipped, with the reason, where Debian's compilers are missing.
"""

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "programs/toolchain"))

from troth_toolchain import cache, compilers  # noqa: E402
from troth_toolchain.errors import CompilerError  # noqa: E402


@pytest.fixture(scope="session")
def packaged_compilers():
    try:
        return compilers.find()
    except CompilerError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cache_directory():
    return cache.default_directory()
