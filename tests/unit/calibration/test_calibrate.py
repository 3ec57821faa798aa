"""Calibration: on real gradients, every honest way passes and no cheat does."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
from support.trainers import CONFIG, TOKENS, coefficients, weights

from troth_attestation.verdict import VerdictKind
from troth_cli import main
from troth_client.calibration import calibrate as study
from troth_client.calibration import ways as ways_of_machine
from troth_client.calibration.calibrate import Plan, calibrate, cheats
from troth_client.calibration.thresholds import propose
from troth_client.calibration.ways import Way, fastest, ways_here
from troth_client.model import device

PLAN = Plan(rounds=3, every=2, draws=2)


class Data:
    """The tokens of these tests as a data set."""

    def __len__(self):
        return 400

    def sequences(self, ids):
        return TOKENS.sequences(ids)


SOME = ("cpu fp32", "cpu fp32, microbatch 1", "cpu fp32, 2 threads", "cpu bf16")


@pytest.fixture(scope="module")
def ways():
    return [way for way in ways_here(CONFIG) if way.name in SOME]


@pytest.fixture(scope="module")
def groups(ways):
    seen = []
    found = calibrate(CONFIG, Data(), ways, PLAN, lambda *done: seen.append(done)).groups
    assert [done for done, _total in seen] == [1, 2, 3]
    assert {total for _done, total in seen} == {3}
    return found


def test_the_ways_cover_precisions_threads_and_microbatches_from_the_reference_on():
    names = [way.name for way in ways_here(CONFIG)]
    assert names[:3] == ["cpu fp32", "cpu fp32, microbatch 1", "cpu fp32, microbatch 8"]
    assert {"cpu fp32, 2 threads", "cpu bf16", "cpu bf16, microbatch 1"} <= set(names)
    assert len(set(names)) == len(names)


def names(*arguments):
    return [way.name for way in ways_here(CONFIG, *arguments)]


@pytest.fixture
def card(monkeypatch):
    """A card with all precisions, of which nothing is computed."""
    monkeypatch.setattr(device, "precisions_of", lambda _device: list(device.PRECISIONS))
    monkeypatch.setattr(ways_of_machine, "precisions_of", device.precisions_of)
    return torch.device("cuda")


@pytest.mark.cuda
def test_a_card_is_compared_in_each_precision_with_the_processor_in_both(card):
    ways = ways_here(CONFIG, card)
    assert [way.name for way in ways if "microbatch" not in way.name] == [
        *("cpu fp32", "cpu bf16"),
        *("cuda fp32", "cuda tf32", "cuda bf16"),
    ]
    assert {way.name for way in ways if "microbatch 1" in way.name} == {
        f"cuda {precision}, microbatch 1" for precision in device.PRECISIONS
    }
    by_name = {way.name: way.device for way in ways}
    assert by_name["cuda tf32"] == device.Device(card, is_mixed=False, is_tf32=True)
    assert not by_name["cuda fp32"].is_tf32


@pytest.mark.cuda
def test_precisions_are_chosen_beside_the_reference(card):
    assert names(card, ["tf32"])[:2] == ["cpu fp32", "cuda tf32"]
    assert {name.split(",")[0] for name in names(card, ["tf32"])[1:]} == {"cuda tf32"}
    cpu = torch.device("cpu")
    assert names(cpu, ["bf16"])[3:] == names(cpu)[-3:]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--device", "cpu", "--precisions", "tf32"), "compute capability 8.0"),
        (("--device", "cpu", "--precisions", "fp8"), "cpu: fp32, bf16"),
        (("--device", "tpu"), "auto, cpu"),
    ],
)
def test_a_precision_that_a_device_does_not_have_is_refused(options, expected, capsys):
    assert main.run(["calibrate", "--config", "configs/smoke.toml", *options]) == 1
    assert expected in capsys.readouterr().err


def test_a_way_computes_what_a_trainer_of_that_kind_computes(ways):
    batch = TOKENS.sequences(range(8))
    found = {way.name: way.coefficients(CONFIG, weights(), batch) for way in ways[:2]}
    for name, microbatch in (("cpu fp32", 4), ("cpu fp32, microbatch 1", 1)):
        expected = coefficients(batch, microbatch=microbatch).numpy()
        assert np.allclose(found[name], expected, rtol=1e-3, atol=1e-6)
    assert not np.array_equal(*found.values())


@pytest.mark.cuda
def test_the_fastest_way_is_exact_and_on_the_card(card):
    assert fastest(ways_here(CONFIG, card)).name == "cuda fp32"
    assert fastest(ways_here(CONFIG, card, ["bf16"])).name == "cpu fp32"
    ways = ways_here(CONFIG, torch.device("cpu"))
    assert fastest(ways) is ways[0]


def test_the_reference_computes_only_what_is_measured(monkeypatch, ways):
    """It is one thread: with all training and all cheats, 124 M parameters took a day."""
    computed = Counter()
    honest = Way.coefficients

    def counted(way, *arguments):
        computed[way.name] += 1
        return honest(way, *arguments)

    monkeypatch.setattr(Way, "coefficients", counted)
    monkeypatch.setattr(study, "fastest", lambda given: given[-2])  # as a GPU would be
    calibrate(CONFIG, Data(), ways, PLAN)
    measured, num_cheats = PLAN.num_measured, 6
    assert computed["cpu fp32"] == computed["cpu bf16"] == measured
    trained = PLAN.rounds * PLAN.trainers
    assert computed["cpu fp32, 2 threads"] == trained + measured * num_cheats


def test_every_pair_is_audited_in_both_directions_and_every_cheat_by_all(groups, ways):
    rounds = 2
    for group in groups:
        num_witnesses = len(ways) - 1 if group.is_honest else len(ways)
        assert group.verdicts.total() == rounds * PLAN.draws * num_witnesses
        assert len(group.medians) == group.verdicts.total()


def test_honest_work_is_never_a_mismatch_and_cheats_are_never_ok(groups):
    for group in groups:
        if group.is_honest:
            assert set(group.verdicts) == {VerdictKind.OK}, group
        else:
            assert VerdictKind.OK not in group.verdicts, group


def test_precisions_differ_measurably_and_a_free_rider_by_everything(groups):
    by_name = {group.name: group for group in groups}
    assert min(by_name["cpu bf16"].medians) > 1e-4
    rider = by_name["free-rider, nothing computed"].medians
    assert min(rider) == pytest.approx(1, abs=0.01)
    assert max(rider) == pytest.approx(1, abs=0.01)
    half, eighth = (min(by_name[f"1/{part} of the sequences skipped"].medians) for part in (2, 8))
    assert half > eighth


def test_precisions_lie_apart_as_whole_gradients_and_residuals_are_noted(groups):
    apart = {group.name: group.whole.distance for group in groups if group.is_honest}
    assert 1e-4 < apart["cpu bf16"] < 0.05
    assert all(group.highest_residual > 0 for group in groups)


def test_the_measured_groups_separate(groups):
    honest = [median for group in groups if group.is_honest for median in group.medians]
    found = propose(honest, {g.name: g.medians for g in groups if not g.is_honest})
    assert found.separates
    assert found.ok_bound_micro < found.mismatch_bound_micro


def test_equal_seeds_measure_the_same_and_others_do_not(ways):
    plan = Plan(rounds=1, every=1, draws=1, seed=3)
    first, again = (calibrate(CONFIG, Data(), ways[:2], plan).groups for _ in range(2))
    assert [g.medians for g in first] == [g.medians for g in again]
    other = calibrate(CONFIG, Data(), ways[:2], Plan(rounds=1, every=1, draws=1, seed=4)).groups
    assert [g.medians for g in first] != [g.medians for g in other]


def test_cheats_compute_only_their_part_of_the_batch():
    batch = TOKENS.sequences(range(8))
    parts = dict(cheats(batch))
    assert parts.pop("free-rider, nothing computed") is None
    shares = {name: part.shape[0] * (part.shape[1] - 1) / (8 * 32) for name, part in parts.items()}
    assert shares == {
        f"1/{n} of {what} skipped": 1 - 1 / n
        for n in (8, 4, 2)
        for what in ("the sequences", "every sequence")
    }


def test_parts_that_a_batch_does_not_have_are_left_out():
    names = [name for name, _ in cheats(TOKENS.sequences(range(4)))]
    assert "1/8 of the sequences skipped" not in names
    assert "1/8 of every sequence skipped" in names


@pytest.mark.long(reason="a calibration by its command")
def test_the_command_prints_the_table_and_the_bounds(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_bytes(b"".join(b"line %d of a text to learn from\n" % n for n in range(2_000)))
    data = tmp_path / "data"
    tiny = ["--config", "configs/smoke.toml"]
    assert main.run(["data", "prepare", "--text", str(text), "--out", str(data), *tiny]) == 0
    few = ["--rounds", "1", "--every", "1", "--draws", "1", "--data", str(data)]
    capsys.readouterr()
    assert main.run(["calibrate", *tiny, *few, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"] == {"rounds": 1, "every": 1, "draws": 1, "seed": 0, "trainers": 4}
    assert {"cpu fp32", "cpu bf16"} <= {group["trainer"] for group in found["groups"]}
    assert found["proposal"]["separates"] is True
    assert main.run(["calibrate", *tiny, *few]) == 0
    printed = capsys.readouterr().out
    assert "free-rider, nothing computed" in printed
    assert "proposed" in printed
    assert "\n# calibrated = true needs 10 measured rounds, these are 1" in printed
    assert main.run(["calibrate", *tiny, *few, "--rounds", "10"]) == 0
    assert "\ncalibrated = true\n" in capsys.readouterr().out


def test_data_of_another_sequence_length_is_refused(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_bytes(b"some text to learn from\n" * 20_000)
    data = tmp_path / "data"
    prepare = ["data", "prepare", "--text", str(text), "--out", str(data)]
    assert main.run([*prepare, "--sequence-tokens", "32"]) == 0
    command = ["calibrate", "--config", "configs/smoke.toml", "--data", str(data)]
    assert main.run(command) == 1
    assert "sequences of 64 tokens" in capsys.readouterr().err
