"""The file for joiners says all that the creator's settings said, and the run's address."""

from pathlib import Path

import pytest

from troth_cli.errors import OutputFileError
from troth_cli.run_file import run_file_text, write_run_file
from troth_cli.settings import run_settings

CONFIGS = sorted((Path(__file__).parents[3] / "configs").glob("*.toml"))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_reading_it_gives_the_same_settings(tmp_path, config):
    settings = run_settings([config], ["hints.device=cpu", "chain.admission=allowlist"])
    bound = settings.model_copy(update={"config": settings.config.with_manifest(bytes(range(32)))})
    file = tmp_path / "run.toml"
    write_run_file(file, run_file_text("Address", bound))
    assert run_settings([file]) == bound
    assert run_settings([file]).config.config_hash() == bound.config.config_hash()


def test_it_fills_in_the_run_for_other_commands(cli, tmp_path):
    file = tmp_path / "run.toml"
    write_run_file(file, run_file_text("1" * 43, run_settings([])))
    error = cli.refused("status", "--config", file)
    assert error["subject"] == "RUN"
    assert error["found"] == repr("1" * 43)


def test_another_file_is_not_overwritten(tmp_path):
    file = tmp_path / "run.toml"
    write_run_file(file, "a = 1\n")
    write_run_file(file, "a = 1\n")
    with pytest.raises(OutputFileError):
        write_run_file(file, "a = 2\n")
    assert file.read_text() == "a = 1\n"
