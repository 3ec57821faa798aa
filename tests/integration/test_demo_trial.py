"""`troth demo` with a cheat: caught, judged, slashed; what the summary claims is on the chain."""

import asyncio

import pytest
from integration.demo_support import (
    KeptChain,
    events_of,
    fees_of_all_transactions,
    perform,
    read_chain,
    small_config,
)
from solders.pubkey import Pubkey
from unit.cli.support import Cli

from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.faults.catalogue import FREE_RIDER

pytestmark = pytest.mark.processes

SLOT = 100
NUM_ROUNDS = 16
NAMES = [*(f"trainer-{index}" for index in range(4)), "witness-0"]


@pytest.fixture
def chain():
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT)) as launcher:
        yield KeptChain(launcher)


def test_a_free_rider_loses_its_stake_and_everybody_can_see_where_it_went(tmp_path, chain, capsys):
    folder, config = tmp_path / "demo", small_config(tmp_path / "small.toml")
    options = {"num_rounds": NUM_ROUNDS, "slot_milliseconds": SLOT, "margin_micro": -(10**9)}
    summary, printed = perform(folder, chain, config=config, **options)
    assert summary.is_success, summary
    trial = summary.trial
    assert sorted(summary.peer_roots) == NAMES
    assert_told(printed)
    assert_begun_after_three_rounds(folder, trial)

    view, _ = asyncio.run(read_chain(chain, Pubkey.from_string(summary.run)))
    stake = view.params.stake_lamports
    first, *later = trial.convictions
    assert first.money.stake + sum(case.money.stake for case in later) <= stake
    assert max(case.money.stake for case in trial.convictions) == stake // 2
    assert trial.slashed == trial.burned + view.treasury, "every lamport has one place"
    assert view.total_escrow == 0
    assert {one.stake for one in trial.honest.values()} == {stake}
    assert sum(one.fees for one in trial.honest.values()) > 0
    # All that is missing on the chain besides what was burned are the fees, to the lamport.
    assert summary.fees_lamports == asyncio.run(fees_of_all_transactions(chain, summary.run))

    cli, where = Cli(capsys), (summary.run, "--rpc", chain.rpc_url)
    assert_status_shows_it(cli.json("status", *where), trial)
    assert "slashes" in cli.ok("status", *where).out
    for case in (one for one in trial.convictions if one.money.taken):
        which = ("--round", case.key[0], "--target", trial.index)
        assert_case_shows_it(cli.json("case", "show", *where, *which), case)
    shown = cli.ok("case", "show", *where, "--round", first.key[0], "--target", trial.index).out
    for part in ("convicted", "from stake", "burned", "to the treasury", "CaseSettled"):
        assert part in shown, part


@pytest.mark.nightly
@pytest.mark.parametrize(
    "kind",
    ["none", "copies", "hides-openings", "deletes-residuals", "hides-payloads", "poison-within"],
)
def test_a_cheat_of_each_fault_ends_as_the_catalogue_says(tmp_path, chain, kind):
    config = small_config(tmp_path / "small.toml")
    options = {"num_rounds": 12, "slot_milliseconds": SLOT, "margin_micro": -(10**9)}
    summary, _ = perform(tmp_path / "demo", chain, config=config, cheat=kind, **options)
    assert summary.is_success, summary


def assert_told(printed):
    """The log tells the story in its order."""
    words = ("mismatch found", "accused", "second committee drawn", "convicted", "burned")
    places = [printed.find(word) for word in words]
    assert -1 not in places
    assert places == sorted(places)


def assert_begun_after_three_rounds(folder, trial):
    events = events_of(folder, FREE_RIDER.name)
    begun = next(place for place, one in enumerate(events) if one["event"] == "cheating")
    own = [one for one in events[:begun] if one["event"] == "round_closed" and one["own"]]
    assert len(own) == FREE_RIDER.honest_rounds
    assert all(case.key[0] > own[-1]["round"] for case in trial.convictions)


def assert_status_shows_it(status, trial):
    (cheat,) = [one for one in status["participants"] if one["index"] == trial.index]
    assert cheat["convictions"] == len(trial.convictions)
    assert cheat["status"] in ("inactive", "barred")
    rows = [row for row in status["slashes"] if row["index"] == trial.index]
    assert sum(row["taken_lamports"] for row in rows if row["fault"] == "P3") == trial.slashed
    assert all(row["is_paid_out"] for row in rows if row["taken_lamports"])
    assert {row["index"] for row in status["slashes"]} == {trial.index}
    assert not any(case["taken_lamports"] for case in status["accusations"])
    assert status["escrow_lamports"] == 0


def assert_case_shows_it(shown, case):
    assert (shown["stage"], shown["case_outcome"]) == ("closed", "convicted")
    assert shown["is_paid_out"]
    assert shown["taken_lamports"] == case.money.taken == sum(shown["split"].values())
    assert {seat["verdict"] for seat in shown["seats"]} == {"mismatch"}
    assert {juror["verdict"] for juror in shown["jurors"]} == {"mismatch"}
    told = [event["event"] for event in shown["history"]]
    for name in ("AuditOpened", "AuditSettled", "CommitteeDrawn", "CaseSettled", "AuditClosed"):
        assert name in told
