"""The run whose files these tests fetch, keep and push."""

import pytest
from support.run_files import make_run


@pytest.fixture(scope="package")
def run(tmp_path_factory):
    """A run with its data set on disk; no test changes it."""
    return make_run(tmp_path_factory.mktemp("run") / "data")
