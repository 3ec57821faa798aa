"""`troth demo` with a cheat: caught, judged, slashed; what the summary claims is on the chain."""

import asyncio
from pathlib import Path

import pytest
from cheats_as_processes import outcome
from solders.pubkey import Pubkey
from support.cli import Cli
from support.demos import (
    SHORTER,
    KeptChain,
    events_of,
    fees_of_all_transactions,
    perform,
    read_chain,
    small_config,
)
from support.pages import all_commands, filled

from troth_attestation import header
from troth_coordinator.chain.event_types_rounds import PayloadCommitted, RoundClosed
from troth_coordinator.config_files import load_config
from troth_coordinator.ledger.file import Ledger
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditFlag
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_simulation.cheats.catalogue import FREE_RIDER

pytestmark = pytest.mark.processes
GUIDE = (Path(__file__).parents[2] / "docs/guide/look-up.md").read_text()

SLOT = 100
NUM_ROUNDS = 16
NAMES = [*(f"trainer-{index}" for index in range(4)), "witness-0"]


@pytest.fixture
def chain():
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT)) as launcher:
        yield KeptChain(launcher)


@pytest.mark.long(
    reason="a whole demo; make demo plays one, and runs in one process have its cheat"
)
def test_a_free_rider_loses_its_stake_and_everybody_can_see_where_it_went(
    tmp_path, chain, capsys, monkeypatch
):
    folder, config = tmp_path / "demo", small_config(tmp_path / "small.toml")
    options = {"num_rounds": NUM_ROUNDS, "slot_milliseconds": SLOT, "margin_micro": -(10**9)}
    summary, printed = perform(folder, chain, config=config, **options)
    assert summary.is_success, summary
    ended = summary.outcome
    assert sorted(summary.roots) == NAMES
    assert_told(printed)
    assert_begun_after_three_rounds(folder, ended)

    view, _ = asyncio.run(read_chain(chain, Pubkey.from_string(summary.run)))
    stake = view.params.min_stake_lamports
    # Audits of neighbouring rounds may settle in either order: the first settled costs the half.
    (full,) = [case for case in ended.convictions if AuditFlag.FURTHER not in case.flags]
    assert full.money.stake == stake // 2
    assert sum(case.money.stake for case in ended.convictions) <= stake
    assert ended.juror_fees > 0
    lost = ended.slashed + ended.fined
    assert lost == ended.burned + ended.juror_fees, "every lamport has one place"
    assert view.total_escrow == 0
    assert {one.stake for one in ended.honest.values()} == {stake}
    assert sum(one.fees for one in ended.honest.values()) > 0
    # All that is missing on the chain besides what was burned are the fees, to the lamport.
    # A transfer from an owner to its session key names no run; on a slow machine there are a few.
    of_run = asyncio.run(fees_of_all_transactions(chain, summary.run))
    assert summary.fees_lamports in range(of_run, of_run + 60_000, 5_000)

    cli, where = Cli(capsys), (summary.run, "--rpc", chain.rpc_url)
    assert_status_shows_it(cli.json("status", *where), ended)
    assert "slashes" in cli.ok("status", *where).out
    for case in (one for one in ended.convictions if one.money.taken):
        which = ("--round", case.key[0], "--target", ended.index)
        assert_case_shows_it(cli.json("case", "show", *where, *which), case)
    shown = cli.ok("case", "show", *where, "--round", full.key[0], "--target", ended.index).out
    for part in ("convicted", "from stake", "burned", "CaseSettled"):
        assert part in shown, part
    assert_archived(cli, folder, view)
    assert_audited(cli, folder / "archive", view.round)
    monkeypatch.setenv("TROTH_RPC", chain.rpc_url)
    monkeypatch.chdir(tmp_path)
    assert_the_guide_looks_it_up(cli, folder, summary.run, full.key[0], ended.index)


