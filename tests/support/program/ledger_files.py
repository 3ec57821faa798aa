"""Ledger files of a run that a driver plays, over an RPC node that may lie.

Owns: a played run, its head, and the lies of a node. Never: folds. Next: rounds.py.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from solders.signature import Signature

from support.program.rounds import RoundDriver
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.rpc import InnerCall, TransactionRecord
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.file import LedgerFile, LedgerHead
from troth_coordinator.ledger.history import entries_after
from troth_localnet.direct import DirectRpc

Lie = Callable[[Signature, TransactionRecord], TransactionRecord | None]


def played(rounds: int = 3) -> RoundDriver:
    """A finished run of four members."""
    made = RoundDriver(4, max_rounds=rounds, checkpoint_every=3, keep_rounds=2)
    made.start()
    made.play(rounds)
    made.cool_down()
    return made


class LyingRpc(DirectRpc):
    """A node whose records of transactions pass through `lie`."""

    def __init__(self, driver: RoundDriver, lie: Lie) -> None:
        super().__init__(driver.chain)
        self.lie = lie
        self.num_asked = 0

    async def transaction(self, signature: Signature) -> TransactionRecord | None:
        self.num_asked += 1
        found = await super().transaction(signature)
        return None if found is None else self.lie(signature, found)


def honest(_signature: Signature, record: TransactionRecord) -> TransactionRecord:
    return record


def client_of(driver: RoundDriver, lie: Lie = honest) -> CoordinatorClient:
    return CoordinatorClient(LyingRpc(driver, lie))


def head_of(driver: RoundDriver) -> LedgerHead:
    genesis = bytes(driver.chain.blocks.genesis_hash).hex()
    return LedgerHead(str(driver.at.program), str(driver.at.run), genesis)


async def all_entries(driver: RoundDriver) -> list[Entry]:
    return [one async for one in entries_after(client_of(driver), driver.at.run)]


def written(driver: RoundDriver, path: Path, entries: Iterable[Entry]) -> Path:
    """Write a ledger as it is, whatever its entries are."""
    path.write_bytes(b"".join([head_of(driver).to_line(), *(one.to_line() for one in entries)]))
    return path


def open_ledger(driver: RoundDriver, path: Path) -> LedgerFile:
    return LedgerFile(path, head_of(driver))


def flipped(record: TransactionRecord) -> TransactionRecord:
    """The record with the last bit of the last byte of its events turned."""
    calls = list(record.inner_calls or ())
    changed: InnerCall = replace(
        calls[-1], written=calls[-1].data[:-1] + bytes([calls[-1].data[-1] ^ 1])
    )
    return replace(record, inner_calls=(*calls[:-1], changed))
