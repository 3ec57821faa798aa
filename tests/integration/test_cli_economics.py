"""`troth run economics RUN` reads the parameters that the program holds."""

import pytest

pytestmark = pytest.mark.processes


def test_defaults_come_from_the_run_on_chain(bench):
    run = bench.create("chain.p_base_ppm=150000", "chain.reward_per_payload=500000")
    found = bench.cli.json(*bench.of_run("run", "economics", run=run))
    assert found["given"]["p_ppm"] == 150_000
    assert found["given"]["reward"] == 500_000
    assert found["run"]["witness_fee_lamports"] == 425_000
    # The file for those who join names the run, and the chain's copy counts.
    file = ("run", "economics", "--config", bench.folder / "run.toml", "--rpc", bench.rpc)
    assert bench.cli.json(*file) == found
    missing = bench.of_run("run", "economics", run=str(bench.address("authority")))
    assert bench.cli.refused(*missing)["kind"] == "AccountOwnerError"
