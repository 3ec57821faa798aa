"""`troth run init`: the shipped presets, in units that people use."""

import re
from pathlib import Path

import pytest
from support.starts import UNTIED, write_config

from troth_cli.presets import PRESETS, preset_text
from troth_client.compression.limits import payload_length
from troth_client.compression.tiles import TileLayout
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.config import JudgeSection
from troth_coordinator.rules.lateness import least_ring

CONFIGS = Path(__file__).parents[3] / "configs"
HASHES = {
    "localnet": "263b1d7d033d0191cbdbea3c732407b171ea0a553509103e2180ab6f4f00348d",
    "smoke": "d63d52e60680d95d6c6340a992f48ec94567a08b39e8e35e9f6e18bd25514ff4",
}
"""Config hashes with a manifest of zeros. The calibrations had the same values under version 2."""
SIZES = ("25m", "124m", "350m", "1b")
LINE_BITS = 60 * 10**6
SLOT_SECONDS = 0.4
FETCHING = re.compile(
    r"At (?P<mbit>\d+) Mbit/s the payloads of (?P<others>\d+) others take (?P<seconds>[\d.]+) s"
)
"""The comment of a size on its Attest phase."""
THREAD_FLOPS = 40e9
"""The speed of one thread in fp32: less than scripts/bench/sizes.py measured."""


def test_every_preset_is_a_calibrated_one_or_a_size():
    assert set(PRESETS) == {*HASHES, *SIZES}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_valid_deters_cheats_and_asks_for_a_calibration(cli, tmp_path, name):
    out = tmp_path / f"{name}.toml"
    cli.ok("run", "init", "--preset", name, "--out", out)
    assert out.read_text() == preset_text(name)
    advice = cli.json("run", "economics", "--config", out)
    assert advice["passes"] is True, advice["is_enough"]
    settings = load_config([out])
    assert settings.config.judge.calibrated is False
    assert settings.config.schedule.wd_nano == 10**8
    model = settings.config.model
    sides = {side for shape in trainable_shapes(model).values() for side in shape}
    assert {side % 64 for side in sides} == {0}, "no tile is partly empty"
    assert model.hidden_size // model.num_attention_heads == 64


@pytest.mark.parametrize("name", SIZES)
def test_the_windows_of_a_size_suffice_at_60_mbit(name):
    """Payloads of a full run, also to others; and a newcomer's weights before two checkpoints."""
    settings = load_config([CONFIGS / f"{name}.toml"])
    config, chain = settings.config, settings.chain
    layout = TileLayout.from_shapes(trainable_shapes(config.model))
    payloads = (chain.capacity - 1) * payload_length(layout.num_tiles, config.demo.k)
    assert 8 * payloads / LINE_BITS < 0.75 * chain.attest_slots * SLOT_SECONDS
    fetched = 8 * 4 * layout.num_parameters / LINE_BITS
    rounds = fetched / (chain.commit_slots * SLOT_SECONDS / 2)
    assert rounds < chain.checkpoint_every + least_ring(0)
    assert chain.ring >= least_ring(chain.checkpoint_every)
    tokens = config.train.sequences_per_payload * config.data.sequence_tokens
    juror = 6 * layout.num_parameters * tokens / THREAD_FLOPS
    assert 2 * juror < chain.jury_commit_slots * SLOT_SECONDS


@pytest.mark.parametrize("name", SIZES)
def test_a_size_says_how_long_a_full_run_fetches(name):
    settings = load_config([CONFIGS / f"{name}.toml"])
    (said,) = FETCHING.finditer(preset_text(name))
    others = settings.chain.capacity - 1
    layout = TileLayout.from_shapes(trainable_shapes(settings.config.model))
    payloads = others * payload_length(layout.num_tiles, settings.config.demo.k)
    assert int(said["mbit"]) * 10**6 == LINE_BITS
    assert int(said["others"]) == others
    assert said["seconds"] == f"{8 * payloads / LINE_BITS:.1f}"


@pytest.mark.parametrize("name", HASHES)
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
    assert error["expected"] == "localnet or smoke or 25m or 124m or 350m or 1b"
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
    assert config.has_given_start, "or troth calibrate would measure on drawn weights"
    assert config.schedule == preset.schedule
    assert config.data.sequence_tokens == UNTIED.max_position_embeddings, "not the preset's 128"
    assert config.judge == JudgeSection(), "bounds of another model are of no use"
    assert "--from base" in done.out
    assert "--tokenizer base/tokenizer.json" in done.out
    assert "troth calibrate --config base.toml --data data --start base" in done.out
    assert "troth calibrate --start DIR" in Path("base.toml").read_text()
    assert cli.refused("calibrate", "--config", "base.toml")["subject"] == "--start"


def test_a_folder_without_a_model_writes_nothing(cli, tmp_path):
    (tmp_path / "base").mkdir()
    error = cli.refused("run", "init", "--from", tmp_path / "base", "--out", tmp_path / "a.toml")
    assert error["kind"] == "ModelConfigError"
    assert not (tmp_path / "a.toml").exists()