def assert_audited(cli, archive, num_rounds):
    """The archive alone proves the run, its convictions included, and one bit is found."""
    found = cli.json("audit", "--archive", archive)
    assert found["conclusion"] == "good", found
    assert found["counts"]["applied_rounds"] == num_rounds
    assert found["discrepancies"] == 0
    assert found["missing"] == 0
    assert '"CaseSettled"' in (archive / "ledger.jsonl").read_text()
    made = included_header(archive)
    payload = archive / "payload" / made.payload_root.hex()
    data = bytearray(payload.read_bytes())
    data[len(data) // 2] ^= 1
    payload.write_bytes(data)
    done = cli("audit", "--archive", archive, "--json")
    assert done.code == 1
    (one,) = [one for one in done.json["findings"] if one["grade"] == "discrepancy"]
    assert one["rule"] == "payload"
    assert payload.name in one["expected"]
    assert one["round"] == made.round
    assert one["participant"] == made.index


def included_header(archive):
    """The header of a payload that the second round of a run included."""
    ledger = Ledger.of(archive / "ledger.jsonl")
    events = [event for entry in ledger.entries() for event in ledger.head.reader().events(entry)]
    (closed,) = [one for one in events if isinstance(one, RoundClosed) and one.round == 1]
    index = max(bitmap.indices_of(closed.included))
    (committed,) = [
        one
        for one in events
        if isinstance(one, PayloadCommitted) and (one.round, one.index) == (1, index)
    ]
    path = archive / "header" / committed.header_hash.hex()
    return header.decode(path.read_bytes()[: header.HEADER_BYTES])


def assert_archived(cli, folder, view):
    """The demo leaves an archive with all that an audit of its run needs, to the last event."""
    found = cli("archive", "check", folder / "archive", "--json").json
    # A set is shown until its audit ends, which a busy machine may be too late for.
    assert {one["kind"] for one in found["problems"]} <= {"openings"}
    assert found["run"] == str(Pubkey(view.address))
    assert found["whole"]["header"] == found["whole"]["payload"] >= 4 * NUM_ROUNDS
    assert found["chain_hash"] == view.chain_hash.hex()


FAULTS = {
    "none": None,
    "copies": "P3",
    "hides-openings": "P5",
    "truncated-openings": "P5",
    "deletes-residuals": "P5",
    "hides-payloads": "P4",
    "poison-within": None,
}
SLASHED = ("P3", "P5")
"""The faults that cost stake; the others end with no loss at all, or with strikes."""


@pytest.mark.nightly(reason="a whole demo for each of seven cheats; make long has the free-rider")
@pytest.mark.parametrize("kind", FAULTS)
def test_a_cheat_of_each_fault_ends_as_the_catalogue_says(tmp_path, chain, kind):
    """When each was caught is tabled by scripts/bench/cheats_as_processes.py, in docs/results.md.

    Every included payload is audited, up to two a round: whoever loses stake does so for one of
    its first lies, and before the run has ended.
    """
    config = small_config(tmp_path / "small.toml", **SHORTER)
    options = {"num_rounds": 12, "slot_milliseconds": SLOT, "margin_micro": -(10**9)}
    summary, _ = perform(tmp_path / "demo", chain, config=config, cheat=kind, **options)
    found = outcome(tmp_path / "demo")
    assert summary.is_success, (found, summary)
    assert found.kind == kind
    assert found.fault == FAULTS[kind]
    if found.fault in SLASHED:
        assert found.first_lie <= found.caught < found.slashed <= 12, found
        assert found.taken_lamports >= 10 * load_config([config]).chain.reward_per_payload
    else:
        assert found.caught is None, found
        assert found.slashed is None, found
        assert found.taken_lamports == 0, found


def assert_the_guide_looks_it_up(cli, folder, run, round_, target):
    """The commands of docs/guide/look-up.md; the dashboard has tests of its own."""
    said = {}
    known = {
        "run.toml": run,
        "--round 12 --target 3": f"--round {round_} --target {target}",
        "owner.json": str(folder / "keys/free-rider.json"),
    }
    for line in all_commands(GUIDE):
        words = filled(line, known).split()[1:]
        start = " ".join(words[:2])
        if start == "case appeal":
            assert "an open case" in cli.refused(*words)["expected"]
        elif words[0] != "dashboard":
            said[words[0] if words[1] == run else start] = cli.json(*words)
    assert "P3" in {one["fault"] for one in said["status"]["slashes"]}
    listed = {
        f"round {one['round']}, target {one['target']}" for one in said["case list"]["closed"]
    }
    assert f"round {round_}, target {target}" in listed
    assert said["case show"]["case_outcome"] == "convicted"
    assert "P3" in {one["fault"] for one in said["stake show"]["losses"]}


def assert_told(printed):
    """The log tells the story in its order."""
    words = ("mismatch found", "accused", "jury drawn", "convicted", "burned")
    places = [printed.find(word) for word in words]
    assert -1 not in places
    assert places == sorted(places)


def assert_begun_after_three_rounds(folder, ended):
    events = events_of(folder, FREE_RIDER.name)
    begun = next(place for place, one in enumerate(events) if one["event"] == "cheating")
    own = [one for one in events[:begun] if one["event"] == "round_closed" and one["own"]]
    assert len(own) == FREE_RIDER.honest_rounds
    assert all(case.key[0] > own[-1]["round"] for case in ended.convictions)


def assert_status_shows_it(status, ended):
    (cheat,) = [one for one in status["participants"] if one["index"] == ended.index]
    assert cheat["offences"] == 1, "one mistake, however many rounds"
    assert cheat["status"] == "inactive"
    rows = [row for row in status["slashes"] if row["index"] == ended.index]
    assert sum(row["taken_lamports"] for row in rows if row["fault"] == "P3") == ended.slashed
    assert all(row["is_paid_out"] for row in rows if row["taken_lamports"])
    assert {row["index"] for row in status["slashes"]} == {ended.index}
    # A further conviction may still be open, with nothing in escrow: its jurors got all of it.
    assert all(case["is_paid_out"] for case in status["accusations"] if case["taken_lamports"])
    assert status["escrow_lamports"] == 0


def assert_case_shows_it(shown, case):
    # Jurors get all that a further conviction takes: nobody waits for the end of such a case.
    is_waited_for = AuditFlag.FURTHER not in case.flags
    assert shown["stage"] in ({"closed"} if is_waited_for else {"closed", "decided"})
    assert shown["case_outcome"] == "convicted"
    assert shown["is_paid_out"]
    assert shown["taken_lamports"] == case.money.taken == sum(shown["split"].values())
    assert {seat["verdict"] for seat in shown["seats"]} == {"mismatch"}
    assert {juror["verdict"] for juror in shown["jurors"]} == {"mismatch"}
    told = [event["event"] for event in shown["history"]]
    for name in ("AuditOpened", "AuditSettled", "JuryDrawn", "CaseSettled"):
        assert name in told
    assert ("AuditClosed" in told) == (shown["stage"] == "closed")
