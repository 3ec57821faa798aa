"""`troth run init`: the shipped presets, in units that people use."""

from pathlib import Path

import pytest
from support.starts import UNTIED, write_config

from troth_cli.presets import PRESETS, preset_text
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.config import JudgeSection

CONFIGS = Path(__file__).parents[3] / "configs"
HASHES = {
    "localnet": "263b1d7d033d0191cbdbea3c732407b171ea0a553509103e2180ab6f4f00348d",
    "smoke": "d63d52e60680d95d6c6340a992f48ec94567a08b39e8e35e9f6e18bd25514ff4",
}
"""Config hashes with a manifest of zeros. The calibrations had the same values under version 2."""


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_written_where_asked_and_says_what_it_always_said(cli, tmp_path, name):
    out = tmp_path / "mine.toml"
    assert cli.json("run", "init", "--preset", name, "--out", out)["config_file"] == str(out)
    assert out.read_text() == preset_text(name)
    config = load_config([out]).config.with_manifest(bytes(32))
    assert config.config_hash().hex() == HASHES[name]
    assert config.judge.calibrated


def test_the_file_has_the_presets_name_and_the_words_name_it(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli.ok("run", "init", "--preset", "localnet")
    assert "troth run create --config localnet.toml" in done.out
    text = Path("localnet.toml").read_text()
    for line in ("lr = 0.0015", 'min_stake = "0.1 SOL"', 'p_new = "100%"', 'case = "4 min"'):
        assert line in text


def test_a_file_that_was_changed_stays(cli, tmp_path):
    out = tmp_path / "mine.toml"
    cli.ok("run", "init", "--preset", "smoke", "--out", out)
    cli.ok("run", "init", "--preset", "smoke", "--out", out)
    out.write_text("[schedule]\nlr = 0.001\n")
    assert cli.refused("run", "init", "--preset", "smoke", "--out", out)["subject"] == str(out)
    assert out.read_text() == "[schedule]\nlr = 0.001\n"


def test_an_unknown_preset_is_refused_with_the_known_ones(cli, tmp_path):
    error = cli.refused("run", "init", "--preset", "large", "--out", tmp_path / "a.toml")
    assert error["expected"] == "localnet or smoke"
    assert not (tmp_path / "a.toml").exists()


def test_cases_of_a_local_chain_wait_for_people():
    assert load_config([CONFIGS / "localnet.toml"]).chain.case_slots >= 600


def test_the_configs_of_the_repository_are_the_presets():
    for name in PRESETS:
        assert (CONFIGS / f"{name}.toml").read_text() == preset_text(name)


def test_the_model_of_a_folder_takes_the_place_of_the_presets(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_config(tmp_path / "base", UNTIED)
    (tmp_path / "base" / "tokenizer.json").write_text("{}")
    done = cli.ok("run", "init", "--from", "base")
    config, preset = (load_config([one]).config for one in ("base.toml", CONFIGS / "localnet.toml"))
    assert config.model == UNTIED
    assert config.schedule == preset.schedule
    assert config.data.sequence_tokens == UNTIED.max_position_embeddings, "not the preset's 128"
    assert config.judge == JudgeSection(), "bounds of another model are of no use"
    assert "--from base" in done.out
    assert "--tokenizer base/tokenizer.json" in done.out


def test_a_folder_without_a_model_writes_nothing(cli, tmp_path):
    (tmp_path / "base").mkdir()
    error = cli.refused("run", "init", "--from", tmp_path / "base", "--out", tmp_path / "a.toml")
    assert error["kind"] == "ModelConfigError"
    assert not (tmp_path / "a.toml").exists()
