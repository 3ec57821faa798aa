"""`troth hub` as a process: members that accept no connection train over it, and it may die."""

import signal

import pytest
from support.network import processes
from support.recorded import scrape

from troth_client.checkpoint.folder import CheckpointFolder

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long(reason="three processes; the hub in one process is in make test"),
]
PATIENT = ("chain.commit_slots=400", "chain.attest_slots=400", "chain.warmup_slots=800")
PATIENT += ("chain.vesting_slots=9000", "chain.unbond_slots=9000")
UNSAMPLED = ("chain.p_base_ppm=0", "chain.p_new_ppm=0")
ROUNDS = 6


@pytest.fixture
def begin(bench):
    with processes(bench) as begin:
        yield begin


def hub_arguments(bench, run, port=0):
    where = ("--listen", f"127.0.0.1:{port}", "--dir", bench.folder / "hub")
    return ("hub", "--run", run, *where, "--rpc", bench.rpc)


def port_of(hub):
    hub.wait_for("hub_listening")
    return int(hub.notes().partition("port=")[2].split()[0])


def last_weights(bench, run, port):
    """The members have ended, and accepted no connection before: only the hub has the weights."""
    out = bench.folder / "weights"
    where = ("--rpc", bench.rpc, "--from", f"http://127.0.0.1:{port}", "--out", out)
    bench.cli.json("checkpoint", "fetch", run, "--round", ROUNDS, *where)
    assert CheckpointFolder.open(out).manifest.round == ROUNDS


def test_two_members_that_listen_nowhere_train_over_a_hub_that_is_killed(bench, begin):
    rounds = (f"schedule.rounds={ROUNDS}", "schedule.warmup_rounds=0", "chain.checkpoint_every=2")
    run = bench.create(*PATIENT, *UNSAMPLED, *rounds)
    hub = begin(hub_arguments(bench, run), "hub")
    port = port_of(hub)
    outbound = ("--listen", "none", "--hub", f"http://127.0.0.1:{port}")
    members = [begin((*bench.join_arguments(run, key), *outbound), key) for key in ("a", "b")]
    members[0].wait_for("round_closed round=1")
    assert scrape(port)["troth_hub_round_bytes"] > 0
    hub.kill()
    hub = begin(hub_arguments(bench, run, port), "hub again")
    assert port_of(hub) == port
    for member in members:
        code, values = member.end()
        assert code == 0, member.notes()
        assert values["round"] == ROUNDS
        closed = [line for line in member.notes().splitlines() if "round_closed" in line]
        full = [line for line in closed if "included=[0, 1]" in line]
        assert len(full) >= ROUNDS - 1, member.notes()
        assert f"checkpoint_offered round={ROUNDS} missing=0" in member.notes()

    last_weights(bench, run, port)
    hub.signal(signal.SIGTERM)
    code, _ = hub.end()
    assert code == 0, hub.notes()
    assert "hub_ended" in hub.notes()


def test_a_hub_that_hangs_at_the_end_keeps_nobody_and_costs_no_weights(bench, begin):
    """It is stopped after the last round has closed; the members end by themselves."""
    rounds = ("schedule.rounds=2", "schedule.warmup_rounds=0", "chain.checkpoint_every=2")
    run = bench.create(*PATIENT, *UNSAMPLED, *rounds)
    hub = begin(hub_arguments(bench, run), "hub")
    outbound = ("--hub", f"http://127.0.0.1:{port_of(hub)}")
    members = [begin((*bench.join_arguments(run, key), *outbound), key) for key in ("a", "b")]
    for member in members:
        member.wait_for("round_closed round=1")
    hub.signal(signal.SIGSTOP)
    for member in members:
        code, values = member.end()
        assert code == 0, member.notes()
        assert values["weights"]
        assert "checkpoint_offered" in member.notes()
    told = ("--config", bench.folder / "run.toml", "--out", bench.folder / "late", "--patience", 1)
    error = bench.cli.refused("checkpoint", "fetch", run, "--rpc", bench.rpc, *told)
    assert error["kind"] == "CheckpointGoneError"
    assert "The final weights lie in the folder troth-state/" in error["next_step"]
    hub.signal(signal.SIGCONT)
