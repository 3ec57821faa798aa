"""A ledger is repaired from an RPC node and from other ledgers, or stays as it is."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from support.disks import no_file_beyond
from support.program.ledger_files import (
    all_entries,
    client_of,
    head_of,
    honest,
    open_ledger,
    played,
    written,
)
from support.program.rounds import RoundDriver

from troth_cli.errors import LedgerNotProvenError, OutputFileError
from troth_cli.workflows import ledgers
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerFileError, LedgerHashError
from troth_coordinator.ledger.file import Ledger, LedgerHead
from troth_coordinator.ledger.fold import Fold


@pytest.fixture(scope="module")
def driver() -> RoundDriver:
    return played()


@pytest.fixture(scope="module")
def entries(driver: RoundDriver) -> list[Entry]:
    return asyncio.run(all_entries(driver))


@pytest.fixture
def path(driver: RoundDriver, entries: list[Entry], tmp_path: Path) -> Path:
    return written(driver, tmp_path / "ledger.jsonl", entries)


def repaired(driver: RoundDriver, path: Path, *others: Path, lie=honest) -> ledgers.Made:
    client = client_of(driver, lie)
    work = ledgers.repair(client, Ledger.of(path), [Ledger.of(one) for one in others])
    return asyncio.run(work)


def place_of(entries: list[Entry], name: str, number: int = 0) -> int:
    return [at for at, one in enumerate(entries) if name in dict(one.events)][number]


def flipped(entries: list[Entry], at: int) -> list[Entry]:
    """The entries with one bit turned in the first event of one of them."""
    name, body = entries[at].events[0]
    events = ((name, body[:-1] + bytes([body[-1] ^ 1])), *entries[at].events[1:])
    return [*entries[:at], replace(entries[at], events=events), *entries[at + 1 :]]


def lines(path: Path) -> list[bytes]:
    """The entries in some order: those of one slot have none."""
    return sorted(path.read_bytes().splitlines())


def beside(path: Path) -> set[str]:
    return {one.name for one in path.parent.iterdir()} - {path.name}


def test_a_turned_bit_is_read_again_from_the_node(
    driver: RoundDriver, entries: list[Entry], path: Path
) -> None:
    whole = lines(path)
    for number, name in enumerate(["PayloadCommitted", "RunFunded", "Attested"]):
        damaged = written(driver, path, flipped(entries, place_of(entries, name))).read_bytes()
        found = repaired(driver, path)
        assert lines(path) == whole
        assert found.gap == ""
        aside = path.name + ledgers.BEFORE + (str(number + 1) if number else "")
        assert path.with_name(aside).read_bytes() == damaged, "no earlier one is overwritten"


def test_a_tail_that_only_the_run_account_contradicts_is_read_again(
    driver: RoundDriver, entries: list[Entry], path: Path
) -> None:
    whole = lines(path)
    written(driver, path, flipped(entries, len(entries) - 1))
    found = repaired(driver, path)
    assert lines(path) == whole
    assert found.num_events == driver.run.event_sequence


def with_a_close_of_its_own(driver: RoundDriver, entries: list[Entry]) -> list[Entry]:
    """A history with a false commit in its first round, whose close shows the hash of that."""
    forged = flipped(entries, place_of(entries, "PayloadCommitted"))
    reader, fold = head_of(driver).reader(), Fold()
    at = place_of(forged, "RoundClosed")
    for entry in forged[:at]:
        fold.absorb(reader.events(entry))
    events = reader.events(forged[at])
    close = next(one for one in events if one.name == "RoundClosed")
    fold.absorb(events[: events.index(close)])
    with pytest.raises(LedgerHashError) as refused:
        fold.absorb([close])
    shown = bytes.fromhex(str(refused.value.found).split()[0])
    body = close.body.replace(close.chain_hash, shown)
    changed = tuple((one.name, body if one is close else one.body) for one in events)
    return [*forged[:at], replace(forged[at], events=changed), *forged[at + 1 :]]


def test_a_history_with_a_close_of_its_own_gives_way_to_that_of_the_account(
    driver: RoundDriver, entries: list[Entry], path: Path
) -> None:
    """An RPC node lied once: a false commit, and a close whose hash covers it."""
    whole = lines(path)
    forged = with_a_close_of_its_own(driver, entries)
    at = place_of(forged, "RoundClosed")
    with open_ledger(driver, written(driver, path, forged[: at + 1])):
        pass  # such a ledger folds
    repaired(driver, path)
    assert lines(path) == whole


def test_a_node_that_lies_changes_nothing(
    driver: RoundDriver, entries: list[Entry], path: Path
) -> None:
    at = place_of(entries, "PayloadCommitted", 2)
    damaged = written(driver, path, [*entries[:at], *entries[at + 1 :]]).read_bytes()

    def forget(signature, record):
        return None if str(signature) == entries[at].signature else record

    with pytest.raises(LedgerNotProvenError):
        repaired(driver, path, lie=forget)
    assert path.read_bytes() == damaged
    assert beside(path) == set()


def test_the_ledgers_of_others_must_be_of_the_same_run(
    driver: RoundDriver, path: Path, tmp_path: Path
) -> None:
    head = head_of(driver)
    other = tmp_path / "other.jsonl"
    for wrong in (
        LedgerHead(head.program, head.program, head.genesis_hash),
        LedgerHead(head.run, head.run, head.genesis_hash),
        LedgerHead(head.program, head.run, "0" * 64),
    ):
        other.write_bytes(wrong.to_line())
        with pytest.raises(OutputFileError, match="ledgers of one run only"):
            repaired(driver, path, other)
        with pytest.raises(OutputFileError, match="ledgers of one run only"):
            ledgers.merge([Ledger.of(path), Ledger.of(other)], tmp_path / "merged.jsonl")
    assert beside(path) == {other.name}


def test_a_ledger_that_a_participant_writes_is_left_alone(driver: RoundDriver, path: Path) -> None:
    before = path.read_bytes()
    with (
        open_ledger(driver, path),
        pytest.raises(LedgerFileError, match="another process that writes it"),
    ):
        repaired(driver, path)
    assert path.read_bytes() == before
    assert beside(path) == set()


def test_a_full_disk_leaves_everything_as_it_was(
    driver: RoundDriver, entries: list[Entry], path: Path, tmp_path: Path
) -> None:
    damaged = written(driver, path, flipped(entries, 3)).read_bytes()
    out = tmp_path / "merged.jsonl"
    with no_file_beyond(2_000):
        with pytest.raises(OSError, match="File too large"):
            repaired(driver, path)
        with pytest.raises(OSError, match="File too large"):
            ledgers.merge([Ledger.of(path)], out)
    assert path.read_bytes() == damaged
    assert beside(path) == set(), "a merge may be tried again under the same name"
