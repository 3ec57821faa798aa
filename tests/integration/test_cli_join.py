"""`troth join`: what must be right before a stake moves, signals, resuming, a whole small run."""

import json
import re
import signal
import socket

import pytest
import torch
from support.network import SOL, last_json, prepare_text, processes, refused_check
from support.recorded import scalars, scrape
from support.waiting import wait_for

pytestmark = pytest.mark.processes
PATIENT = ("chain.commit_slots=400", "chain.attest_slots=400", "chain.warmup_slots=800")
PATIENT += ("chain.vesting_slots=9000", "chain.unbond_slots=9000")


@pytest.fixture
def joined(bench):
    with processes(bench) as begin:
        yield begin


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def endpoint(process):
    return process.notes().partition("endpoint=")[2].split()[0]


def changed(arguments, **options):
    """The arguments with other values for some options."""
    result = list(arguments)
    for name, value in options.items():
        flag = f"--{name}"
        if flag in result:
            result[result.index(flag) + 1] = value
        else:
            result += [flag, value]
    return result


def test_two_processes_train_a_run_one_stops_and_resumes_and_all_are_paid(bench, joined):
    # Two cannot audit each other, and what is sampled all the same is not paid.
    unsampled = ("chain.p_base_ppm=0", "chain.p_new_ppm=0")
    run = bench.create(*PATIENT, *unsampled, "schedule.rounds=5", "schedule.warmup_rounds=0")
    watch = (*bench.of_run("status", run=run), "--watch")
    objects, lines = joined(watch, "objects"), joined(watch, "lines", is_json=False)
    one = joined(bench.join_arguments(run, "a"), "one")
    board, port = bench.folder / "board", free_port()
    recorded = ("--log-to", f"tensorboard:{board}", "--metrics", f"127.0.0.1:{port}")
    archive = bench.folder / "archive"
    own = bench.folder / "own.toml"
    own.write_text("[hints]\nprecision = 'bf16'\n")
    more = ("--stake-sol", "0.5", "--archive", archive, "--micro-batch", "1", "--config", own)
    two = joined((*bench.join_arguments(run, "b"), *more, *recorded), "two")
    two.wait_for("joined")
    shown = bench.cli.json(*bench.of_run("stake", "show", run=run, key="b"))
    assert shown["stake_lamports"] == SOL // 2, "more than the least stake"
    before, _, after = two.notes().partition("what a stake of 0.5 SOL can lose:")
    assert "joined" in after and "joined" not in before, "before the deposit"
    one.wait_for("round_closed round=0")
    two.wait_for("round_closed round=0")
    assert scrape(port)["troth_stake_lamports"] == SOL // 2
    one.signal(signal.SIGTERM)
    code, values = one.end()
    assert code == 0, one.notes()
    assert values["is_finished"] is False, one.notes()
    assert values["weights"] is None, one.notes()
    assert 1 <= values["round"] < 5
    again = joined(bench.join_arguments(run, "a"), "again")
    for process in (again, two):
        code, values = process.end()
        assert code == 0, process.notes()
        assert values["is_finished"] is True, process.notes()
        assert values["round"] == 5, process.notes()
        check = ("checkpoint", "verify", values["weights"], "--rpc", bench.rpc)
        assert bench.cli.json(*check)["root"] == values["root"]
        shown = bench.cli.json(*bench.of_run("run", "show", run=run))
        assert shown["phase"] == "finished"
        assert shown["root"] == values["root"]
    assert "resumed" in again.notes()
    assert "can lose" not in again.notes(), "its stake is there already"
    assert endpoint(again) == endpoint(one)
    assert shown["num_participants"] == 2
    assert_computed_as_asked(bench)
    assert set(scalars(board)["loss/own"]) == set(range(5))
    states = [bench.folder / f"state-{name}" for name in ("a", "b")]
    plotted = bench.cli.json("plot", *states, "--out", bench.folder / "run.svg")
    assert plotted["rounds"] == 5
    seen = bench.cli.json("plot", run, "--rpc", bench.rpc, "--out", bench.folder / "run.html")
    assert seen["rounds"] == 5
    assert_watched(objects, lines, values["root"])
    assert_kept_ledgers(bench, run, [states[0] / "ledger.jsonl", archive / "ledger.jsonl"])
    kept = bench.cli.json("archive", "check", archive)
    assert kept["problems"] == [], "one of them kept an archive beside its work"
    assert kept["round"] == 5
    assert kept["whole"]["payload"] == kept["whole"]["header"] >= 5
    assert "archive_failed" not in two.notes()
    pay_out_and_close(bench, run)


