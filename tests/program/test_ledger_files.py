"""A run's ledger file: whole after a crash, proven by the chain, filled in spite of lying nodes."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.disks import no_file_beyond
from support.program.ledger_files import (
    LyingRpc,
    all_entries,
    client_of,
    flipped,
    head_of,
    honest,
    open_ledger,
    played,
    written,
)
from support.program.rounds import RoundDriver

from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerFileError, LedgerHashError, LedgerOrderError
from troth_coordinator.ledger.file import Ledger, LedgerFile, LedgerHead
from troth_coordinator.ledger.follow import Match, compare, follow
from troth_coordinator.ledger.merge import Merging


@pytest.fixture(scope="module")
def driver() -> RoundDriver:
    return played()


@pytest.fixture(scope="module")
def entries(driver: RoundDriver) -> list[Entry]:
    return asyncio.run(all_entries(driver))


def has_close(entry: Entry) -> bool:
    return any(name == "RoundClosed" for name, _ in entry.events)


def place_of(entries: list[Entry], name: str, number: int = 0) -> int:
    found = [at for at, one in enumerate(entries) if one.events[0][0] == name]
    return found[number]


def merged(driver: RoundDriver, *ledgers: list[Entry]) -> tuple[list[Entry], Merging]:
    merging = Merging(head_of(driver).reader())
    return list(merging.entries(ledgers)), merging


def test_a_ledger_from_an_rpc_node_is_proven_by_the_run_account(
    driver: RoundDriver, tmp_path: Path
) -> None:
    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        added = asyncio.run(follow(client_of(driver), ledger))
        assert added > 20
        assert compare(ledger.fold, driver.run).match is Match.WHOLE
        assert asyncio.run(follow(client_of(driver), ledger)) == 0
    with open_ledger(driver, tmp_path / "ledger.jsonl") as again:
        assert again.fold.hash == driver.run.chain_hash
        assert again.last is not None


def test_a_ledger_goes_on_where_it_stopped_and_asks_for_what_is_new(tmp_path: Path) -> None:
    driver = RoundDriver(4, max_rounds=3, checkpoint_every=3, keep_rounds=2)
    driver.start()
    client = client_of(driver)
    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        asyncio.run(follow(client, ledger))
        before = client.rpc.num_asked
        driver.play(1)
        assert compare(ledger.fold, driver.run).match is Match.BEHIND
        added = asyncio.run(follow(client, ledger))
        assert client.rpc.num_asked - before == added > 0
        assert compare(ledger.fold, driver.run).match is Match.WHOLE


@pytest.mark.parametrize("torn", [1, 2, 40])
def test_a_torn_last_line_is_cut_off(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path, torn: int
) -> None:
    path = written(driver, tmp_path / "ledger.jsonl", entries[:8])
    whole = path.read_bytes()
    path.write_bytes(whole + entries[8].to_line()[:-torn])
    assert len(list(Ledger.of(path).entries())) == 8
    with open_ledger(driver, path) as ledger:
        assert path.read_bytes() == whole
        ledger.append(entries[8:])
        assert ledger.fold.hash == driver.run.chain_hash
    assert list(Ledger.of(path).entries()) == entries


def test_a_torn_head_begins_anew(driver: RoundDriver, entries: list[Entry], tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(head_of(driver).to_line()[:-5])
    with open_ledger(driver, path) as ledger:
        ledger.append(entries)
    assert list(Ledger.of(path).entries()) == entries


def test_a_full_disk_leaves_whole_entries(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    with open_ledger(driver, path) as ledger:
        ledger.append(entries[:5])
        size = path.stat().st_size
        with no_file_beyond(size + 30), pytest.raises(OSError, match="File too large"):
            ledger.append(entries[5:])
        assert path.stat().st_size == size
        ledger.append(entries[5:])
        assert ledger.fold.hash == driver.run.chain_hash
    assert list(Ledger.of(path).entries()) == entries


def test_only_one_process_writes_a_ledger(driver: RoundDriver, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with open_ledger(driver, path), pytest.raises(LedgerFileError, match="another process"):
        open_ledger(driver, path)
    open_ledger(driver, path).close()


def test_the_ledger_of_another_run_is_left_alone(driver: RoundDriver, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    head = head_of(driver)
    LedgerFile(path, head).close()
    before = path.read_bytes()
    other = LedgerHead(head.program, head.program, head.genesis_hash)
    with pytest.raises(LedgerFileError, match=f"ledger of run {head.program}"):
        LedgerFile(path, other)
    assert path.read_bytes() == before


BAD_HEADS = [
    b"",
    b"no ledger\n",
    b"[]\n",
    b'{"troth_ledger":2}\n',
    b"\xff" * 300_000,
    b"[" * 100_000 + b"\n",
    b'{"troth_ledger":1,"program":"x","run":"y","genesis_hash":""}\n',
]


@pytest.mark.parametrize("data", BAD_HEADS, ids=range(len(BAD_HEADS)))
def test_a_file_that_is_no_ledger_is_refused(
    driver: RoundDriver, tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(data)
    with pytest.raises(LedgerFileError, match="a ledger of version 1"):
        Ledger.of(path)
    if data:
        with pytest.raises(LedgerFileError, match="a ledger of version 1"):
            open_ledger(driver, path)
        assert path.read_bytes() == data


def bad_lines(line: bytes) -> dict[str, bytes]:
    good = json.loads(line)
    name, body = good["events"][0]
    return {
        "no JSON": b"{\n",
        "no object": b"17\n",
        "deep": b"[" * 100_000 + b"\n",
        "long": b" " * 300_000 + b"\n",
        "signature": json.dumps(good | {"signature": "x"}).encode() + b"\n",
        "slot": json.dumps(good | {"slot": -1}).encode() + b"\n",
        "field": json.dumps(good | {"more": 1}).encode() + b"\n",
        "base64": json.dumps(good | {"events": [[name, "%"]]}).encode() + b"\n",
        "short": json.dumps(good | {"events": [[name, body[:8]]]}).encode() + b"\n",
        "unknown": json.dumps(good | {"events": [["Unknown", body]]}).encode() + b"\n",
    }


def num_passed_over(entries: list[Entry], found: list[Entry]) -> int:
    return len({one.signature for one in entries} - {one.signature for one in found})


@pytest.mark.parametrize("kind", bad_lines(b'{"events":[["a","AAAA"]]}'))
def test_a_damaged_line_is_named_and_passed_over_in_a_repair(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path, kind: str
) -> None:
    path = written(driver, tmp_path / "ledger.jsonl", entries[:5])
    bad = bad_lines(entries[5].to_line())[kind]
    path.write_bytes(path.read_bytes() + bad + b"".join(one.to_line() for one in entries[6:]))
    before = path.read_bytes()
    with pytest.raises(LedgerFileError):
        open_ledger(driver, path)
    assert path.read_bytes() == before
    found, merging = merged(driver, list(Ledger.of(path).sound_entries()))
    assert merging.gap
    found, merging = merged(driver, list(Ledger.of(path).sound_entries()), [entries[5]])
    assert num_passed_over(entries, found) == 0
    assert not merging.gap


def test_a_node_that_changes_an_event_is_found_at_the_close_and_another_one_heals(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path
) -> None:
    changed = entries[place_of(entries, "PayloadCommitted", 5)].signature

    def lie(signature, record):
        return flipped(record) if str(signature) == changed else record

    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        with pytest.raises(LedgerHashError, match="close of round 1"):
            asyncio.run(follow(client_of(driver, lie), ledger))
        asyncio.run(follow(client_of(driver), ledger))
        assert compare(ledger.fold, driver.run).match is Match.WHOLE
    assert list(Ledger.of(tmp_path / "ledger.jsonl").entries()) == entries


def test_a_node_that_forgot_transactions_leaves_the_proven_part(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path
) -> None:
    hidden = entries[place_of(entries, "Attested", 6)].signature

    def forget(signature, record):
        return None if str(signature) == hidden else record

    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        asyncio.run(follow(client_of(driver, forget), ledger))
        assert ledger.fold.next_sequence < driver.run.event_sequence
        assert compare(ledger.fold, driver.run).match is Match.BEHIND


def test_a_forged_tail_is_not_the_runs(driver: RoundDriver, tmp_path: Path) -> None:
    last = []

    def lie(signature, record):
        last.append(str(signature))
        return flipped(record) if len(last) == num_entries else record

    num_entries = len(asyncio.run(_signatures(driver)))
    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        asyncio.run(follow(client_of(driver, lie), ledger))
        assert compare(ledger.fold, driver.run).match is Match.OTHER
        ledger.cut_to_proven()
        asyncio.run(follow(client_of(driver), ledger))
        assert compare(ledger.fold, driver.run).match is Match.WHOLE


async def _signatures(driver: RoundDriver) -> list[object]:
    return list(await LyingRpc(driver, honest).signatures(driver.at.run))


def test_a_hole_of_one_ledger_is_filled_from_another(
    driver: RoundDriver, entries: list[Entry]
) -> None:
    for at in range(len(entries)):
        first = entries[:at] + entries[at + 1 :]
        second = entries[: (at + 7) % len(entries)] + entries[(at + 7) % len(entries) + 1 :]
        found, merging = merged(driver, first, second)
        assert merging.fold.hash == driver.run.chain_hash, at
        assert {one.signature for one in found} == {one.signature for one in entries}
        assert not merging.gap


def test_a_hole_in_all_of_them_is_a_gap_after_what_is_proven(
    driver: RoundDriver, entries: list[Entry]
) -> None:
    at = place_of(entries, "PayloadCommitted", 5)
    holed = entries[:at] + entries[at + 1 :]
    found, merging = merged(driver, holed, holed)
    assert "is missing or false" in merging.gap
    assert len(list(filter(has_close, found))) == 1
    whole = next(number for number, one in enumerate(found) if has_close(one)) + 1
    assert num_passed_over(entries[:whole], found[:whole]) == 0


def test_swapped_and_repeated_entries_are_put_in_order(
    driver: RoundDriver, entries: list[Entry]
) -> None:
    backwards = [*reversed(entries), *entries[:4]]
    _, merging = merged(driver, backwards)
    assert merging.fold.hash == driver.run.chain_hash
    assert not merging.gap


def test_a_merge_holds_one_stretch_of_each_ledger(
    driver: RoundDriver, entries: list[Entry]
) -> None:
    """Ledgers are files that are longer than memory: each is read as far as is needed."""
    closes = [at for at, one in enumerate(entries) if has_close(one)]
    assert len(closes) > 3
    places = [0, 0, 0]

    def read(number: int, ledger: list[Entry]) -> Iterator[Entry]:
        for places[number], entry in enumerate(ledger, start=1):
            yield entry

    holed = entries[: closes[0] + 3] + entries[closes[0] + 4 :]
    late = entries[closes[1] - 2 :]
    ledgers = [read(number, one) for number, one in enumerate((entries, holed, late))]
    merging = Merging(head_of(driver).reader())
    for at, _ in enumerate(merging.entries(ledgers)):
        stretch = next((one for one in closes if one >= at), len(entries)) + 1
        assert places[0] <= stretch, at
        assert places[1] <= stretch, at
        assert places[2] <= max(stretch - closes[1] + 2, 3), at
    assert merging.fold.hash == driver.run.chain_hash


def test_what_follows_a_gap_is_looked_for_in_all_that_is_left(
    driver: RoundDriver, entries: list[Entry]
) -> None:
    """A ledger was put together by hand: the second round stands before the first."""
    closes = [at + 1 for at, one in enumerate(entries) if has_close(one)]
    first, second, rest = entries[: closes[0]], entries[closes[0] : closes[1]], entries[closes[1] :]
    _, merging = merged(driver, [*second, *rest, *first], [*rest, *second[2:], *first[1:]])
    assert merging.fold.hash == driver.run.chain_hash
    assert not merging.gap


@pytest.mark.parametrize("is_first", [True, False])
def test_a_forged_entry_in_one_ledger_does_not_spoil_the_other(
    driver: RoundDriver, entries: list[Entry], is_first: bool
) -> None:
    at = place_of(entries, "RunFunded")
    name, body = entries[at].events[0]
    false = Entry(entries[at].slot, entries[at].signature, ((name, body[:-1] + b"\x07"),))
    forged = [*entries[:at], false, *entries[at + 1 :]]
    both = (forged, entries) if is_first else (entries, forged)
    _, merging = merged(driver, *both)
    assert merging.fold.hash == driver.run.chain_hash
    alone, merging = merged(driver, forged)
    assert merging.gap
    assert not any(map(has_close, alone))


def test_an_entry_out_of_order_is_refused_and_the_ones_before_it_stay(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    with open_ledger(driver, path) as ledger:
        with pytest.raises(LedgerOrderError):
            ledger.append([*entries[:3], entries[0]])
        assert ledger.last == entries[2].signature
    assert list(Ledger.of(path).entries()) == entries[:3]
