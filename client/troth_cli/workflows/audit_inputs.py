"""The inputs of an audit: a ledger, accounts of the run, and sources of bytes.

Owns: where each of them comes from, and that an archive's own word about the chain is named so.
Never: checks what it reads against each other; the auditor does.
Next: `audit.py`; `troth_coordinator/ledger/` for ledgers.

    <archive>/ledger.jsonl     the ledger, in a folder or in an object store
    <archive>/chain.json       the newest Run account that the archive saw
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from solders.pubkey import Pubkey

from troth_audit.replay.account import Absence, Word
from troth_cli.connection import connect
from troth_cli.errors import InputError, LedgerMissingError, NodesSilentError, OtherRunError
from troth_client.archive.folder import CHAIN_FILE, MOST_CHAIN_BYTES, SeenAccount
from troth_client.archive.stored import MOST_LEDGER_BYTES
from troth_client.transport.endpoint import check_store, is_store
from troth_client.transport.errors import HolderError
from troth_client.transport.remote import RemoteSource, RemoteStore
from troth_client.transport.sources import FolderSource, Source, Sources
from troth_coordinator.chain.accounts import program_reader
from troth_coordinator.chain.errors import AccountError, AccountMissingError, RpcError
from troth_coordinator.chain.rpc_health import node_name
from troth_coordinator.ledger.ending import shows_end
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import LEDGER_FILE, Ledger, LedgerFile, LedgerHead
from troth_coordinator.ledger.follow import Match, catch_up


@dataclass(frozen=True, slots=True)
class Asked:
    """The choices of a user. `run` is None where a ledger names it."""

    run: Pubkey | None
    program: Pubkey | None
    rpc: Sequence[str]
    archives: Sequence[str]
    ledger: Path | None
    folder: Path
    """Where a ledger goes that is read from an RPC node or a store."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that an audit reads. `words` are empty where neither a node nor an archive has one."""

    ledger: Ledger
    words: tuple[Word, ...]
    sources: Sources
    gone: tuple[Absence, ...] = ()
    """RPC nodes that have no account of the run: it is closed, or never was."""
    silent: tuple[str, ...] = ()
    """RPC nodes that gave no usable answer while others did, each with the reason."""

    @property
    def is_offline(self) -> bool:
        """Whether no RPC node was asked."""
        return not self.gone and all(word.is_archive for word in self.words)


def gather(asked: Asked) -> Inputs:
    """Find or read the ledger, and read the accounts after it.

    Raises LedgerMissingError, LedgerError, OtherRunError, NodesSilentError, RpcError, InputError,
    DiskFullError.
    """
    archives = [_archive(asked, number) for number in range(len(asked.archives))]
    ledger = _ledger(asked, archives)
    if asked.run is not None and ledger.head.run != str(asked.run):
        raise OtherRunError(
            f"a ledger of run {asked.run}",
            f"one of run {ledger.head.run}",
            "Name the archive or the ledger of this run.",
            str(ledger.path),
        )
    if asked.program is not None and ledger.head.program != str(asked.program):
        raise OtherRunError(
            f"a ledger of program {asked.program}",
            f"one of program {ledger.head.program}",
            "Name the archive or the ledger of the run that the file names.",
            str(ledger.path),
        )
    sources = Sources([_source(name) for name in asked.archives])
    told, silent = _told(asked.rpc, ledger)
    words = [one for one in told if isinstance(one, Word)]
    if not words:
        words = list(filter(None, (_word_of_archive(one, ledger.head) for one in archives)))
    gone = tuple(one for one in told if isinstance(one, Absence))
    return Inputs(ledger, tuple(words), sources, gone, silent)


_Told = list[Word | Absence]
_OFFLINE = "ask none with --offline: then the ledger is held against the archive's own account"


def _told(urls: Sequence[str], ledger: Ledger) -> tuple[_Told, tuple[str, ...]]:
    """Return what each node says of the account, and the nodes that say nothing.

    Raises NodesSilentError where there are nodes and none of them answers; OtherRunError.
    """
    told, failed = _Told(), list[tuple[str, RpcError]]()
    for url in urls:
        try:
            told.append(asyncio.run(_word_of_node(url, ledger)))
        except RpcError as error:
            failed.append((node_name(url), error))
    if failed and not told:
        name, first = failed[0]
        raise NodesSilentError(
            "an RPC node that shows the Run account, to compare the ledger with",
            first.found,
            f"Name another one with --rpc, or {_OFFLINE}.",
            name,
        ) from first
    return told, tuple(f"{name}: {error}" for name, error in failed)


@dataclass(frozen=True, slots=True)
class _Archive:
    """An archive by its name, and the folder with its ledger and account, if it has them.

    `trouble` says why they could not be read.
    """

    name: str
    folder: Path
    trouble: str = ""