def assert_computed_as_asked(bench):
    """The first has only the run's config, the second an option and hints of its own."""
    first, second = (
        (bench.folder / f"state-{name}" / "events.jsonl").read_text() for name in ("a", "b")
    )
    assert '"event":"round_closed"' in first
    assert '"microbatch":2}' in first, "as the config says"
    assert '"microbatch":1}' in second
    assert '"precision":"fp32"' in first, "what a processor computes in"
    assert '"precision":"bf16"' in second


def assert_kept_ledgers(bench, run, paths):
    """Each member kept the events of the run; an RPC node adds what came after its end."""
    for path in paths:
        closes = path.read_bytes().count(b'"RoundClosed"')
        assert closes >= 5, path
        before = path.read_bytes()
        pull = bench.of_run("ledger", "pull", run=run)
        assert bench.cli.json(*pull, "--out", path)["events"] > 5
        assert path.read_bytes().startswith(before)


def assert_watched(objects, lines, root):
    """Both who looked on end by themselves, and have said each round and its loss once."""
    assert objects.code() == 0, objects.notes()
    seen = [json.loads(line) for line in objects.printed().splitlines()]
    assert seen[0]["phase"] == "waiting_for_members"
    assert seen[-1]["phase"] == "finished"
    assert seen[-1]["newest_root"] == root
    assert {one["status"] for one in seen[-1]["participants"]} == {"finished"}
    losses = {
        one["round"]: one["mean_loss_micro"]
        for values in seen
        for one in values["rounds"]
        if one["num_losses"]
    }
    assert {0, 1, 2} <= losses.keys(), "a process that ends serves its last headers no more"
    assert all(0 < loss < 10**7 for loss in losses.values()), losses
    assert lines.code() == 0, lines.notes()
    closed = re.findall(r"^round (\d): ", lines.printed(), re.MULTILINE)
    assert closed == ["0", "1", "2", "3", "4"], lines.printed()
    assert "phase finished of round 5" in lines.printed()
    assert re.search(r"^round \d: training loss \d", lines.printed(), re.MULTILINE), lines.printed()


def test_whoever_looks_on_stops_with_a_signal_and_no_error(bench, joined):
    run = bench.create()
    bench.take_a_seat(run, "a")
    for number in (signal.SIGINT, signal.SIGTERM):
        watch = (*bench.of_run("status", run=run), "--watch")
        looking = joined(watch, f"looking-{number}", is_json=False)
        wait_for(lambda looking=looking: "time left" in looking.printed())
        looking.signal(number)
        assert looking.code() == 0, looking.notes()
        assert "1 participant" in looking.printed()
        assert "Traceback" not in looking.notes()


def pay_out_and_close(bench, run):
    """The last chapter: everybody leaves, is paid and the accounts of the run are closed."""
    close = bench.of_run("run", "close", run=run, key="authority")
    early = bench.cli.refused(*close)
    assert early["expected"] == "a run that judges nobody any more"
    assert re.search(r"Repeat after slot \d+", early["next_step"])
    for name in ("a", "b"):
        left = bench.cli.json(*bench.of_run("leave", run=run, key=name))
        assert left["unvested_lamports"] >= 4_000_000
        assert left["next_vesting_slot"] > left["at_slot"]
    bench.launcher.advance(20_000)
    close_with_members_left(bench, close)
    for name in ("a", "b"):
        claimed = bench.cli.json(*bench.of_run("claim", run=run, key=name))
        assert claimed["received_lamports"] == claimed["claimed_total_lamports"] >= 4_000_000
        paid = bench.cli.json(*bench.of_run("withdraw", run=run, key=name))
        assert paid["received_lamports"] > 100_000_000
        assert paid["status"] == "closed"
    assert bench.cli.json(*close)["is_closed"]
    assert bench.cli.refused(*bench.of_run("status", run=run))["kind"] == "AccountMissingError"


