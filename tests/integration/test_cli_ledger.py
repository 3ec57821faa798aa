"""`troth ledger` against a run on the embedded chain."""

import pytest

pytestmark = pytest.mark.processes


@pytest.fixture
def run(bench):
    return bench.create()


def pull(bench, run, path):
    return bench.cli.json(*bench.of_run("ledger", "pull", run=run), "--out", path)


def test_a_pulled_ledger_is_proven_and_goes_on(bench, run):
    path = bench.folder / "ledger.jsonl"
    first = pull(bench, run, path)
    assert first["events"] > first["added"] > 5
    assert pull(bench, run, path)["added"] == 0
    verify = ("ledger", "verify", path, "--rpc", bench.rpc)
    assert bench.cli.json(*verify)["events"] == first["events"]
    fund = bench.of_run("run", "fund", run=run, key="authority")
    bench.cli.ok(*fund, "--sol", "0.1")
    behind = bench.cli.refused(*verify)
    assert behind["kind"] == "LedgerNotProvenError"
    assert "troth ledger pull" in behind["next_step"]
    assert pull(bench, run, path)["added"] == 1
    assert bench.cli.json(*verify)["events"] == first["events"] + 1


def test_a_ledger_with_holes_is_merged_and_repaired(bench, run):
    whole = bench.folder / "whole.jsonl"
    num_events = pull(bench, run, whole)["events"]
    lines = whole.read_bytes().splitlines(keepends=True)
    one, two = bench.folder / "one.jsonl", bench.folder / "two.jsonl"
    one.write_bytes(b"".join(lines[:4] + lines[5:]))
    two.write_bytes(b"".join([*lines[:7], b"{}\n", *lines[8:]]))
    assert bench.cli.refused("ledger", "verify", one, "--rpc", bench.rpc)["kind"] == (
        "LedgerOrderError"
    )
    merged = bench.folder / "merged.jsonl"
    assert bench.cli.json("ledger", "merge", one, two, "--out", merged)["gap"] == ""
    assert merged.read_bytes() == whole.read_bytes()
    assert "exists" in bench.cli.refused("ledger", "merge", one, "--out", merged)["found"]
    short = bench.cli.json("ledger", "merge", one, "--out", bench.folder / "short.jsonl")
    assert short["events"] < num_events
    assert short["gap"]
    before = two.read_bytes()
    repaired = bench.cli.json("ledger", "repair", two, "--rpc", bench.rpc)
    assert repaired["events"] == num_events
    assert two.read_bytes() == whole.read_bytes()
    assert (bench.folder / "two.jsonl.before-repair").read_bytes() == before


def test_a_file_of_another_run_is_left_alone(bench, run):
    path = bench.folder / "ledger.jsonl"
    pull(bench, run, path)
    before = path.read_bytes()
    other = bench.create(name="other")
    refused = bench.cli.refused(*bench.of_run("ledger", "pull", run=other), "--out", path)
    assert refused["kind"] == "LedgerFileError"
    assert path.read_bytes() == before
    second = bench.folder / "second.jsonl"
    pull(bench, other, second)
    refused = bench.cli.refused("ledger", "merge", path, second, "--out", bench.folder / "m.jsonl")
    assert refused["kind"] == "OutputFileError"