def _archive(asked: Asked, number: int) -> _Archive:
    """Return an archive in a folder, or what a store has of one. Raises DiskFullError."""
    name = asked.archives[number]
    if not is_store(name):
        return _Archive(name, Path(name))
    check_store(name)
    folder, trouble = asked.folder / f"store-{number}", ""
    folder.mkdir()
    with RemoteStore(name) as store:
        try:
            if asked.ledger is None:
                store.download(LEDGER_FILE, folder / LEDGER_FILE, MOST_LEDGER_BYTES)
            store.download(CHAIN_FILE, folder / CHAIN_FILE, MOST_CHAIN_BYTES)
        except HolderError as error:  # another archive may have them
            trouble = str(error)
    return _Archive(name, folder, trouble)


def _ledger(asked: Asked, archives: Sequence[_Archive]) -> Ledger:
    named = [asked.ledger] if asked.ledger is not None else []
    named += [one.folder / LEDGER_FILE for one in archives if (one.folder / LEDGER_FILE).exists()]
    for path in named:
        if not path.is_file():
            raise InputError("a file", "something else", "Name the file of a ledger.", str(path))
        return Ledger.of(path)
    if asked.rpc and asked.run is not None:
        return _from_nodes(asked)
    raise LedgerMissingError(
        f"{LEDGER_FILE} in an archive, or --ledger FILE, or RUN with --rpc URL",
        next((one.trouble for one in archives if one.trouble), "none of them"),
        "Name the folder or the store that `troth archive` keeps, with --archive DIR|URL.",
    )


def _source(name: str) -> Source:
    if "://" in name:
        return RemoteSource(name)
    if not Path(name).is_dir():
        raise InputError("the folder of an archive", "no folder", "Check the path.", name)
    return FolderSource(Path(name))


def _from_nodes(asked: Asked) -> Ledger:
    """Return the first history that the Run account proves, else the first one that folds.

    Raises the first node's error, an RpcError or a LedgerError, where none has one.
    """
    found, failed = list[Ledger](), list[RpcError | LedgerError]()
    for number, url in enumerate(asked.rpc):
        path = asked.folder / f"node-{number}" / LEDGER_FILE
        try:
            ledger, is_proven = asyncio.run(_from_node(url, asked, path))
        except (RpcError, LedgerError) as error:
            failed.append(error)
            continue
        if is_proven:
            return ledger
        found.append(ledger)
    if not found:
        raise failed[0]
    return found[0]


async def _from_node(url: str, asked: Asked, path: Path) -> tuple[Ledger, bool]:
    """Read the history of a run into a file; tell whether the node's Run account proves it."""
    async with connect(url, asked.program) as client:
        run = asked.run or Pubkey.default()
        genesis = bytes(await client.rpc.genesis_hash()).hex()
        with LedgerFile(path, LedgerHead(str(client.program_id), str(run), genesis)) as ledger:
            try:
                _, compared = await catch_up(client, ledger)
            except AccountMissingError:  # a run that was closed
                return Ledger.of(path), False
    return Ledger.of(path), compared.match is Match.WHOLE


async def _word_of_node(url: str, ledger: Ledger) -> Word | Absence:
    """Return the account at a node, or what it shows of a run whose account it lacks."""
    head = ledger.head
    async with connect(url, Pubkey.from_string(head.program)) as client:
        genesis = bytes(await client.rpc.genesis_hash()).hex()
        if genesis != head.genesis_hash:
            raise OtherRunError(
                f"the network with the genesis hash {head.genesis_hash}, as in the ledger",
                genesis,
                f"Name an RPC node of the run's network, or {_OFFLINE}.",
                node_name(url),
            )
        try:
            return Word(node_name(url), await client.read_run(Pubkey.from_string(head.run)))
        except AccountMissingError:
            return Absence(node_name(url), await shows_end(client, ledger))


def _word_of_archive(archive: _Archive, head: LedgerHead) -> Word | None:
    """Return the account in an archive; None where it has none. Raises InputError."""
    try:
        found = SeenAccount.read(archive.folder)
        if found is None:
            return None
        reader = program_reader(Pubkey.from_string(head.program))
        run = reader.run(Pubkey.from_string(head.run), found.account())
    except (ValueError, AccountError) as error:
        raise InputError(
            "the Run account as an archive keeps it",
            f"{type(error).__name__}: {str(error)[:80]}",
            "Get another copy of the archive, or name an RPC node with --rpc.",
            str(archive.folder / CHAIN_FILE),
        ) from error
    return Word(f"the archive {archive.name}", run, is_archive=True)
