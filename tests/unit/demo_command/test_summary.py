"""The verdict of a demo: every way to fail, one way to succeed."""

from dataclasses import replace

import pytest

from troth_client.cli.demo.summary import Summary

GOOD = Summary(
    run="Run1",
    num_rounds=40,
    num_parameters=1_000,
    loss_first_micro=5_500_000,
    loss_last_micro=3_100_000,
    margin_micro=1_500_000,
    payload_bytes=14,
    bytes_per_parameter=0.014,
    dense_bytes=2_000,
    num_included=160,
    fees_lamports=1,
    state_root="aa",
    chain_root="aa",
    peer_roots={"trainer-0": "aa", "trainer-1": "aa"},
    missing_peers=[],
    killed_peers=[],
    events="events.jsonl",
    weights="weights",
)


def test_success_is_agreement_and_the_margin():
    assert GOOD.is_success
    assert GOOD.to_json()["fell_by_micro"] == 2_400_000
    assert replace(GOOD, loss_last_micro=4_000_000).is_success


@pytest.mark.parametrize(
    "changes",
    [
        {"loss_last_micro": 4_000_001},
        {"loss_last_micro": 6_000_000},
        {"chain_root": "bb"},
        {"chain_root": "the run is not finished"},
        {"peer_roots": {"trainer-0": "aa", "trainer-1": "bb"}},
        {"peer_roots": {}},
        {"missing_peers": ["trainer-1"]},
    ],
)
def test_anything_else_is_failure(changes):
    assert not replace(GOOD, **changes).is_success


def test_a_trainer_killed_on_purpose_is_no_missing_peer():
    assert replace(GOOD, peer_roots={"trainer-0": "aa"}, killed_peers=["trainer-1"]).is_success
