"""`troth audit` on archives and RPC nodes: exit codes, words, and what it refuses."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import Cli
from support.disks import no_file_beyond
from support.forgeries import blobs, flip, lines, rewrite, with_sequence
from support.recordings import play, record
from support.runs import NO_AUDITS, start_members

from troth_audit.replay.account import Absence, Word
from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Conclusion, Report
from troth_cli.errors import OtherRunError
from troth_cli.workflows import audit_point
from troth_cli.workflows.audit import audit
from troth_cli.workflows.audit_inputs import Asked, Inputs, gather
from troth_cli.workflows.audit_replay import Plan
from troth_client.runtime.files import FolderLock
from troth_localnet.jsonrpc import Method
from troth_localnet.rpc import RpcServer, ServerConfig
from troth_simulation.in_process import InProcessRun

ROUNDS = 4
REPOSITORY = Path(__file__).parents[2]
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory) -> Path:
    """The archive of an honest run of two."""
    return play(data, tmp_path_factory.mktemp("recorded"), ROUNDS, ("ada", "bob"))


@pytest.fixture
def archive(recorded, tmp_path) -> Path:
    """A copy to forge."""
    return Path(shutil.copytree(recorded, tmp_path / "archive"))


@pytest.fixture
def cli(capsys, monkeypatch) -> Cli:
    """The command line, with no RPC node in the environment."""
    monkeypatch.delenv("TROTH_RPC", raising=False)
    return Cli(capsys)


def test_a_clean_archive_passes_and_says_whose_word_it_has(cli, recorded):
    done = cli.ok("audit", "--archive", recorded)
    assert "its own word, no proof: give --rpc" in done.out
    assert "0 of 0 took place" in done.out
    assert done.out.splitlines()[-1].startswith("PASS")


@pytest.mark.long(reason="make and a process of its own; the audit itself is in make test")
def test_make_audit_asks_no_node_that_the_user_has_exported(recorded):
    found = [f"DEMO={recorded.parent}", f"BIN={Path(sys.executable).parent}"]
    done = subprocess.run(
        ["make", "--silent", "--old-file=.venv/.train", "audit", *found],
        cwd=REPOSITORY,
        env={**os.environ, "TROTH_RPC": NOWHERE},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("PASS")


def test_offline_asks_no_node_that_the_environment_names(cli, recorded, monkeypatch):
    monkeypatch.setenv("TROTH_RPC", NOWHERE)
    error = cli.refused("audit", "--archive", recorded, code=2)
    assert error["kind"] == "NodesSilentError"
    assert "--offline" in error["next_step"]
    done = cli.ok("audit", "--offline", "--archive", recorded)
    assert "its own word, no proof: give --rpc" in done.out


async def test_a_node_of_another_network_is_refused_with_the_way_around_it(
    run_factory, archive, tmp_path
):
    first, *events = lines(archive)
    head = json.loads(first) | {"genesis_hash": "00" * 32}
    rewrite(archive, [json.dumps(head).encode() + b"\n", *events])
    run = await run_factory.create(3, **NO_AUDITS)
    server = RpcServer(run.chain, ServerConfig(slot_milliseconds=None))
    await server.start()
    asked = Asked(None, None, [server.rpc_url], [str(archive)], None, tmp_path)
    try:
        with pytest.raises(OtherRunError) as raised:
            await asyncio.to_thread(gather, asked)
    finally:
        await server.stop()
    assert "--offline" in raised.value.next_step


def test_the_json_is_one_object(cli, recorded):
    found = cli.json("audit", "--archive", recorded)
    assert found["conclusion"] == "good"
    assert found["counts"]["payloads"] == 2 * ROUNDS
    assert found["findings"] == []


def test_every_kind_of_check_has_a_row_with_its_result(cli, archive):
    clean = results(cli.json("audit", "--archive", archive))
    assert set(clean.values()) == {"pass", "none"}
    assert clean["payloads"] == clean["roots"] == clean["accounts"] == clean["rewards"] == "pass"
    flip(blobs(archive, "payload")[0], 9)
    blobs(archive, "header")[-1].unlink()
    forged = results(cli("audit", "--archive", archive, "--json").json)
    assert forged["payloads"] == "FAIL: 1"
    assert forged["headers"] == "missing: 1"
    assert forged["events"] == "pass"


def results(report: dict) -> dict[str, str]:
    """The result of each check by its name."""
    return {one["what"]: one["result"] for one in report["checks"]}


def test_a_flipped_payload_is_exit_1_with_its_name(cli, archive):
    flip(blobs(archive, "payload")[0], 9)
    done = cli("audit", "--archive", archive, "--json")
    assert done.code == 1
    found = done.json["findings"][0]
    assert found["grade"] == "discrepancy"
    assert found["rule"] == "payload"
    assert blobs(archive, "payload")[0].name in found["expected"]


def test_a_missing_payload_is_exit_2(cli, archive):
    blobs(archive, "payload")[0].unlink()
    done = cli("audit", "--archive", archive)
    assert done.code == 2
    assert "INCOMPLETE" in done.out


def test_another_run_than_the_ledgers_is_refused(cli, recorded):
    error = cli.refused("audit", "11111111111111111111111111111112", "--archive", recorded, code=2)
    assert error["kind"] == "OtherRunError"


def test_without_a_ledger_the_error_says_where_to_get_one(cli, archive):
    (archive / "ledger.jsonl").unlink()
    error = cli.refused("audit", "--archive", archive, code=2)
    assert error["kind"] == "LedgerMissingError"
    assert "--archive" in error["next_step"]


@pytest.mark.parametrize("text", [b"", b"no ledger\n", b"\0" * 100])
def test_a_file_that_is_no_ledger_is_refused(cli, archive, text):
    (archive / "ledger.jsonl").write_bytes(text)
    assert cli.refused("audit", "--archive", archive, code=2)["kind"] == "LedgerFileError"


INFINITE = b'{"slot":1,"owner":"11111111111111111111111111111111","lamports":Infinity,"data":""}'


@pytest.mark.parametrize("text", [b"", b"[]", b'{"data": 3}', b"{}", b"[" * 60_000, INFINITE])
def test_an_account_that_cannot_be_read_is_refused(cli, archive, text):
    (archive / "chain.json").write_bytes(text)
    assert cli.refused("audit", "--archive", archive, code=2)["kind"] == "InputError"


def test_a_ledger_that_is_a_fifo_is_refused(cli, archive):
    (archive / "ledger.jsonl").unlink()
    os.mkfifo(archive / "ledger.jsonl")
    assert cli.refused("audit", "--archive", archive, code=2)["kind"] == "InputError"


@pytest.mark.parametrize("text", ["3", "5:2", "a:b", "-1:2", "2:2"])
def test_rounds_that_are_no_span_are_refused(cli, recorded, text):
    error = cli.refused("audit", "--archive", recorded, "--rounds", text, code=2)
    assert error["kind"] == "InputError"


@pytest.mark.parametrize(("is_true", "code"), [(True, 0), (False, 1)])
def test_a_disk_that_is_full_for_the_state_keeps_no_result_back(
    cli, archive, tmp_path, monkeypatch, is_true, code
):
    monkeypatch.setattr(audit_point, "REST_SECONDS", 0.0)
    if not is_true:
        flip(blobs(archive, "payload")[0], 9)
    with no_file_beyond(1024):
        done = cli("audit", "--archive", archive, "--state", tmp_path / "new", "--json")
    assert done.code == code
    assert done.json["conclusion"] == ("good" if is_true else "wrong")
    assert done.err.count("keeps no more of its state") == 1
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"lock"}


def test_two_audits_do_not_keep_their_state_in_one_folder(cli, recorded, tmp_path):
    state = ("--state", tmp_path / "state")
    with FolderLock(tmp_path / "state"):
        error = cli.refused("audit", "--archive", recorded, *state, code=2)
    assert error["kind"] == "FolderInUseError"
    cli.ok("audit", "--archive", recorded, *state)


def test_rounds_end_the_replay(cli, recorded):
    found = cli.json("audit", "--archive", recorded, "--rounds", "0:2")
    assert found["conclusion"] == "good"
    assert found["counts"]["applied_rounds"] == 2
    assert found["counts"]["rounds"] == ROUNDS


def test_a_checkpoint_that_nobody_has_is_missing(cli, recorded):
    done = cli("audit", "--archive", recorded, "--from-checkpoint", 2, "--json")
    assert done.code == 2
    assert done.json["findings"][0]["rule"] == "state root"


def forged_tail(folder: Path) -> None:
    """Append an event that carries the next number, of a kind that the run has had."""
    found = lines(folder)
    line = next(one for one in found if b"RunFunded" in one)
    rewrite(folder, [*found, with_sequence(folder, line)])


async def test_a_node_proves_the_ledger_but_no_forged_tail(run_factory, data, tmp_path):
    run = await run_factory.create(3, **NO_AUDITS)
    run.has_blob_folders = True
    await start_members(run, ["ada", "bob"])
    await run.finish()
    folder = await record(run, data[0], tmp_path / "archive")
    server = RpcServer(run.chain, ServerConfig(slot_milliseconds=None))
    await server.start()

    def asked(ledger: Path | None, *archives: Path) -> Asked:
        at, (urls, names) = run.at.run, ([server.rpc_url], [str(one) for one in archives])
        return Asked(at, None, urls, names, ledger, tmp_path)

    def judged(inputs: Inputs) -> Report:
        return audit(inputs, Plan(num_threads=1), lambda _: None).report

    try:
        inputs = await asyncio.to_thread(gather, asked(None, folder))
        assert not inputs.is_offline
        assert judged(inputs).conclusion is Conclusion.GOOD
        disagreeing = _other_node(inputs)
        assert Rule.RUN_ACCOUNT in {one.rule for one in judged(disagreeing).findings}
        assert judged(disagreeing).conclusion is Conclusion.WRONG
        (folder / "ledger.jsonl").rename(tmp_path / "moved.jsonl")
        from_history = await asyncio.to_thread(gather, asked(None, folder))
        assert judged(from_history).conclusion is Conclusion.GOOD
        trying = replace(asked(None, folder), rpc=[NOWHERE, server.rpc_url])
        after_outage = await asyncio.to_thread(gather, trying)
        assert [one.partition(": ")[0] for one in after_outage.silent] == [NOWHERE]
        assert judged(after_outage).conclusion is Conclusion.GOOD
        async with lying(run) as liar:
            trying = replace(trying, rpc=[liar, server.rpc_url])
            after_lie = await asyncio.to_thread(gather, trying)
        assert len(after_lie.words) == 2
        assert judged(after_lie).conclusion is Conclusion.GOOD
        (tmp_path / "moved.jsonl").rename(folder / "ledger.jsonl")
        forged_tail(folder)
        found = judged(await asyncio.to_thread(gather, asked(None, folder)))
    finally:
        await server.stop()
    assert found.conclusion is not Conclusion.GOOD
    assert Grade.MISSING in {one.grade for one in found.findings if one.rule is Rule.CHAIN_HASH}


class Hiding(RpcServer):
    """A node without the newest signature of each page."""

    def _lookup(self, name: str) -> Method | None:
        found = super()._lookup(name)
        if name != "getSignaturesForAddress" or found is None:
            return found
        return lambda params: found(params)[1:]


@asynccontextmanager
async def lying(run: InProcessRun) -> AsyncIterator[str]:
    """A node of the run's chain that hides its newest transaction."""
    server = Hiding(run.chain, ServerConfig(slot_milliseconds=None))
    await server.start()
    try:
        yield server.rpc_url
    finally:
        await server.stop()


