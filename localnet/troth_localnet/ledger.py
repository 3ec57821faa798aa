"""The ledger of an embedded chain in one SQLite file: it goes on where it stopped.

Owns: the tables, what is written when, and the check of what is read.
Never: executes a transaction, or knows a clock. Next: `ledger_rows.py` for the rows;
`__main__.py`, which opens a ledger for `troth localnet up --ledger`.

Each landed transaction and each new slot is one SQLite transaction in its write-ahead log. So a
process that is killed leaves the state after the last one, and a power cut that of an earlier one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solders.hash import Hash
from solders.pubkey import Pubkey

from troth_localnet import ledger_rows as rows
from troth_localnet.blocks import MAX_SLOT_HASHES, SavedBlocks
from troth_localnet.errors import ChainDamagedError, ChainInUseError, ChainMismatchError
from troth_localnet.history import LandedTransaction
from troth_localnet.svm import Chain, ChainConfig

logger = logging.getLogger(__name__)

FILE_NAME: Final = "chain.sqlite"
VERSION: Final = 1
_TABLES: Final = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE accounts (address BLOB PRIMARY KEY, state BLOB NOT NULL, digest BLOB NOT NULL)",
    "CREATE TABLE blocks (slot INTEGER PRIMARY KEY, block TEXT NOT NULL)",
    "CREATE TABLE slot_hashes (slot INTEGER PRIMARY KEY, hash BLOB NOT NULL)",
    "CREATE TABLE transactions (number INTEGER PRIMARY KEY, record TEXT NOT NULL)",
)

Images = Mapping[Pubkey, bytes]
"""Program images by program id."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The facts that a chain cannot change: programs by digest, and the length of a slot."""

    programs: Mapping[str, str]
    slot_milliseconds: int

    @classmethod
    def of(cls, config: ChainConfig, images: Images) -> Terms:
        """Return the terms of a chain with these programs."""
        programs = {str(key): hashlib.sha256(image).hexdigest() for key, image in images.items()}
        return cls(programs, config.slot_milliseconds)


