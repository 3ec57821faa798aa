"""Hostile ledgers and RPC nodes: no files, entries that nobody reads again, endless pages."""

import asyncio
import os
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from solders.signature import Signature
from support.program.ledger_files import (
    LyingRpc,
    client_of,
    head_of,
    honest,
    open_ledger,
    played,
)
from support.program.rounds import RoundDriver

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.ledger.entries import MAX_LINE_BYTES, Entry
from troth_coordinator.ledger.errors import LedgerFileError
from troth_coordinator.ledger.file import Ledger, LedgerFile, LedgerHead
from troth_coordinator.ledger.follow import Match, compare, follow
from troth_coordinator.ledger.history import entries_after
from troth_coordinator.ledger.merge import Merging

ROUND, INDEX = 32, 48
"""Places in the bytes of a commit."""


@pytest.fixture(scope="module")
def driver() -> RoundDriver:
    return played()


@pytest.fixture(scope="module")
def entries(driver: RoundDriver) -> list[Entry]:
    return asyncio.run(read(client_of(driver), driver))


async def read(
    client: CoordinatorClient, driver: RoundDriver, newest: Sequence[Entry] = ()
) -> list[Entry]:
    return [one async for one in entries_after(client, driver.at.run, newest)]


def named(entries: list[Entry], name: str) -> Entry:
    return next(one for one in entries if one.events[0][0] == name)


