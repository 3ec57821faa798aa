"""`troth calibrate --start DIR`: bounds of a run that is given weights are measured on these."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from support.starts import NORM, tensors_of, write_shards, write_start

from troth_client.calibration import ways as ways_of_machine
from troth_client.calibration.rehearsal import Rehearsal
from troth_client.calibration.ways import Way
from troth_client.checkpoint.start import read_start
from troth_client.model.device import CPU
from troth_client.model.export import WEIGHTS_FILE
from troth_coordinator.config_files import load_config

SMOKE = "configs/smoke.toml"
CONFIG = load_config([SMOKE]).config
MODEL = CONFIG.model
CALIBRATE = ("calibrate", "--config", SMOKE)
GIVEN = ("--set", "start.weights=given")
FEW = ("--rounds", "1", "--every", "1", "--draws", "1", "--trainers", "1")


@dataclass(frozen=True, slots=True)
class Seeing(Way):
    """A real way that notes the weights at which it computes."""

    seen: list[dict[str, bytes]] = field(default_factory=list)

    def coefficients(self, config, weights, batch):
        self.seen.append({name: one.numpy().tobytes() for name, one in weights.items()})
        return Way.coefficients(self, config, weights, batch)


@pytest.fixture
def seen(monkeypatch):
    """The weights of every gradient that the command computes, in two precisions."""
    found = []
    both = [Seeing("fp32", CPU, 1, 2, found), Seeing("bf16", CPU.other_precision(), 1, 2, found)]
    monkeypatch.setattr(ways_of_machine, "ways_here", lambda *_: both)
    return found


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    text = folder / "text.txt"
    text.write_bytes(b"".join(b"line %d of a text to learn from\n" % n for n in range(2_000)))
    return text, folder / "set"


@pytest.fixture
def data(cli, prepared):
    """The option that names a small data set of bytes."""
    text, folder = prepared
    if not folder.exists():
        cli.ok("data", "prepare", "--text", text, "--out", folder, "--config", SMOKE)
    return ("--data", folder)


def small(dtype=torch.float32):
    return {
        name: (value.float() * 0.02).to(dtype) for name, value in tensors_of(MODEL, dtype).items()
    }


@pytest.mark.parametrize("write", [write_start, write_shards])
def test_all_gradients_are_computed_at_the_weights_of_the_folder(cli, tmp_path, seen, data, write):
    base = tmp_path / "base"
    write(base, MODEL, small(torch.bfloat16))
    done = cli.ok(*CALIBRATE, *GIVEN, *FEW, *data, "--start", base)
    assert "BF16 became F32, exactly" in done.err
    assert "tied weights stay tied" in done.err
    wanted = {name: one.tobytes() for name, one in read_start(base, MODEL).weights.items()}
    assert len(seen) > 2
    assert all(weights == wanted for weights in seen)


def test_a_rehearsal_trains_from_given_weights_and_leaves_them_as_they_are(tmp_path):
    start = read_start(write_start(tmp_path, MODEL, small()), MODEL).weights
    before = {name: one.tobytes() for name, one in start.items()}
    run = Rehearsal(CONFIG.with_given_start(), 1, 0, start)
    assert {name: one.numpy().tobytes() for name, one in run.weights.items()} == before
    tiles = np.random.default_rng(3).normal(size=(run.layout.num_tiles, 64, 64))
    run.train(0, [np.float32(tiles)])
    assert any(one.numpy().tobytes() != before[name] for name, one in run.weights.items())
    assert {name: one.tobytes() for name, one in start.items()} == before


def test_given_weights_without_their_folder_are_not_measured_on_drawn_ones(cli, seen):
    error = cli.refused(*CALIBRATE, *GIVEN, *FEW)
    assert error["subject"] == "--start"
    assert "start.weights = given" in error["expected"]
    assert error["found"] == "none"
    assert error["next_step"].startswith("Name it")
    assert seen == []


def test_a_config_that_draws_its_weights_takes_no_folder(cli, tmp_path, seen):
    base = write_start(tmp_path / "base", MODEL, small())
    error = cli.refused(*CALIBRATE, *FEW, "--start", base)
    assert error["subject"] == "--start"
    assert error["found"] == str(base)
    assert "--set start.weights=given" in error["next_step"]
    assert seen == []


def cut_short(base):
    file = base / WEIGHTS_FILE
    file.write_bytes(file.read_bytes()[:-4])


def without_weights(base):
    (base / WEIGHTS_FILE).unlink()


def not_finite(base):
    write_start(base, MODEL, small() | {NORM: torch.full((MODEL.hidden_size,), float("nan"))})


def of_another_model(base):
    write_start(base)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (cut_short, "CheckpointFileError"),
        (without_weights, "CheckpointFileError"),
        (not_finite, "StartError"),
        (of_another_model, "StartError"),
    ],
)
def test_a_folder_that_is_damaged_is_refused_before_anything_is_measured(
    cli, tmp_path, seen, spoil, kind
):
    base = write_start(tmp_path / "base", MODEL, small())
    spoil(base)
    error = cli.refused(*CALIBRATE, *GIVEN, *FEW, "--start", base)
    assert error["kind"] == kind
    assert str(base) in error["expected"]
    assert error["next_step"]
    assert seen == []


def test_data_of_another_tokenizer_than_that_of_the_weights_is_noticed(cli, tmp_path, seen, data):
    base = write_start(tmp_path / "base", MODEL, small())
    command = (*CALIBRATE, *GIVEN, *FEW, *data, "--start", base)
    assert f"no {base / 'tokenizer.json'} to compare with" in cli.ok(*command).err
    (base / "tokenizer.json").write_text("{}")
    assert f"another tokenizer than {base / 'tokenizer.json'}" in cli.ok(*command).err