def close_with_members_left(bench, close):
    """Accounts that can be closed are, debts stay: both are told before anything moves."""
    before = bench.balance("authority")
    planned = bench.cli.json(*close, "--dry-run")
    owners = {str(bench.address(name)) for name in ("a", "b")}
    assert {one["owner"] for one in planned["owed"]} == owners
    assert {one["unbonding_lamports"] for one in planned["owed"]} == {SOL // 10, SOL // 2}
    assert all(one["rewards_lamports"] >= 4_000_000 for one in planned["owed"])
    shown = bench.cli.ok(*close, "--dry-run").out
    assert "0.5 SOL on its way out: troth withdraw" in shown
    assert "Nothing was sent." in shown
    assert bench.balance("authority") == before

    done = bench.cli.json(*close)
    assert not done["is_closed"]
    assert done["returned"] == planned["returned"]
    assert done["owed"] == planned["owed"]
    fees = sum(one["fee_lamports"] for one in done["transactions"])
    own = str(bench.address("authority"))
    back = sum(one["lamports"] for one in done["returned"] if one["address"] == own)
    assert bench.balance("authority") - before == back - fees > SOL // 2
    assert bench.cli.json(*bench.of_run("run", "show", run=close[2]))["num_participants"] == 2

    nothing = bench.cli.refused(*close)
    assert nothing["expected"] == "something to close"
    assert all(owner in nothing["found"] for owner in owners)
    assert bench.balance("authority") == before + back - fees


def test_joining_twice_replaces_the_session_and_two_signals_stop_at_once(bench, joined):
    run = bench.create(*PATIENT)
    arguments = bench.join_arguments(run, "a")
    first = joined(arguments, "first")
    first.wait_for("phase=WAITING_FOR_MEMBERS")
    assert bench.cli.refused(*arguments)["kind"] == "FolderInUseError"
    assert first.is_running()
    elsewhere = changed(arguments, state=bench.folder / "elsewhere")
    assert bench.cli.refused(*elsewhere)["kind"] == "EndpointInUseError"
    second = joined(changed(elsewhere, listen=f"127.0.0.1:{free_port()}"), "second")
    code, values = first.end()
    assert code == 1
    assert values is None
    assert last_json(first.notes())["error"]["kind"] == "ReplacedError"
    second.wait_for("phase=WAITING_FOR_MEMBERS")
    assert f"endpoint_set before={endpoint(first)}" in second.notes()
    status = bench.cli.json(*bench.of_run("status", run=run))
    assert len(status["participants"]) == 1
    for number in (signal.SIGINT, signal.SIGTERM):
        second.signal(number)
    code, values = second.end()
    if code == 0:  # the first signal was enough to end it, and the second found nobody
        assert values["is_finished"] is False
    else:
        assert code == 130
        assert values is None


def test_a_full_run_is_refused_and_nothing_is_spent(bench):
    small = ("chain.capacity=2", "chain.max_witness_only=1", "chain.audit_cap=1")
    run = bench.create(*small)
    bench.take_a_seat(run, "a", "b")
    bench.key("c")
    error = bench.cli.refused(*bench.join_arguments(run, "c"))
    place = refused_check(error, "place")
    assert place["kind"] == "RunFullError"
    assert run in place["found"]
    assert bench.balance("c") == 10 * SOL


def test_joining_after_the_last_round_for_it_is_refused(bench):
    windows = ("commit", "attest", "close_grace")
    run = bench.create("chain.join_until_round=0", *(f"chain.{w}_slots=1" for w in windows))
    bench.take_a_seat(run, "a", "b")
    bench.pass_a_round(run, "a", "b")
    error = bench.cli.refused(*bench.join_arguments(run, "late"))
    assert refused_check(error, "place")["kind"] == "JoinClosed"
    assert "Nothing was paid" in error["next_step"]
    assert bench.balance("late") == 10 * SOL


def test_without_an_invitation_an_allowlisted_run_is_refused(bench):
    run = bench.create("chain.admission=allowlist")
    error = bench.cli.refused(*bench.join_arguments(run, "a"))
    assert refused_check(error, "place")["kind"] == "NotAdmitted"
    assert bench.balance("a") == 10 * SOL


def test_too_little_money_is_named_before_anything_is_sent(bench):
    run = bench.create()
    bench.key("poor", 0.1)
    error = bench.cli.refused(*bench.join_arguments(run, "poor"))
    found = refused_check(error, "balance")
    assert found["kind"] == "FundsError"
    assert "0.1 SOL" in found["found"]
    assert "0.36 SOL" in error["expected"]


def test_a_port_in_use_costs_no_stake(bench):
    run = bench.create()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = changed(bench.join_arguments(run, "a"), listen=f"127.0.0.1:{port}")
        error = bench.cli.refused(*arguments)
    assert str(port) in error["expected"] + error["found"]
    assert bench.balance("a") == 10 * SOL


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"role": "miner"}, "InputError"),
        ({"listen": "7000"}, "InputError"),
        ({"listen": "127.0.0.1:70000"}, "InputError"),
        ({"listen": "0.0.0.0:0"}, "InputError"),
        ({"endpoint": "example"}, "EndpointError"),
        ({"endpoint": "http://example:1/" + "x" * 100}, "EndpointError"),
        ({"device": "abacus"}, "DeviceError"),
        ({"data": "none"}, "ManifestError"),
        ({"key": "none"}, "KeyFileMissingError"),
        ({"session-sol": "much"}, "InputError"),
        ({"log-to": "wandb:project"}, "InputError"),
        ({"metrics": "0.0.0.0:9100"}, "InputError"),
        ({"rpc": "http://127.0.0.1:9"}, "RpcUnreachableError"),
    ],
)
def test_bad_options_are_named_and_cost_nothing(bench, options, kind):
    run = bench.create()
    arguments = bench.join_arguments(run, "a")
    assert bench.cli.refused(*changed(arguments, **options))["kind"] == kind
    assert bench.balance("a") == 10 * SOL


