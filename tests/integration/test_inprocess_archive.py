"""An archive keeps what an audit needs of a run, and lists what it could not get.

One run is played once; members then hold all of its bytes, or lie about them.
"""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from solders.signature import Signature
from support.archives import NAMES, recorded
from support.disks import small_disk
from support.forgeries import blobs, flip
from support.ledgers import place_of, with_a_close_of_its_own
from support.recordings import audit_of
from support.runs import AUDITED

from troth_attestation import header as headers
from troth_audit.replay.findings import Grade, Rule
from troth_client.archive.check import check_archive
from troth_client.archive.errors import ArchiveFolderError
from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.room import Keeping
from troth_client.runtime.files import FolderInUseError, read_regular
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.event_types_rounds import PayloadCommitted, RoundClosed
from troth_coordinator.ledger.errors import LedgerFileError
from troth_coordinator.ledger.file import Ledger
from troth_coordinator.ledger.fold import Fold
from troth_coordinator.ledger.follow import REFUSALS
from troth_coordinator.rules.phase import Phase

ROUNDS = 5
KINDS = ("header", "payload", "openings", "config", "manifest")


@pytest.fixture(scope="module")
def past(data, tmp_path_factory):
    """A run of some rounds with audits, and its whole archive, kept while it was played."""
    with recorded(data, tmp_path_factory.mktemp("past"), ROUNDS, **AUDITED) as found:
        yield found


def events_in(path):
    ledger = Ledger.of(path / "ledger.jsonl")
    reader = ledger.head.reader()
    return [event for entry in ledger.entries() for event in reader.events(entry)]


def problems(path):
    """The problems that a check finds, by the address of each item."""
    found = {}
    for one in check_archive(path).problems:
        found.setdefault(f"{one.kind}/{one.key}", one.what.partition(":")[0])
    return found


async def test_an_archive_holds_all_that_the_events_of_a_run_name(past):
    events, fold = events_in(past.path), Fold()
    fold.absorb(events)
    assert fold.hash == (await past.run.view()).run.chain_hash
    commits = {one.header_hash.hex() for one in events if isinstance(one, PayloadCommitted)}
    commits.discard(bytes(32).hex())
    sets = {one.root.hex() for one in events if one.name == "OpeningsPosted"}
    assert len(commits) >= 4 * (ROUNDS - 1)
    assert sets
    assert past.names("header") == commits
    assert past.names("openings") == sets
    folder = ArchiveFolder(past.path)
    signed = [folder.get("header", bytes.fromhex(key), 10_000) for key in commits]
    roots = {headers.decode(one[: headers.HEADER_BYTES]).payload_root.hex() for one in signed}
    assert past.names("payload") == roots
    checked = check_archive(past.path)
    assert checked.problems == []
    assert checked.whole == {kind: len(past.names(kind)) for kind in KINDS}
    assert checked.round == ROUNDS
    assert checked.forgotten_before == 0


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda _, data: bytes([data[0] ^ 1]) + data[1:], id="other bytes"),
        pytest.param(lambda _, data: data[:-1], id="truncated"),
        pytest.param(lambda _, data: data + bytes(2**20), id="too long"),
    ],
)
async def test_members_that_lie_cost_nothing_while_one_tells_the_truth(past, tmp_path, spoil):
    network = past.network(spoil, "ada", "bob", "cyd")
    archivist = past.archivist(tmp_path / "out", network=network)
    keeper = await archivist.until_done()
    assert keeper.is_done
    assert archivist.missing() == []
    assert check_archive(archivist.path).is_whole
    everybody = past.network(spoil, *NAMES.split())
    archivist = past.archivist(tmp_path / "lies", network=everybody)
    keeper = await archivist.until_done()
    assert keeper.is_done, "nobody has the rest"
    assert not any(map(archivist.kept, KINDS))
    listed = {f"{one['kind']}/{one['key']}" for one in archivist.missing()}
    named = {f"{kind}/{key}" for kind in KINDS if kind != "payload" for key in past.names(kind)}
    assert listed == named
    assert keeper.num_missing == len(named)
    assert problems(archivist.path) == dict.fromkeys(named, "missing")


