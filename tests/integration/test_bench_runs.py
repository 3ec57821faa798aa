"""The benchmarks that play whole runs, each with as little as shows that it still works.

Next: scripts/bench, docs/results.md; test_inprocess_honest.py for what honest.py plays.
"""

import itertools
import json
import sys

import convictions
import honest
import honest_pairs
import pytest
import tile_cheats
import torch
import verification

from troth_client.model.device import Device

pytestmark = pytest.mark.long(reason="each benchmark once, as its command plays it")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The text of convictions.py."""
    return convictions.make_data(tmp_path_factory.mktemp("words") / "data")


@pytest.fixture
def call(monkeypatch, capsys):
    """Calls a script as from a shell; returns its exit status and what it printed."""

    def call(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script.__name__, *map(str, arguments)])
        threads = torch.get_num_threads()
        try:
            return script.main(), *capsys.readouterr()
        finally:
            torch.set_num_threads(threads)

    return call


async def test_a_free_rider_is_convicted_for_a_round_of_its_own(words):
    found = await convictions.play(words, "free-rider", "new", seed=0)
    assert found.outcomes == {"CONVICTED": 1}, "its first audit is its last"
    assert found.fines == 0, "nobody honest has lost anything"
    assert 1 <= found.convicted < found.slashed


async def test_who_serves_nothing_is_jailed_for_its_third_payload(words):
    found = await convictions.play(words, "hides-payloads", "new", seed=0)
    assert found.outcomes == {"STRUCK": 2, "JAILED": 1}
    assert found.convicted == convictions.STRIKES
    row = convictions.row([found]).split(" | ")
    assert row[2:8] == ["P4", "1 of 1", "1 of 3", "0", "3.0", "3.0"]


def test_a_table_of_convictions_is_printed_again_without_playing(call, tmp_path):
    arguments = ("--seeds", 1, "--out", tmp_path / "runs/played.jsonl", "openings-of-another-run")
    status, table, played = call(convictions, *arguments)
    assert status == 0 and "NO_OPENINGS" in played
    assert "| openings-of-another-run | 0.50 | P5 | 1 of 1 | 1 of 1 | 0 | 2.0 |" in table
    status, again, played = call(convictions, *arguments)
    assert status == 0
    assert again == table
    assert played == ""


def test_honest_runs_go_on_where_they_were_interrupted(call, tmp_path):
    shape = ("--members", 4, "--rounds", 2, "--out", tmp_path / "played.jsonl")
    _, first, _ = call(honest, *shape, "--participant-rounds", 1)
    status, both, _ = call(honest, *shape, "--participant-rounds", 9)
    assert status == 0
    assert [len(text.splitlines()) for text in (first, both)] == [3, 3]
    assert first.splitlines()[2] == both.splitlines()[1], "what was played is counted, not played"
    assert " 16 participant-rounds, " in both


def test_pairs_of_honest_ways_go_on_where_they_were_interrupted(call, tmp_path):
    shape = ("--config", "configs/smoke.toml", "--rounds", 2, "--out", tmp_path / "pairs.jsonl")
    _, first, _ = call(honest_pairs, *shape, "--participant-rounds", 1)
    status, both, _ = call(honest_pairs, *shape, "--participant-rounds", 9)
    assert status == 0
    assert '{"participant_rounds": 8, "episodes": 1}' in first
    assert both.startswith('{"participant_rounds": 8, "episodes": 1}'), "counted, not played"
    assert "16 participant-rounds, 16 audits" in both
    for maker, judge in itertools.product(("fp32", "bf16"), repeat=2):
        assert f"| {maker} | {judge} | 4 |" in both


def test_a_second_device_takes_half_of_the_work_in_both_precisions(call, tmp_path, monkeypatch):
    second = Device(torch.device("cpu", 0), is_mixed=True)
    shape = ("--config", "configs/smoke.toml", "--rounds", 4, "--out", tmp_path / "pairs.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(honest_pairs, "choose_device", lambda _: second)
        status, table, _ = call(honest_pairs, *shape, "--participant-rounds", 16)
    assert status == 0
    kinds = ["fp32", "bf16", "cpu:0 fp32", "cpu:0 bf16"]
    for maker, judge in itertools.product(kinds, kinds):
        assert f"| {maker} | {judge} | 1 |" in table
    (line,) = (tmp_path / "pairs.jsonl").read_text().splitlines()
    first = [audit["judge"] for audit in json.loads(line)["found"]["audits"][:4]]
    assert sorted(first) == sorted(kinds), "every kind judges in each round"
    call(honest_pairs, *shape, "--participant-rounds", 1)
    assert len((tmp_path / "pairs.jsonl").read_text().splitlines()) == 2, "not taken for its own"


@pytest.mark.parametrize(
    ("hits", "tries", "bound"), [(0, 10, 0.2589), (0, 2_995, 0.0009998), (3, 100, 0.0757)]
)
def test_the_upper_bound_of_a_rate_is_that_of_the_binomial(hits, tries, bound):
    assert honest_pairs.upper(hits, tries) == pytest.approx(bound, rel=1e-3)


def test_tile_cheats_are_played_beside_honest_work(call, tmp_path):
    shape = ("--config", "configs/smoke.toml", "--seeds", 1, "--rounds", 2)
    status, table, _ = call(tile_cheats, *shape, "--out", tmp_path / "tiles.jsonl")
    assert status == 0
    rows = dict(line.strip("| ").split(" | ", 1) for line in table.splitlines()[2:])
    assert rows["honest"].startswith("2 | 100.0% | 0.0% | 0.0% | 0 of 1 | 0 | 0.0%")
    assert rows["absent-half"].startswith("1 | 0.0% | 0.0% | 100.0% | 1 of 1 | 0 |")
    _, again, _ = call(tile_cheats, *shape, "--out", tmp_path / "tiles.jsonl")
    assert again == table, "what was played is counted, not played"


def test_what_verification_costs_is_told_of_functions_that_were_called(call):
    status, table, _ = call(verification, "--members", 4, "--rounds", 2, "--sequences", 1)
    assert status == 0
    rows = dict(line.strip("| ").split(" | ", 1) for line in table.splitlines() if "`" in line)
    measured = verification.OF_AUDITS.keys() | {verification.GRADIENT}
    assert measured <= {name.strip("`") for name in rows}
    assert "audits take" in table
