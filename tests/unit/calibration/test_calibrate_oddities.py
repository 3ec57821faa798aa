"""Calibration of what cannot be calibrated: one tile, twelve, no gradient, no number."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pytest
from support.trainers import CONFIG, TOKENS

from troth_attestation.verdict import Reason, VerdictKind
from troth_cli import main
from troth_client.calibration import rehearsal
from troth_client.calibration import ways as ways_of_machine
from troth_client.calibration.calibrate import Plan, calibrate
from troth_client.calibration.thresholds import in_the_way, propose_all, propose_for
from troth_client.calibration.ways import Way, ways_here
from troth_client.model.device import CPU
from troth_client.train.errors import NonFiniteGradientError
from troth_coordinator.rules.config import JudgeSection

PLAN = Plan(rounds=2, every=1, draws=1, trainers=2)
OK, MISMATCH, _, INCONCLUSIVE = VerdictKind


class Data:
    """The tokens of these tests as a data set."""

    def __len__(self):
        return 400

    def sequences(self, ids):
        return TOKENS.sequences(ids)


@dataclass(frozen=True, slots=True)
class Made(Way):
    """A way that makes up the gradient of a model without computing one."""

    num_tiles: int = 1
    noise: float = 0.0
    size: float = 1.0

    def coefficients(self, config, weights, batch):
        rows = []
        for sequence in batch:
            rng = np.random.default_rng(crc32(sequence[:3].tobytes()))
            rows.append(rng.normal(size=(self.num_tiles, 64, 64)) * len(sequence))
        other = np.random.default_rng(7).normal(size=rows[0].shape)
        return np.float32(self.size * (np.mean(rows, axis=0) + self.noise * other))


@dataclass(frozen=True, slots=True)
class Infinite(Way):
    """A way whose gradient is never finite."""

    def coefficients(self, config, weights, batch):
        raise NonFiniteGradientError("a finite gradient", "inf", "")


def made(name, device=CPU, **fields):
    return Made(name, device, 1, 4, **fields)


def exact_and_noisy(num_tiles):
    """One way in each precision: a judge without the other one never accuses for a median."""
    noisy = made("noisy", CPU.other_precision(), num_tiles=num_tiles, noise=0.01)
    return [made("exact", num_tiles=num_tiles), noisy]


def judged(ways, config=CONFIG):
    found = calibrate(config, Data(), ways, PLAN)
    proposal = propose_for(found.groups)
    return found, proposal, propose_all(found.groups, proposal)


def of_tiles(monkeypatch, num_tiles):
    """Give the model one matrix of so many tiles."""
    shape = (64, 64 * num_tiles)
    start = {"only.weight": np.zeros(shape, np.float32)}
    monkeypatch.setattr(rehearsal, "initial_weights", lambda *_: start)


@pytest.mark.parametrize("num_tiles", [1, 2, 12])
def test_few_tiles_are_all_drawn_and_calibrated(monkeypatch, num_tiles):
    of_tiles(monkeypatch, num_tiles)
    found, proposal, bounds = judged(exact_and_noisy(num_tiles))
    for group in found.groups:
        assert set(group.verdicts) == ({OK} if group.is_honest else {MISMATCH}), group.name
    assert proposal.separates
    assert JudgeSection(**bounds.values).agreement_audits == (4 if num_tiles == 12 else 0)
    assert found.bench.contradictions(JudgeSection()) == []
    assert found.bench.tiles == list(range(num_tiles))


def test_the_smallest_model_of_bytes_has_twelve_tiles():
    changes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    model = CONFIG.model.model_copy(update=changes | {"tie_word_embeddings": True})
    config = CONFIG.model_copy(update={"model": model})
    ways = [way for way in ways_here(config) if way.name in ("cpu fp32", "cpu bf16")]
    found, proposal, bounds = judged(ways, config)
    assert len(found.bench.tiles) == 12
    assert proposal.honest is not None
    assert bool(bounds.values) != bool(bounds.refusal)


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        (made("zero", size=0.0), Reason.ZERO_GRADIENT),
        (Infinite("infinite", CPU, 1, 4), Reason.OWN_NOT_FINITE),
    ],
)
def test_a_gradient_that_nobody_can_judge_by_gives_no_bounds(monkeypatch, way, reason):
    of_tiles(monkeypatch, 1)
    found, proposal, bounds = judged([way, way])
    for group in found.groups:
        assert set(group.verdicts) == {INCONCLUSIVE}
        assert group.unjudged[reason] == group.verdicts.total() > 0
        assert group.medians == []
    assert not proposal.separates
    assert proposal.honest is None
    assert bounds.refusal == "nothing could be measured"
    assert found.bench is None
    (line,) = in_the_way(found.groups, JudgeSection(), 100)
    assert line.startswith("what can be judged: ")
    assert line.endswith(f"audits, {reason.value}")


def test_one_way_that_fails_does_not_hide_what_the_others_found(monkeypatch):
    of_tiles(monkeypatch, 4)
    found, proposal, bounds = judged([*exact_and_noisy(4), Infinite("infinite", CPU, 1, 4)])
    assert proposal.separates
    assert bounds.values
    (line,) = in_the_way(found.groups, JudgeSection(), 100)
    assert "the judge's own gradient is not finite" in line
    assert found.bench.contradictions(JudgeSection()) == []


def test_a_reference_that_fails_trains_nobody(monkeypatch):
    of_tiles(monkeypatch, 1)
    found, _, bounds = judged([Infinite("infinite", CPU, 1, 4), made("exact"), made("same")])
    assert bounds.refusal == "nothing could be measured", "the cheats were not computed"
    by_name = {group.name: group for group in found.groups}
    assert by_name["exact"].medians
    assert by_name["free-rider, nothing computed"].medians


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (made("zero", num_tiles=15, size=0.0), "the recomputed gradient is zero"),
        (Infinite("infinite", CPU, 1, 4), "the judge's own gradient is not finite"),
    ],
)
def test_the_command_says_why_there_are_no_bounds(monkeypatch, tmp_path, capsys, way, words):
    text = tmp_path / "text.txt"
    text.write_bytes(b"".join(b"line %d of a text to learn from\n" % n for n in range(2_000)))
    tiny = ["--config", "configs/smoke.toml"]
    data = ["--data", str(tmp_path / "data")]
    assert main.run(["data", "prepare", "--text", str(text), "--out", data[1], *tiny]) == 0
    monkeypatch.setattr(ways_of_machine, "ways_here", lambda *_: [way, way])
    few = ["--rounds", "1", "--every", "1", "--draws", "1", "--trainers", "1", *data]
    assert main.run(["calibrate", *tiny, *few]) == 0
    printed = capsys.readouterr().out
    assert "none: nothing could be measured" in printed
    assert words in printed
    assert "Do not run this config" in printed
    assert "[judge]" not in printed
    assert main.run(["calibrate", *tiny, *few, "--json"]) == 0
    assert '"refusal": "nothing could be measured"' in capsys.readouterr().out
