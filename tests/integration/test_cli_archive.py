"""`troth archive` as a process: it follows a run, dies, goes on, and says what it lacks."""

import signal

import pytest
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from support.network import processes

from troth_cli.connection import connect, run_async
from troth_cli.settings import run_settings

pytestmark = pytest.mark.processes


@pytest.fixture
def begin(bench):
    with processes(bench) as begin:
        yield begin


def keep(bench, run, *more):
    return ("archive", run, "--out", bench.folder / "out", "--rpc", bench.rpc, *more)


def run_account(bench, run):
    async def work():
        async with connect(bench.rpc, None) as client:
            return await client.read_run(Pubkey.from_string(run))

    return run_async(work())


def missing_kinds(bench):
    done = bench.cli("archive", "check", bench.folder / "out", "--json")
    found = done.json
    assert done.code == bool(found["problems"])
    assert {one["what"] for one in found["problems"]} <= {"missing"}
    return {one["kind"] for one in found["problems"]}, found


def test_an_archive_that_is_killed_goes_on_and_is_whole_in_the_end(bench, begin):
    run = bench.create("chain.commit_slots=10", "chain.attest_slots=10", "chain.warmup_slots=20")
    bench.take_a_seat(run, "a", "b")
    first = begin(keep(bench, run), "first")
    first.wait_for("archive_round round=0")
    used = bench.cli.refused(*keep(bench, run))
    assert used["kind"] == "FolderInUseError"
    first.kill()
    lacks, _ = missing_kinds(bench)
    assert lacks == {"config", "manifest"}, "no member is there who would serve them"
    bench.pass_a_round(run, "a", "b")
    view = run_account(bench, run)
    store = bench.folder / "store"
    manifest = (bench.data / "manifest.json").read_bytes()
    files = {
        f"config/{view.config_hash.hex()}": config_of(bench),
        f"manifest/{view.manifest_hash.hex()}": manifest,
    }
    for name, data in files.items():
        (store / name).parent.mkdir(parents=True)
        (store / name).write_bytes(data)
    copy = bench.folder / "copy"
    more = ("--from", f"file://{store}", "--copy-to", f"file://{copy}")
    second = begin(keep(bench, run, *more), "second")
    second.wait_for("archive_round round=1")
    second.signal(signal.SIGTERM)
    code, values = second.end()
    assert code == 0, second.notes()
    assert values["run"] == run
    assert values["is_over"] is False
    assert values["num_missing"] == 0
    lacks, found = missing_kinds(bench)
    assert lacks == set()
    assert found["whole"] == {"config": 1, "manifest": 1}
    assert found["chain_hash"] == run_account(bench, run).chain_hash.hex()
    copied = bench.cli.json("archive", "check", copy)
    assert copied == found, "a store has the layout of a folder"
    whole = f"file://{bench.folder / 'objects'}"
    work = ("--work", bench.folder / "work", "--rpc", bench.rpc, "--from", f"file://{copy}")
    third = begin(("archive", run, "--out", whole, *work), "third")
    third.wait_for("archive_round round=1")
    third.signal(signal.SIGTERM)
    code, values = third.end()
    assert code == 0, third.notes()
    assert values["out"] == whole
    assert bench.cli.json("archive", "check", bench.folder / "objects") == found
    assert "manifest whole" in bench.cli.ok("archive", "check", bench.folder / "out").out


def config_of(bench):
    return run_settings([bench.folder / "run.toml"]).config.canonical_json()


def test_what_cannot_become_an_archive_is_refused_and_left_alone(bench):
    run = bench.create()
    nobody = bench.cli.refused(*keep(bench, str(Keypair().pubkey())))
    assert nobody["kind"] == "AccountMissingError"
    assert not (bench.folder / "out").exists()
    file = bench.folder / "file"
    file.write_bytes(b"mine")
    for path in (file, file / "below"):
        refused = bench.cli.refused("archive", run, "--out", path, "--rpc", bench.rpc)
        assert refused["kind"] == "ArchiveFolderError"
        refused = bench.cli.refused("archive", "check", path)
        assert refused["kind"] == "ArchiveFolderError"
    assert file.read_bytes() == b"mine"
    refused = bench.cli.refused(*keep(bench, run, "--from", "ftp://somewhere"))
    assert refused["kind"] == "EndpointError"
    refused = bench.cli.refused(*keep(bench, run, "--copy-to", f"file://{file}/below"))
    assert refused["kind"].startswith("Holder")
    for option in ("--copy-to", "--out"):
        refused = bench.cli.refused(*keep(bench, run, option, "s3://UPPER CASE"))
        assert refused["kind"] == "EndpointError"
    two = ("--out", f"file://{file}", "--copy-to", "s3://bucket")
    assert bench.cli.refused(*keep(bench, run, *two))["kind"] == "InputError"
    ledger = bench.folder / "out" / "ledger.jsonl"
    ledger.parent.mkdir(exist_ok=True)
    ledger.write_bytes(b"not a ledger\n")
    refused = bench.cli.refused(*keep(bench, run))
    assert refused["kind"] == "LedgerFileError"
    assert ledger.read_bytes() == b"not a ledger\n"