def test_a_pipe_in_the_place_of_a_ledger_keeps_nobody_waiting(
    driver: RoundDriver, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    os.mkfifo(path)
    for opened in (Ledger.of, lambda path: open_ledger(driver, path)):
        with pytest.raises(LedgerFileError, match="something else"):
            opened(path)
    with pytest.raises(LedgerFileError, match="something else"):
        Ledger.of(Path("/dev/zero"))


def test_a_head_of_another_run_without_its_line_end_is_left_alone(
    driver: RoundDriver, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    head = head_of(driver)
    other = LedgerHead(head.program, head.program, head.genesis_hash).to_line()[:-1]
    for data in (other, head.to_line()[:-1].replace(b":", b" : ")):
        path.write_bytes(data)
        with pytest.raises(LedgerFileError):
            LedgerFile(path, head)
        assert path.read_bytes() == data


def test_an_entry_that_could_not_be_read_again_is_not_written(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path
) -> None:
    """A node shows a transaction with more events than a line may hold."""
    commit = named(entries, "PayloadCommitted")
    name, body = commit.events[0]
    many = tuple(
        (name, body[:INDEX] + struct.pack("<H", index) + body[INDEX + 2 :])
        for index in range(MAX_LINE_BYTES // 128)
    )
    path = tmp_path / "ledger.jsonl"
    with open_ledger(driver, path) as ledger:
        before = path.read_bytes()
        with pytest.raises(LedgerFileError, match=f"at most {MAX_LINE_BYTES} bytes"):
            ledger.append([Entry(commit.slot, commit.signature, many)])
        assert path.read_bytes() == before
    open_ledger(driver, path).close()


def test_a_parameter_that_stands_for_nothing_is_a_damaged_entry_and_a_malformed_reply(
    driver: RoundDriver, entries: list[Entry]
) -> None:
    created = named(entries, "RunCreated")
    reader = head_of(driver).reader()
    name, body = created.events[0]
    refused = 0
    for at in range(len(body)):
        spoilt = body[:at] + b"\xff" + body[at + 1 :]
        try:
            reader.events(replace(created, events=((name, spoilt), *created.events[1:])))
        except LedgerFileError as error:
            refused += "a kind of admission" in str(error.__cause__)
    assert refused == 1, "no other byte is one of few numbers"

    def lie(signature, record):
        if str(signature) != created.signature:
            return record
        calls = [
            replace(one, written=one.data.replace(body, spoilt_admission(reader, created)))
            for one in record.inner_calls
        ]
        return replace(record, inner_calls=tuple(calls))

    with pytest.raises(MalformedReplyError):
        asyncio.run(read(client_of(driver, lie), driver))


def spoilt_admission(reader, created: Entry) -> bytes:
    """The body of the creation of a run with a kind of admission that is none."""
    name, body = created.events[0]
    for at in range(len(body)):
        spoilt = body[:at] + b"\xff" + body[at + 1 :]
        try:
            reader.events(replace(created, events=((name, spoilt),)))
        except LedgerFileError as error:
            if "a kind of admission" in str(error.__cause__):
                return spoilt
    raise AssertionError("no such byte")


def test_an_entry_of_another_slot_is_refused(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path
) -> None:
    def lie(signature, record):
        return replace(record, slot=record.slot + 1)

    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        with pytest.raises(LedgerFileError, match="as in its event"):
            ledger.append([replace(entries[0], slot=entries[0].slot + 1)])
        with pytest.raises(LedgerFileError, match="as in its event"):
            asyncio.run(follow(client_of(driver, lie), ledger))
        assert ledger.last is None


def test_a_forged_event_of_a_far_round_does_not_hide_the_honest_tail(
    driver: RoundDriver, entries: list[Entry]
) -> None:
    closed = entries.index(next(one for one in entries if "RoundClosed" in dict(one.events)))
    later = [one for one in entries[closed:] if one.events[0][0] == "PayloadCommitted"]
    cut = entries[: entries.index(later[1]) + 1]
    name, body = later[0].events[0]
    far = body[:ROUND] + struct.pack("<Q", 2**40) + body[ROUND + 8 :]
    forged = Entry(later[0].slot, str(Signature.default()), ((name, far),))
    found = list(Merging(head_of(driver).reader()).entries([[*cut, forged]]))
    assert {one.signature for one in found} >= {one.signature for one in later[:2]}


def test_commits_without_any_event_before_them_are_a_gap(
    driver: RoundDriver, entries: list[Entry]
) -> None:
    """Each fits anywhere in its round, so nothing contradicts them; `merge` called it success."""
    commits = [one for one in entries if {name for name, _ in one.events} == {"PayloadCommitted"}]
    assert len(commits) > 1
    merging = Merging(head_of(driver).reader())
    list(merging.entries([commits]))
    assert merging.gap.startswith("the events with which a run begins are missing")


class Paged(LyingRpc):
    """A node with short pages that counts what it lists. `forgets` what it may not know."""

    size = 7
    forgets: Sequence[str] = ()
    is_empty_then = False

    def __init__(self, driver: RoundDriver) -> None:
        super().__init__(driver, honest)
        self.listed: list[int] = []

    async def signatures(self, address, *, before=None, until=None):
        if str(until) in self.forgets:
            if self.is_empty_then:
                return []
            until = None
        found = await super().signatures(address, before=before, until=until)
        self.listed.append(len(found[: self.size]))
        return found[: self.size]


def test_a_history_of_many_pages_comes_in_order(driver: RoundDriver, entries: list[Entry]) -> None:
    rpc = Paged(driver)
    assert asyncio.run(read(CoordinatorClient(rpc), driver)) == entries
    for at in (0, 1, 6, 7, 8, len(entries) - 1):
        newest = entries[max(0, at - 1) : at + 1]
        assert asyncio.run(read(CoordinatorClient(rpc), driver, newest)) == entries[at + 1 :]


def test_a_node_lists_no_more_than_what_is_new(driver: RoundDriver, entries: list[Entry]) -> None:
    rpc = Paged(driver)
    rpc.size = 1_000
    newest = entries[-4:-2]
    assert asyncio.run(read(CoordinatorClient(rpc), driver, newest)) == entries[-2:]
    assert sum(rpc.listed) == 3, "the last entry that we have shows that the node knows it"


@pytest.mark.parametrize("is_empty_then", [False, True])
def test_a_node_that_forgot_where_to_stop_is_asked_without(
    driver: RoundDriver, entries: list[Entry], is_empty_then: bool
) -> None:
    rpc = Paged(driver)
    rpc.forgets, rpc.is_empty_then = [entries[-4].signature], is_empty_then
    newest = entries[-4:-2]
    assert asyncio.run(read(CoordinatorClient(rpc), driver, newest)) == entries[-2:]


def test_a_node_whose_pages_repeat_is_found_out(driver: RoundDriver, tmp_path: Path) -> None:
    class Repeating(LyingRpc):
        num_pages = 0

        async def signatures(self, address, *, before=None, until=None):
            self.num_pages += 1
            assert self.num_pages < 10
            return (await super().signatures(address))[:5]

    rpc = Repeating(driver, honest)
    with pytest.raises(MalformedReplyError, match="again, in a later page"):
        asyncio.run(read(CoordinatorClient(rpc), driver))


def test_a_ledger_goes_on_through_a_node_that_forgot_all_but_its_last_entry(
    driver: RoundDriver, entries: list[Entry], tmp_path: Path
) -> None:
    rpc = Paged(driver)
    rpc.forgets = [one.signature for one in entries[:8]]
    with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
        ledger.append(entries[:9])
        asyncio.run(follow(CoordinatorClient(rpc), ledger))
        assert compare(ledger.fold, driver.run).match is Match.WHOLE
