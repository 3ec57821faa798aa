"""A ledger is repaired from an RPC node and from other ledgers, or stays as it is."""

import asyncio
import gc
from pathlib import Path

import pytest
from support.disks import no_file_beyond
from support.ledgers import flipped, place_of, with_a_close_of_its_own
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
from troth_coordinator.ledger.errors import LedgerError, LedgerFileError
from troth_coordinator.ledger.file import ASIDE, Ledger, LedgerHead
from troth_coordinator.ledger.follow import REFUSALS, Match, Refusals, compare, follow, renew


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
        aside = path.name + ASIDE + (str(number + 1) if number else "")
        assert path.with_name(aside).read_bytes() == damaged, "no earlier one is overwritten"


def test_a_repair_holds_no_file_in_memory(
    driver: RoundDriver, entries: list[Entry], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger and what an RPC node sends may be longer than memory."""
    written(driver, path, [*entries[:8], *entries[9:]])
    num_held = []

    def held() -> int:
        gc.collect()
        return sum(isinstance(one, Entry) for one in gc.get_objects())

    write = ledgers._write

    def counted(*given: object) -> ledgers.Made:
        num_held.append(held() - before)
        return write(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(ledgers, "_write", counted)
    before = held()
    repaired(driver, path)
    assert num_held == [0]
    assert len(entries) > 50


def test_a_tail_that_only_the_run_account_contradicts_is_read_again(
    driver: RoundDriver, entries: list[Entry], path: Path
) -> None:
    whole = lines(path)
    written(driver, path, flipped(entries, len(entries) - 1))
    found = repaired(driver, path)
    assert lines(path) == whole
    assert found.num_events == driver.run.event_sequence


def test_a_history_with_a_close_of_its_own_gives_way_to_that_of_the_account(
    driver: RoundDriver, entries: list[Entry], path: Path
) -> None:
    """An RPC node lied once: a false commit, and a close whose hash covers it."""
    whole = lines(path)
    forged = with_a_close_of_its_own(head_of(driver), entries)
    at = place_of(forged, "RoundClosed")
    with open_ledger(driver, written(driver, path, forged[: at + 1])):
        pass  # such a ledger folds
    repaired(driver, path)
    assert lines(path) == whole


def test_a_ledger_of_a_lie_is_read_anew_once_the_account_proves_the_truth(
    driver: RoundDriver, entries: list[Entry], path: Path
) -> None:
    forged = with_a_close_of_its_own(head_of(driver), entries)
    before = written(driver, path, forged[: place_of(forged, "RoundClosed") + 1]).read_bytes()

    def lie(signature, record):
        return None if str(signature) == entries[-1].signature else record

    with open_ledger(driver, path) as ledger:
        with pytest.raises(LedgerError):
            asyncio.run(follow(client_of(driver), ledger))
        cut = path.read_bytes()
        assert before.startswith(cut)
        assert not asyncio.run(renew(client_of(driver, lie), ledger))
        assert path.read_bytes() == cut
        assert beside(path) == set()
        assert asyncio.run(renew(client_of(driver), ledger))
        assert compare(ledger.fold, driver.run).match is Match.WHOLE
        assert path.with_name(path.name + ASIDE).read_bytes() == cut
        assert asyncio.run(follow(client_of(driver), ledger)) == 0
        ledger.cut_to_proven()
        asyncio.run(follow(client_of(driver), ledger))
    assert list(Ledger.of(path).entries()) == entries
    assert beside(path) == {path.name + ASIDE}
    with open_ledger(driver, path) as again:
        assert again.fold.hash == driver.run.chain_hash


def test_a_new_start_is_tried_after_four_contradictions_and_then_ever_more_seldom(
    driver: RoundDriver, path: Path
) -> None:
    """An archive and a participant follow this one policy."""
    refusals, due = Refusals(), []

    def forget(signature, record):
        return None

    with open_ledger(driver, path) as ledger:
        for number in range(1, 40):
            refusals.add()
            due += [number] if refusals.renews else []
            assert not asyncio.run(refusals.renew(client_of(driver, forget), ledger))
            assert not refusals.renews, "it is tried once"
        assert due == [REFUSALS, 8, 16, 32]
        for _ in range(25):
            refusals.add()
        assert asyncio.run(refusals.renew(client_of(driver), ledger))
    assert refusals == Refusals()


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
