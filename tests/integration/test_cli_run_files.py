"""A stranger with nothing but the run's address: config, tokens and shards come from others."""

import json
import signal

import pytest
from support.network import processes

pytestmark = pytest.mark.processes
SLOW = ("chain.commit_slots=400", "chain.attest_slots=400", "chain.warmup_slots=800")
SLOW += ("chain.vesting_slots=9000", "chain.unbond_slots=9000")
UNSAMPLED = ("chain.p_base_ppm=0", "chain.p_new_ppm=0")


@pytest.fixture
def started(bench):
    with processes(bench) as begin:
        yield begin


def bare(bench, run, key):
    """The arguments that a stranger has: the run's address, an RPC node and a key.

    A loaded machine may be too slow for the windows, which is not what is tested here: --anyway.
    """
    state = ("--state", bench.folder / f"state-{key}", "--device", "cpu", "--anyway")
    return (*bench.of_run("join", run=run, key=key), *state)


@pytest.mark.long(reason="two processes fetch everything, join and train")
def test_strangers_join_with_the_address_alone_and_train(bench, started):
    """The run's creator serves the files until members do."""
    run = bench.create(*SLOW, *UNSAMPLED, "schedule.rounds=4", "schedule.warmup_rounds=0")
    config = ("--config", bench.folder / "run.toml")
    creator = started(
        (*bench.of_run("data", "serve", run=run), "--data", bench.data, *config), "creator"
    )
    creator.wait_for("serving at")
    url = creator.notes().partition("serving at ")[2].split()[0]
    one = started((*bare(bench, run, "a"), "--from", url), "one")
    one.wait_for("phase=WAITING_FOR_MEMBERS")
    creator.signal(signal.SIGTERM)
    assert creator.end()[0] == 0, creator.notes()
    two = started(bare(bench, run, "b"), "two")
    for process in (one, two):
        code, values = process.end()
        assert code == 0, process.notes()
        assert values["is_finished"] is True, process.notes()
        assert values["round"] == 4
    for key in "ab":
        log = (bench.folder / f"state-{key}" / "events.jsonl").read_text().splitlines()
        events = [json.loads(line)["event"] for line in log]
        assert events.count("trained") == 4, "it contributed to each round"
        folder = bench.folder / f"state-{key}" / "data"
        (shard,) = folder.glob("train-*.bin")
        assert shard.read_bytes() == (bench.data / shard.name).read_bytes()
        assert not list(folder.glob("validation-*")), "nobody trains on these"


@pytest.mark.long(reason="two more processes; the parts are in make test")
def test_strangers_need_a_bucket_and_nobody_who_listens(bench, started):
    """Config, data, payloads: all of it goes over one store."""
    store = f"file://{bench.folder}/store"
    run = bench.create(*SLOW, *UNSAMPLED, "schedule.rounds=4", "schedule.warmup_rounds=0")
    files = ("--data", bench.data, "--config", bench.folder / "run.toml", "--to", store)
    pushed = bench.cli.json(*bench.of_run("data", "push", run=run), *files)
    (at_store,) = pushed["holders"]
    assert at_store["refused"] == 0
    outbound = ("--listen", "none", "--store", store)
    both = [started((*bare(bench, run, key), *outbound), key) for key in "ab"]
    for process in both:
        code, values = process.end()
        assert code == 0, process.notes()
        assert values["round"] == 4
    for key in "ab":
        log = (bench.folder / f"state-{key}" / "events.jsonl").read_text().splitlines()
        assert [json.loads(line)["event"] for line in log].count("trained") == 4
