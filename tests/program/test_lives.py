"""A run that was closed and created again under its address: its ledger is that of the newest life.

An operator does it by accident: settings and name give the id, and the program frees the address.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from support.program.cases import CaseDriver
from support.program.ledger_files import all_entries, client_of, head_of, open_ledger, written
from support.program.lives import LIFE, ClosedAtOnce, ClosedUnused, create_again, live
from support.program.rounds import RoundDriver

from troth_audit.cases import CaseFile
from troth_audit.history import read_case
from troth_audit.newest import NewestEvents
from troth_cli.workflows import ledgers
from troth_coordinator.chain.event_base import Event
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerOrderError
from troth_coordinator.ledger.file import ASIDE, Ledger, LedgerFile
from troth_coordinator.ledger.fold import Fold
from troth_coordinator.ledger.follow import Match, compare, follow, renew

MEMBERS = 4
PLENTY = 10_000
FEW = 10
"""Requests for one lost entry, and for those in the slot of the last one."""


@pytest.fixture(scope="module", params=[ClosedUnused, ClosedAtOnce])
def unused(request: pytest.FixtureRequest) -> RoundDriver:
    """A run whose first life nobody used, after its second one."""
    made: RoundDriver = request.param(MEMBERS, **LIFE)
    live(made)
    return made


class Twice(RoundDriver):
    """A run that has ended and was created again. `first_ledger`: as it was kept before."""

    def __init__(self, folder: Path) -> None:
        super().__init__(MEMBERS, **LIFE)
        live(self)
        self.first_ledger = folder / "first.jsonl"
        with open_ledger(self, self.first_ledger) as ledger:
            asyncio.run(follow(client_of(self), ledger))
        self.first_created = self.run.created_slot
        create_again(self)
        live(self)

    def kept_since(self, path: Path) -> LedgerFile:
        """A ledger that was kept through both lives; the caller closes it."""
        path.write_bytes(self.first_ledger.read_bytes())
        kept = open_ledger(self, path)
        asyncio.run(follow(client_of(self), kept))
        return kept


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    return Twice(tmp_path_factory.mktemp("twice"))


def events_in(ledger: Ledger) -> list[Event]:
    reader = ledger.head.reader()
    return [event for entry in ledger.entries() for event in reader.events(entry)]


def test_a_ledger_of_a_run_that_was_closed_unused_is_proven(unused: RoundDriver, tmp_path: Path):
    with open_ledger(unused, tmp_path / "ledger.jsonl") as ledger:
        asyncio.run(follow(client_of(unused), ledger))
        assert compare(ledger.fold, unused.run).match is Match.WHOLE
        assert asyncio.run(renew(client_of(unused), ledger))
    with open_ledger(unused, tmp_path / "ledger.jsonl") as again:
        assert compare(again.fold, unused.run).match is Match.WHOLE


def test_readers_of_a_ledger_begin_at_the_newest_creation(unused: RoundDriver, tmp_path: Path):
    ledger = Ledger.of(written(unused, tmp_path / "l.jsonl", asyncio.run(all_entries(unused))))
    created = events_in(ledger)[0]
    assert created.name == "RunCreated"
    assert created.slot == unused.run.created_slot
    assert ledger.has_earlier_life()
    assert compare(ledgers.folded(ledger), unused.run).match is Match.WHOLE
    assert len(list(ledger.sound_entries())) == len(list(ledger.entries()))


def test_a_kept_ledger_goes_on_with_the_next_life(twice: Twice, tmp_path: Path):
    with twice.kept_since(tmp_path / "kept.jsonl") as kept:
        assert compare(kept.fold, twice.run).match is Match.WHOLE
    created = events_in(Ledger.of(kept.path))[0]
    assert created.slot == twice.run.created_slot > twice.first_created
    assert kept.path.read_bytes().startswith(twice.first_ledger.read_bytes())


def test_what_no_close_of_the_new_life_proves_is_cut_back_to_the_old_one(tmp_path: Path):
    driver = RoundDriver(MEMBERS, **LIFE)
    live(driver)
    create_again(driver)
    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        asyncio.run(follow(client_of(driver), ledger))
        ledger.cut_to_proven()
        assert ledger.num_bytes == ledger.proven_bytes
        asyncio.run(follow(client_of(driver), ledger))
        assert compare(ledger.fold, driver.run).match is Match.WHOLE


def closed(driver: RoundDriver) -> tuple[Fold, list[tuple[Entry, tuple[Event, ...]]]]:
    """The fold of the first life to its end, and the entries that follow."""
    fold, reader = Fold(), head_of(driver).reader()
    read = [(one, reader.events(one)) for one in asyncio.run(all_entries(driver))]
    while not fold.is_closed:
        fold.absorb(read.pop(0)[1])
    return fold, read


def test_nothing_follows_a_closed_run_but_its_creation(twice: Twice):
    fold, (_created, (_next, events), *_rest) = closed(twice)
    forged = replace(events[0], sequence=fold.next_sequence)
    for event in (events[0], forged):
        with pytest.raises(LedgerOrderError, match="nothing after RunClosed but RunCreated"):
            fold.absorb([event])


def test_a_creation_inside_a_life_is_refused(twice: Twice):
    fold, reader = Fold(), head_of(twice).reader()
    entries = asyncio.run(all_entries(twice))
    for entry in entries[:3]:
        fold.absorb(reader.events(entry))
    with pytest.raises(LedgerOrderError, match="found 0"):
        fold.absorb(reader.events(entries[0]))


def test_ledgers_of_two_lives_are_repaired_to_the_newest(twice: Twice, tmp_path: Path):
    kept = twice.kept_since(tmp_path / "kept.jsonl")
    kept.close()
    lines = kept.path.read_bytes().splitlines(keepends=True)
    kept.path.write_bytes(b"".join([*lines[:-5], *lines[-4:]]))  # one of the second life is lost
    client = client_of(twice)
    work = ledgers.repair(client, Ledger.of(kept.path), [Ledger.of(twice.first_ledger)])
    made = asyncio.run(work)
    assert client.rpc.num_asked < FEW, "what is there of either life is not asked for"
    assert made.gap == ""
    assert made.num_events == twice.run.event_sequence
    assert compare(ledgers.folded(Ledger.of(kept.path)), twice.run).match is Match.WHOLE
    assert kept.path.with_name(kept.path.name + ASIDE).exists()


def test_the_vault_s_history_is_that_of_the_newest_life(twice: Twice):
    at = twice.at

    async def work() -> tuple[list[Event], tuple[Event, ...]]:
        client = client_of(twice)
        newest = NewestEvents(client, at.vault, at.run, PLENTY)
        return await client.history(at.vault, at.run), await newest.read()

    history, newest = asyncio.run(work())
    assert history[0].name == "RunCreated"
    assert history[0].slot == twice.run.created_slot
    assert list(newest) == history


def case_of(driver: CaseDriver) -> CaseFile | None:
    return asyncio.run(read_case(client_of(driver), driver.at, (0, 3, 0)))[0]


def test_a_conviction_of_an_earlier_life_is_none_of_this_one():
    driver = CaseDriver.started(12, 1, max_rounds=1, join_until_round=1, checkpoint_every=1)
    driver.cool_down()
    driver.convict(0, 3)
    driver.release(driver.case(0, 3))
    case = case_of(driver)
    assert case is not None
    assert case.is_conviction
    create_again(driver)
    assert case_of(driver) is None
