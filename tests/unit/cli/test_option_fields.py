"""Every option lands in the field that it is named for: each row of a table gives one option."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from solders.keypair import Keypair
from support.run_requests import request, with_changes

from troth_cli import tree
from troth_cli.app import build
from troth_cli.keyfiles import write_key
from troth_cli.workflows.recording import Recording
from troth_client.archive.process import Archived, ArchiveSettings
from troth_client.archive.room import Keeping
from troth_client.hub.process import HubSettings
from troth_client.train.place import Place
from troth_coordinator.chain.priority import PriorityKind, PriorityPolicy
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.view import Role

RUN, PROGRAM, OWNER, OTHER = (Keypair.from_seed(bytes([number]) * 32) for number in range(4))
RPC, OTHER_RPC = "http://127.0.0.1:9", "http://127.0.0.1:10"
SOL = 10**9
POLICY = PriorityPolicy(PriorityKind.PERCENTILE, 75, SOL // 10_000, SOL // 100)
ROUNDS = {"schedule.rounds": 77}
CONFIG = """\
[schedule]
rounds = 77

[hints]
device = "mps"
precision = "fp32"
validate_every = 9
"""
BASE = request(
    OWNER,
    RUN.pubkey(),
    rpc_urls=(RPC,),
    data=Path("state/data"),
    state=Path("state"),
    fetches_data=True,
    device="auto",
    listen="127.0.0.1:0",
    session_lamports=SOL // 4,
    refill_lamports=SOL // 2,
    priority=POLICY,
    ledger=Path("state/ledger.jsonl"),
)
"""The request of `troth join RUN` with a key, a node, a state folder and no other option."""

ARCHIVE = {"archive": Path("kept"), "ledger": None}
"""It has a ledger of its own."""

WITNESS = [
    (("--json",), {}),
    (("--debug",), {}),
    (
        ("--config", "more.toml"),
        {
            "config": load_config([], ROUNDS).config,
            "device": "mps",
            "precision": "fp32",
            "validate_every": 9,
        },
    ),
    (("--rpc", OTHER_RPC), {"rpc_urls": (RPC, OTHER_RPC)}),
    (("--program-id", PROGRAM.pubkey()), {"program": str(PROGRAM.pubkey())}),
    (("--key", "other.json"), {"owner": bytes(OTHER)}),
    (("--archive", "kept"), ARCHIVE),
    (
        ("--archive-max-gb", "2", "--archive", "kept"),
        {**ARCHIVE, "archive_bytes": 2 * 10**9},
    ),
    (
        ("--archive-keep-rounds", "3", "--archive", "kept"),
        {**ARCHIVE, "archive_rounds": 3},
    ),
    (("--data", "tokens"), {"data": Path("tokens"), "fetches_data": False}),
    (("--from", "http://127.0.0.1:11"), {"data_from": ("http://127.0.0.1:11",)}),
    (("--start", "weights"), {"start": Path("weights")}),
    (("--device", "cpu"), {"device": "cpu"}),
    (("--listen", "0.0.0.0:12"), {"listen": "0.0.0.0:12"}),
    (("--endpoint", "http://127.0.0.1:13"), {"endpoint": "http://127.0.0.1:13"}),
    (
        ("--state", "own"),
        {"state": Path("own"), "data": Path("own/data"), "ledger": Path("own/ledger.jsonl")},
    ),
    (("--session-sol", "5"), {"session_lamports": 5 * SOL}),
    (("--refill-sol", "6"), {"refill_lamports": 6 * SOL}),
    (
        ("--priority-fee", "fixed:7"),
        {"priority": replace(POLICY, kind=PriorityKind.FIXED, amount=7)},
    ),
    (("--priority-cap-sol", "8"), {"priority": replace(POLICY, cap_lamports=8 * SOL)}),
    (("--priority-epoch-cap-sol", "9"), {"priority": replace(POLICY, epoch_cap_lamports=9 * SOL)}),
    (("--stake-sol", "10"), {"stake_lamports": 10 * SOL}),
    (("--top-up-sol", "11"), {"top_up_lamports": 11 * SOL}),
    (("--hub", "http://127.0.0.1:14"), {"hubs": ("http://127.0.0.1:14",)}),
    (("--store", "s3://bucket/prefix"), {"stores": ("s3://bucket/prefix",)}),
    (("--allow-private",), {"allow_private": True}),
    (("--threads", "12"), {"num_threads": 12}),
    (("--micro-batch", "13"), {"microbatch_sequences": 13}),
    (("--past-mib", "14"), {"past_bytes": 14 * 2**20}),
    (("--no-ledger",), {"ledger": None}),
    (("--log-to", "tensorboard:board"), {"recording": Recording((Path("board"),))}),
    (("--metrics", "127.0.0.1:15"), {"recording": Recording(metrics=("127.0.0.1", 15))}),
    (("--anyway",), {"goes_on_anyway": True}),
    (("--check",), {"only_checks": True}),
    (("--plain",), {"is_plain": True}),
    (("--yes",), {"is_agreed": True}),
]
JOIN = [
    *WITNESS,
    (("--role", "trainer"), {"role": Role.TRAINER}),
    (("--compile",), {"compiles": True}),
    (("--ranks", "2", "--threads", "12"), {"place": Place(0, 2, 0), "num_threads": 12}),
]
ROWS = [
    *(("join", Role.TRAINER | Role.WITNESS, *row) for row in JOIN),
    *(("witness", Role.WITNESS, *row) for row in WITNESS),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Commands run in a folder with two keys and a config."""
    monkeypatch.chdir(tmp_path)
    write_key(Path("key.json"), OWNER)
    write_key(Path("other.json"), OTHER)
    Path("more.toml").write_text(CONFIG)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "role", "given", "changes"),
    ROWS,
    ids=[f"{name} {given[0]}" for name, _, given, _ in ROWS],
)
def test_an_option_changes_its_field_of_the_request_and_no_other(
    cli, asked, name, role, given, changes
):
    where = ("--key", "key.json", "--rpc", RPC, "--state", "state")
    cli.ok(name, RUN.pubkey(), *where, *given)
    (found,) = asked
    assert found == with_changes(BASE, **{"role": role, **changes})