async def test_what_one_payload_lacks_is_listed_with_its_place(past, tmp_path):
    lost = sorted(past.names("payload"))[0]
    network = past.network(
        lambda at, data: None if lost in at else data, "ada", "bob", "cyd", "dan"
    )
    archivist = past.archivist(tmp_path / "out", network=network)
    await archivist.until_done()
    (found,) = archivist.missing()
    assert found["kind"] == "payload"
    assert found["key"] == lost
    assert found["round"] in range(ROUNDS)
    assert found["participant"] in range(4)
    assert "ada" in found["why"]
    archivist = past.archivist(archivist.path)
    await archivist.until_done()
    assert archivist.missing() == [], "a later start asks again"


class Liar(CoordinatorClient):
    """A node that shows events as `alter` makes them, as often as `lies` says."""

    lies = 1

    def __init__(self, rpc, alter):
        super().__init__(rpc)
        self.alter = alter

    async def landed(self, signature, run):
        found = await super().landed(signature, run)
        if found is None or not self.lies:
            return found
        record, events = found
        changed = tuple(map(self.alter, events))
        self.lies -= changed != events
        return record, changed


def with_another_header(event):
    """A commit of a round in the middle."""
    if not isinstance(event, PayloadCommitted) or event.round != ROUNDS - 2:
        return event
    other = bytes([event.header_hash[0] ^ 1]) + event.header_hash[1:]
    body = event.body.replace(event.header_hash, other)
    return replace(event, header_hash=other, body=body)


def with_another_end(event):
    """The very last event of the run, which no close follows."""
    if event.name != "PhaseStarted" or event.phase != Phase.FINISHED:
        return event
    return replace(event, body=event.body[:-1] + bytes([event.body[-1] ^ 1]))


async def test_a_tail_that_only_the_run_account_contradicts_is_read_again(past, tmp_path):
    archivist = past.archivist(tmp_path / "out")
    archivist.client = Liar(past.run.rpc, with_another_end)
    keeper = await archivist.until_done()
    (refused,) = archivist.events.named("ledger_refused")
    assert "newest entries" in refused["reason"]
    assert keeper.is_done
    assert events_in(archivist.path) == events_in(past.path)


async def test_a_node_that_lost_our_last_entry_is_read_again_from_the_last_close(past, tmp_path):
    archivist = past.archivist(tmp_path / "out")
    await archivist.until_done()
    ledger = archivist.path / "ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    last = json.loads(lines[-1])
    forked = Signature.from_bytes(bytes(64))
    ledger.write_text("".join(lines[:-1]) + lines[-1].replace(last["signature"], str(forked)))
    (archivist.path / "chain.json").unlink()
    again = past.archivist(tmp_path / "out")
    keeper = await again.until_done()
    assert again.events.named("chain_unreachable")
    assert again.events.named("ledger_refused")
    assert keeper.is_done
    assert events_in(archivist.path) == events_in(past.path)


async def test_a_tail_that_the_next_close_contradicts_is_cut_off_and_read_again(past, tmp_path):
    archivist = past.archivist(tmp_path / "out")
    archivist.client = Liar(past.run.rpc, with_another_header)
    keeper = await archivist.until_done()
    (refused,) = archivist.events.named("ledger_refused")
    assert f"close of round {ROUNDS - 2}" in refused["reason"]
    assert keeper.is_done
    assert check_archive(archivist.path).is_whole
    assert archivist.missing() == []
    assert events_in(archivist.path) == events_in(past.path)


async def test_a_node_that_goes_on_lying_costs_the_tail_only(past, tmp_path):
    archivist = past.archivist(tmp_path / "out")
    archivist.client = Liar(past.run.rpc, with_another_header)
    archivist.client.lies = 10**6
    async with archivist.opened() as keeper:
        for _ in range(40):
            await keeper.look()
    assert 2 < len(archivist.events.named("ledger_refused")) < 8, "it asks less and less often"
    closed = [one.round for one in events_in(archivist.path) if isinstance(one, RoundClosed)]
    assert closed == list(range(ROUNDS - 3)), "the newest close goes, too: what follows it may lie"
    archivist.client = past.run.client
    await archivist.until_done()
    assert check_archive(archivist.path).is_whole