class Ledger:
    """Keeps one chain in a folder, as an observer of it; `open` brings back or begins the chain."""

    def __init__(self, path: Path, database: sqlite3.Connection, chain: Chain) -> None:
        self._path = path
        self._database = database
        self._chain = chain
        self._last_slot = -1
        self._changed: set[Pubkey] = set()
        self._landed: list[tuple[int, LandedTransaction]] = []

    @classmethod
    def open(cls, folder: Path, config: ChainConfig, images: Images) -> tuple[Ledger, Chain]:
        """Return the ledger in a folder and its chain, as it was kept, or begun with `config`.

        Raises ChainInUseError, ChainMismatchError for another version, program or length of a
        slot, ChainDamagedError, which names the file, and ProgramImageError.
        """
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE_NAME
        database = _connect(path)
        try:
            with _explained(path):
                chain, last_slot = _read(path, database, config, images)
            ledger = cls(path, database, chain)
            ledger._last_slot = last_slot
            if last_slot < 0:
                ledger._begin(Terms.of(config, images))
        except BaseException:
            database.close()
            raise
        chain.observers.append(ledger)
        return ledger, chain

    def close(self) -> None:
        """Give the file up; harmless when repeated."""
        if self in self._chain.observers:
            self._chain.observers.remove(self)
        self._database.close()

    def transaction_landed(self, landed: LandedTransaction, changed: Sequence[Pubkey]) -> None:
        """Keep a transaction together with the accounts that it changed."""
        self._changed.update(changed)
        self._landed.append((self._chain.history.num_landed, landed))
        self._save()

    def slot_opened(self, slot: int, parent: int) -> None:
        """Keep the blocks since the last call."""
        self._save()

    def _save(self) -> None:
        """Write all that is not written yet; on a full disk it waits for the next time."""
        try:
            with self._database:
                self._save_accounts(self._changed)
                self._save_transactions()
                self._save_blocks()
                self._save_head()
        except sqlite3.OperationalError as error:
            logger.warning("%s is behind the chain: %s", self._path, error)
            return
        self._changed.clear()
        self._landed.clear()
        self._last_slot = self._chain.slot

    def _save_transactions(self) -> None:
        self._database.executemany(
            "INSERT OR REPLACE INTO transactions VALUES (?, ?)",
            [(number, rows.transaction_text(landed)) for number, landed in self._landed],
        )
        kept = self._chain.history.num_landed - self._chain.config.num_transactions_kept
        self._database.execute("DELETE FROM transactions WHERE number <= ?", (kept,))

    def _begin(self, terms: Terms) -> None:
        config = self._chain.config
        settings = {
            "version": VERSION,
            "programs": dict(terms.programs),
            "slot_milliseconds": terms.slot_milliseconds,
            "seed": config.seed.hex(),
            "genesis_unix_timestamp": config.genesis_unix_timestamp,
        }
        with self._database:
            self._database.execute("BEGIN")
            for table in _TABLES:
                self._database.execute(table)
            self._database.executemany(
                "INSERT INTO settings VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in settings.items()],
            )
            self._save_accounts(self._chain.accounts.addresses())
            self._save_blocks()
            self._save_head()
        self._last_slot = self._chain.slot

    def _save_accounts(self, addresses: Iterable[Pubkey]) -> None:
        for address in addresses:
            account = self._chain.accounts.get(address)
            if account is None:
                self._database.execute("DELETE FROM accounts WHERE address = ?", (bytes(address),))
                continue
            state = rows.account_bytes(account)
            self._database.execute(
                "INSERT OR REPLACE INTO accounts VALUES (?, ?, ?)",
                (bytes(address), state, _digest(bytes(address), state)),
            )

    def _save_blocks(self) -> None:
        blocks, since = self._chain.blocks, self._last_slot
        found = [blocks.block(slot) for slot in blocks.slots(since + 1, blocks.open.slot)]
        self._database.executemany(
            "INSERT OR REPLACE INTO blocks VALUES (?, ?)",
            [(block.slot, rows.block_text(block)) for block in found if block is not None],
        )
        self._database.executemany(
            "INSERT OR REPLACE INTO slot_hashes VALUES (?, ?)",
            [(slot, bytes(hash_)) for slot, hash_ in blocks.slot_hashes() if slot >= since],
        )
        oldest = blocks.slot_hashes()[-1][0]
        self._database.execute("DELETE FROM slot_hashes WHERE slot < ?", (oldest,))
        self._database.execute("DELETE FROM blocks WHERE slot < ?", (blocks.first_kept_slot,))

    def _save_head(self) -> None:
        """Write the facts that change with every transaction."""
        head = {
            "bank_hash": self._chain.blocks.bank_hash.hex(),
            "num_airdrops": self._chain.num_airdrops,
        }
        self._database.executemany(
            "INSERT OR REPLACE INTO settings VALUES (?, ?)",
            [(name, json.dumps(value)) for name, value in head.items()],
        )


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file for this process alone."""
    database = sqlite3.connect(path, timeout=0.0)
    try:
        with _explained(path):
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("BEGIN EXCLUSIVE")
            database.commit()
    except BaseException:
        database.close()
        raise
    return database


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the errors of a file that is none of ours, or no longer whole, into ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise ChainInUseError(path) from error
        raise ChainDamagedError(path, str(error)) from error
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ChainDamagedError(path, str(error)) from error


def _read(
    path: Path, database: sqlite3.Connection, config: ChainConfig, images: Images
) -> tuple[Chain, int]:
    """Return the kept chain and its last slot; a new chain and -1 from an empty file."""
    (found,) = database.execute("PRAGMA quick_check").fetchone()
    if found != "ok":
        raise ChainDamagedError(path, str(found))
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if not tables:
        return _with_programs(Chain(config), images), -1
    settings = {
        name: json.loads(value)
        for name, value in database.execute("SELECT name, value FROM settings")
    }
    _check(path, settings, Terms.of(config, images))
    kept = rows.config_of(config, settings)
    chain = _with_programs(Chain(kept), images)
    for address, state, digest in database.execute("SELECT * FROM accounts"):
        if digest != _digest(address, state):
            raise ChainDamagedError(path, f"account {Pubkey.from_bytes(address)} was changed")
        chain.accounts.restore(Pubkey.from_bytes(address), rows.account_of(state))
    saved = SavedBlocks(
        [
            rows.block_of(text)
            for (text,) in database.execute("SELECT block FROM blocks ORDER BY slot")
        ],
        [
            (slot, Hash(value))
            for slot, value in database.execute("SELECT slot, hash FROM slot_hashes ORDER BY slot")
        ][-MAX_SLOT_HASHES:],
        bytes.fromhex(settings["bank_hash"]),
    )
    landed = [
        (number, rows.transaction_of(text))
        for number, text in database.execute("SELECT * FROM transactions ORDER BY number")
    ]
    chain.resume(saved, landed, settings["num_airdrops"])
    return chain, chain.slot


def _with_programs(chain: Chain, images: Images) -> Chain:
    for program_id, image in images.items():
        chain.add_program(program_id, image)
    return chain


def _check(path: Path, settings: Mapping[str, object], terms: Terms) -> None:
    """Raise ChainMismatchError where the ledger is of another version, program or slot length."""
    for what, wanted, found in (
        ("version", VERSION, settings["version"]),
        ("program", dict(terms.programs), settings["programs"]),
        ("slot_milliseconds", terms.slot_milliseconds, settings["slot_milliseconds"]),
    ):
        if wanted != found:
            raise ChainMismatchError(path, what, str(wanted), str(found))


def _digest(address: bytes, state: bytes) -> bytes:
    return hashlib.sha256(address + state).digest()
