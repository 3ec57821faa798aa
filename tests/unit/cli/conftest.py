import pytest
from support.cli import Cli


@pytest.fixture
def cli(capsys):
    return Cli(capsys)