async def test_a_lie_with_a_close_of_its_own_is_read_anew(past, tmp_path):
    """One node lied once, consistently; later answers contradict the ledger for ever."""
    whole = Ledger.of(past.path / "ledger.jsonl")
    forged = with_a_close_of_its_own(whole.head, list(whole.entries()))
    lines = [one.to_line() for one in forged[: place_of(forged, "RoundClosed") + 1]]
    out = tmp_path / "out"
    out.mkdir()
    (out / "ledger.jsonl").write_bytes(b"".join([whole.head.to_line(), *lines]))
    archivist = past.archivist(out)
    keeper = await archivist.until_done()
    assert keeper.is_done
    assert len(archivist.events.named("ledger_refused")) == REFUSALS
    assert len(archivist.events.named("ledger_renewed")) == 1
    assert events_in(out) == events_in(past.path)
    assert check_archive(out).is_whole


async def test_an_archive_goes_on_after_a_kill_at_any_place(past, tmp_path):
    archivist = past.archivist(tmp_path / "out")
    async with archivist.opened() as keeper:
        await keeper.look()
    half = archivist.path
    with (half / "ledger.jsonl").open("ab") as stream:
        stream.write(b'{"slot":1,"signature":"5h')
    (half / "header" / ("ab" * 32 + ".tmp")).write_bytes(b"half")
    (half / "missing.json").write_bytes(b'{"missing":' + b"[" * 100_000)
    (half / "chain.json.tmp").write_bytes(b"half")
    keeper = await past.archivist(half).until_done()
    assert keeper.is_done
    assert check_archive(half).is_whole
    assert list(half.rglob("*.tmp")) == []
    assert events_in(half) == events_in(past.path)


async def test_only_payloads_and_openings_of_the_newest_rounds_are_kept(past, tmp_path):
    archivist = past.archivist(tmp_path / "out", Keeping(rounds=2))
    keeper = await archivist.until_done()
    assert keeper.is_done
    assert archivist.missing() == []
    assert archivist.kept("header") == past.names("header")
    assert set() < archivist.kept("payload") < past.names("payload")
    checked = check_archive(archivist.path)
    assert checked.forgotten_before == ROUNDS - 1
    lost = {(one.round, one.what) for one in checked.problems}
    assert {what for _, what in lost} == {"forgotten to make room"}
    assert {round_ for round_, _ in lost} == set(range(ROUNDS - 1))


async def test_a_full_archive_forgets_its_oldest_rounds_and_says_so(past, tmp_path):
    whole = sum(one.stat().st_size for one in past.path.rglob("*") if one.is_file())
    most = whole * 2 // 3
    for _ in range(2):  # a second start forgets no more
        archivist = past.archivist(tmp_path / "out", Keeping(max_bytes=most))
        await archivist.until_done()
        found = check_archive(archivist.path)
        assert 0 < found.forgotten_before < ROUNDS
        assert {one.round for one in found.problems} == set(range(found.forgotten_before))
        parts = [one for one in archivist.path.rglob("*") if one.is_file()]
        assert sum(one.stat().st_size for one in parts) <= most + 10_000
    first = past.archivist(tmp_path / "again", Keeping(max_bytes=most))
    async with first.opened() as keeper:
        for _ in range(20):
            await keeper.look()
    assert [one["before_round"] for one in first.events.named("archive_forgot")]


async def test_a_full_disk_ends_nothing_and_loses_nothing(past, tmp_path):
    with small_disk(tmp_path / "disk", "1600k") as disk:
        archivist = past.archivist(disk / "out")
        async with archivist.opened() as keeper:
            for _ in range(20):
                await keeper.look()
        assert archivist.events.named("disk_full")
        before = {one for one in archivist.path.rglob("*") if one.is_file()}
        assert {one.what for one in check_archive(archivist.path).problems} <= {"missing"}
        async with past.archivist(archivist.path).opened() as keeper:
            for _ in range(3):
                await keeper.look()
        assert before <= {one for one in archivist.path.rglob("*") if one.is_file()}
        assert list(archivist.path.rglob("*.tmp")) == []