def test_an_audit_whose_nodes_have_no_account_is_not_offline(recorded, tmp_path):
    offline = gather(Asked(None, None, [], [str(recorded)], None, tmp_path))
    assert offline.is_offline
    assert not replace(offline, gone=(Absence("a node", False),)).is_offline


def _other_node(inputs: Inputs) -> Inputs:
    """Add a node that shows another chain hash for the same number of events."""
    (word,) = inputs.words
    other = replace(word.run, chain_hash=bytes(32))
    return replace(inputs, words=(word, Word("a second node", other)))


def test_the_page_has_verdict_counts_and_picture_and_loads_nothing(cli, recorded, tmp_path):
    page = tmp_path / "report.html"
    cli.ok("audit", "--archive", recorded, "--html", page)
    text = page.read_text()
    assert "PASS: everything that was checked" in text
    assert text.count("<svg") == 1
    for loading in ("<script", "src=", "<link", "url(http", "@import"):
        assert loading not in text


@pytest.mark.parametrize(
    ("page", "found"),
    [("file/report.html", "not a directory"), ("file", "it is not installed")],
)
def test_a_page_that_cannot_be_made_is_refused_before_the_audit(
    cli, tmp_path, monkeypatch, page, found
):
    (tmp_path / "file").touch()
    if page == "file":
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ("audit", "--archive", tmp_path / "no archive", "--html", tmp_path / page)
    assert cli.refused(*words, code=2)["found"] == found


