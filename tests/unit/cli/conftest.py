import pytest
from unit.cli.support import Cli


@pytest.fixture
def cli(capsys):
    return Cli(capsys)