async def test_strange_things_in_the_place_of_bytes(past, tmp_path):
    out = tmp_path / "out"
    taken, linked, piped = sorted(past.names("payload"))[:3]
    (out / "payload" / taken).mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.write_bytes((past.path / "payload" / linked).read_bytes())
    (out / "payload" / linked).symlink_to(outside)
    os.mkfifo(out / "payload" / piped)
    archivist = past.archivist(out)
    await archivist.until_done()
    assert [one["key"] for one in archivist.missing()] == [taken]
    assert "something else in its place" in archivist.missing()[0]["why"]
    odd = out / "payload" / "\x1b[31mred\n.tmp"
    odd.mkdir()
    told = {f"payload/{taken}": "missing", f"folder/{taken}": "no file of an archive"}
    told[f"folder/{odd.name}"] = "no file of an archive"
    assert problems(out) == told
    await past.archivist(out).until_done()
    assert odd.is_dir(), "a folder in the place of a temporary file ends nothing"
    assert read_regular(out / "payload" / linked, 10**6) == outside.read_bytes()
    assert not (out / "payload" / linked).is_symlink()


@pytest.mark.parametrize("damage", ["cut", "flipped", "link", "pipe", "gone", "empty"])
async def test_a_check_names_what_is_damaged(past, tmp_path, damage):
    archivist = past.archivist(tmp_path / "out")
    await archivist.until_done()
    for kind in ("header", "payload", "openings", "config"):
        key = sorted(archivist.kept(kind))[0]
        path = archivist.path / kind / key
        data = path.read_bytes()
        path.unlink()
        if damage == "pipe":
            os.mkfifo(path)
        elif damage == "link":
            path.symlink_to(past.path / kind / key)
        elif damage != "gone":
            made = {"cut": data[:-1], "flipped": data[:-1] + bytes([data[-1] ^ 1]), "empty": b""}
            path.write_bytes(made[damage])
        is_good = kind == "header" and damage == "flipped"  # a signature is not in the address
        read = ArchiveFolder(archivist.path).get(kind, bytes.fromhex(key), 10**8)
        assert (read is not None) == is_good
        what = problems(archivist.path)[f"{kind}/{key}"]
        expected = "damaged" if damage in ("cut", "flipped") else "missing"
        if is_good:
            expected = "a false signature"
        assert what == expected


async def test_a_folder_that_cannot_be_an_archive_of_this_run(past, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    for path in (file, file / "below"):
        with pytest.raises(ArchiveFolderError):
            ArchiveFolder(path)
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "ledger.jsonl")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "payload").symlink_to(tmp_path / "out")
    for name in ("out", "linked"):
        with pytest.raises(ArchiveFolderError):
            ArchiveFolder(tmp_path / name)
    async with past.archivist(tmp_path / "used").opened():
        with pytest.raises(FolderInUseError):
            await past.archivist(tmp_path / "used").until_done()
    ledger = tmp_path / "used" / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace(str(past.run.at.run), str(past.run.at.vault)))
    with pytest.raises(LedgerFileError, match="the ledger of run"):
        await past.archivist(tmp_path / "used").until_done()
    assert file.read_bytes() == b"mine"


def test_an_audit_tests_every_opening_set_and_names_a_changed_one(past, tmp_path):
    archive = Path(shutil.copytree(past.path, tmp_path / "archive"))
    report = audit_of(archive)
    assert report.findings == []
    assert report.counts["exact_tests"] == report.counts["openings"] > 0
    assert report.counts["openings_not_kept"] == 0
    flip(blobs(archive, "openings")[0], 9)
    (found,) = audit_of(archive).findings
    assert found.grade is Grade.DISCREPANCY
    assert found.rule is Rule.OPENINGS