def test_bytes_come_from_a_store_and_a_lie_there_is_named(cli, archive, tmp_path):
    """A store holds the bytes, a folder the ledger; obstore takes a folder for a store as well."""
    store = tmp_path / "store"
    store.mkdir()
    for kind in ("header", "payload", "config", "manifest"):
        (archive / kind).rename(store / kind)
    sources = ("--archive", archive, "--archive", f"file://{store}")
    assert cli.json("audit", *sources)["conclusion"] == "good"
    flip(blobs(store, "payload")[0], 9)
    done = cli("audit", *sources, "--json")
    assert done.code == 1
    assert done.json["findings"][0]["rule"] == "payload"


def test_a_member_that_nobody_reaches_leaves_data_missing(cli, archive):
    shutil.rmtree(archive / "payload")
    done = cli("audit", "--archive", archive, "--archive", NOWHERE, "--json")
    assert done.code == 2


def test_an_address_that_is_none_is_refused(cli, archive):
    error = cli.refused("audit", "--archive", archive, "--archive", "ftp://somewhere", code=2)
    assert error["kind"] == "EndpointError"


@pytest.mark.parametrize(("is_true", "code"), [(True, 2), (False, 1)])
def test_a_disk_that_is_full_for_the_page_keeps_no_result_back(
    cli, archive, tmp_path, is_true, code
):
    if not is_true:
        flip(blobs(archive, "payload")[0], 9)
    with no_file_beyond(100):
        done = cli("audit", "--archive", archive, "--html", tmp_path / "report.html")
    assert done.code == code
    assert done.out.splitlines()[-1].startswith("PASS" if is_true else "FAIL")
    assert "report.html was not written" in done.err
    assert not (tmp_path / "report.html").exists()