def options_of(name):
    """The options of a command as they are written; of --ledger/--no-ledger the last."""
    params = tree.children(build())[name].params
    options = [one for one in params if one.param_type_name == "option" and one.name != "help"]
    return {[*one.opts, *one.secondary_opts][-1] for one in options}


@pytest.mark.parametrize(("name", "rows"), [("join", JOIN), ("witness", WITNESS)])
def test_every_option_has_a_row(name, rows):
    assert {given[0] for given, _changes in rows} == options_of(name)


@pytest.fixture
def nowhere(monkeypatch):
    """No chain is there, and nobody asks it anything."""
    monkeypatch.setattr("troth_cli.connection.connect", lambda *_: contextlib.nullcontext())


@pytest.mark.usefixtures("nowhere")
def test_the_options_of_a_hub_are_its_settings(cli, monkeypatch):
    served = []

    async def serve(settings, _client, _events):
        served.append(settings)

    monkeypatch.setattr("troth_client.hub.process.serve_hub", serve)
    bounds = ("--max-gb", "2", "--quota-mb", "3", "--keep-rounds", "4")
    cli.ok("hub", "--run", RUN.pubkey(), "--listen", "0.0.0.0:5", "--dir", "hub", *bounds)
    (found,) = served
    assert found == HubSettings(
        run=RUN.pubkey(),
        folder=Path("hub"),
        host="0.0.0.0",
        port=5,
        max_bytes=2 * 10**9,
        quota_bytes=3 * 10**6,
        keep_rounds=4,
    )


@pytest.mark.usefixtures("nowhere")
def test_the_options_of_an_archive_are_its_settings(cli, monkeypatch):
    kept = []

    async def keep(settings, _client, _events):
        kept.append(settings)
        return Archived(round=0, num_bytes=0, num_missing=0, is_over=True)

    monkeypatch.setattr("troth_client.archive.process.keep_archive", keep)
    bounds = ("--max-gb", "2", "--keep-rounds", "3", "--allow-private")
    others = ("--from", "http://127.0.0.1:4", "--copy-to", "s3://copy")
    cli.ok("archive", RUN.pubkey(), "--out", "kept", "--work", "work", *bounds, *others)
    cli.ok("archive", RUN.pubkey(), "--out", "s3://out", "--work", "work")
    own, stored = kept
    assert own == ArchiveSettings(
        run=RUN.pubkey(),
        folder=Path("kept"),
        keeping=Keeping(2 * 10**9, 3),
        others=("http://127.0.0.1:4",),
        allow_private=True,
        copy_to="s3://copy",
    )
    assert stored == ArchiveSettings(run=RUN.pubkey(), folder=Path("work"), store="s3://out")