def test_a_precision_that_the_device_lacks_costs_nothing(bench, monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    run = bench.create("hints.precision=bf16")
    error = bench.cli.refused(*changed(bench.join_arguments(run, "a"), device="mps"))
    assert error["kind"] == "DeviceError"
    assert error["expected"] == "a precision of mps: fp32"
    assert bench.balance("a") == 10 * SOL


def test_the_config_or_data_of_another_run_is_refused(bench, tmp_path):
    run = bench.create()
    other = bench.create("schedule.lr_nano=1", name="other")
    error = bench.cli.refused(*bench.join_arguments(run, "a", name="other"))
    assert refused_check(error, "config")["kind"] == "ConfigMismatchError"
    unbound = [a for a in bench.join_arguments(other, "a") if a != "--config"]
    unbound.remove(bench.folder / "run.toml")
    alone = bench.cli.refused(*unbound)
    assert alone["kind"] == "RunFilesGoneError"
    assert alone["expected"] == "somebody who serves the run's config"
    assert "its creator has it, run.toml" in alone["next_step"]
    assert "--from URL" in alone["next_step"]
    others = prepare_text(tmp_path, "other words\n" * 20_000)
    arguments = changed(bench.join_arguments(run, "a"), data=others)
    assert bench.cli.refused(*arguments)["kind"] == "ManifestError"
    assert bench.balance("a") == 10 * SOL
