"""`troth ledger`: fill, prove, merge and repair the ledger of a run.

Owns: which sources a ledger is made of, and that a file is replaced only by one that proves more.
Never: prints, or believes a ledger that the chain hash contradicts.
Next: `troth_coordinator/ledger/`, which folds, follows and merges.
"""

from collections.abc import AsyncIterator, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from solders.pubkey import Pubkey

from troth_cli.errors import LedgerNotProvenError, OutputFileError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import AccountMissingError
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import Ledger, LedgerFile, LedgerHead, keep_aside, locked
from troth_coordinator.ledger.fold import Fold
from troth_coordinator.ledger.follow import Compared, Match, catch_up, compare
from troth_coordinator.ledger.history import entries_after
from troth_coordinator.ledger.merge import Merging

_OTHERS: Final = "Name other ledgers with --from, or an RPC node with older transactions."
_PULL: Final = "troth ledger pull adds what has landed since; then verify again."


@dataclass(frozen=True, slots=True)
class Made:
    """A ledger that was written: how many entries, and what is missing after them."""

    num_entries: int
    num_events: int
    gap: str


async def pull(client: CoordinatorClient, run: Pubkey, path: Path) -> tuple[int, Compared]:
    """Append to a ledger all that has landed, or begin one; return how much, and the proof.

    Raises what `follow` does, and LedgerNotProvenError where the node contradicts the chain hash.
    """
    head = LedgerHead(str(client.program_id), str(run), (await client.rpc.genesis_hash()).hex())
    with LedgerFile(path, head) as ledger:
        total, found = await catch_up(client, ledger)
    return total, _proven(path, found)


async def verify(client: CoordinatorClient, ledger: Ledger) -> Compared:
    """Fold a ledger and compare it with the Run account on chain.

    Raises LedgerNotProvenError, and what the fold does.
    """
    fold = folded(ledger)
    run = Pubkey.from_string(ledger.head.run)
    return _proven(ledger.path, compare(fold, await client.read_run(run)))


def folded(ledger: Ledger) -> Fold:
    """Fold all entries. Raises LedgerFileError, LedgerOrderError, LedgerHashError."""
    reader, fold = ledger.head.reader(), Fold()
    for entry in ledger.entries():
        fold.absorb(reader.events(entry))
    return fold


def merge(ledgers: Sequence[Ledger], out: Path) -> Made:
    """Write what several ledgers of one run prove together into a new file.

    Raises OutputFileError for a file that is there, or for ledgers of different runs. On a full
    disk no file is left.
    """
    if out.exists():
        raise OutputFileError("a new file", "one that exists", "Name another one.", str(out))
    head = ledgers[0].head
    _check_heads(head, ledgers)
    try:
        return _write(head, ledgers, out)
    except BaseException:
        out.unlink(missing_ok=True)
        raise


async def repair(client: CoordinatorClient, ledger: Ledger, others: Sequence[Ledger]) -> Made:
    """Fill the holes of a ledger from others and from the RPC node, and replace the file.

    The file from before stays beside it. First only entries that are in no ledger are asked for;
    if that proves no whole ledger, the RPC node's own history goes before that of the files. The
    result is compared with the Run account, unless that is closed.

    Raises OutputFileError for ledgers of different runs, LedgerFileError while another process
    writes the ledger, LedgerNotProvenError, changing nothing, where a gap is left, RpcError,
    OSError.
    """
    _check_heads(ledger.head, others)
    made = ledger.path.with_name(ledger.path.name + ".repaired")
    with locked(ledger.path):
        try:
            found = await _repaired(client, (ledger, *others), made)
            keep_aside(ledger.path)
            made.replace(ledger.path)
        finally:
            made.unlink(missing_ok=True)
    return found


async def _repaired(client: CoordinatorClient, ledgers: Sequence[Ledger], made: Path) -> Made:
    """Write a ledger without a gap that the Run account proves."""
    head, path = ledgers[0].head, ledgers[0].path
    run = Pubkey.from_string(head.run)
    known = _Known(signature for one in ledgers for signature in one.signatures())
    asked = made.with_name(made.name + ".asked")
    try:
        new = await _written(head, entries_after(client, run, known=known), asked)
        try:
            return await _proven_or_gap(client, [*ledgers, new], made, ledgers[0])
        except (LedgerNotProvenError, LedgerError):
            pass  # some entries of the files may be false
        new = await _written(head, entries_after(client, run), asked)
        return await _proven_or_gap(client, [new, *ledgers], made, ledgers[0])
    except LedgerError as error:
        expected = "entries that the chain hash proves"
        raise LedgerNotProvenError(expected, error.found, _OTHERS, str(path)) from error
    finally:
        asked.unlink(missing_ok=True)


class _Known(Container[str]):
    """Signatures, of which memory holds 8 bytes each: a hash whose key no other process knows."""

    def __init__(self, signatures: Iterable[str]) -> None:
        self._hashes = np.fromiter(map(hash, signatures), np.int64)
        self._hashes.sort()

    def __contains__(self, signature: object) -> bool:
        at = int(np.searchsorted(self._hashes, hash(signature)))
        return at < len(self._hashes) and int(self._hashes[at]) == hash(signature)


async def _written(head: LedgerHead, entries: AsyncIterator[Entry], path: Path) -> Ledger:
    """Write entries of an RPC node into a file, of which nothing is proven."""
    with path.open("wb") as stream:
        stream.write(head.to_line())
        async for entry in entries:
            stream.write(entry.to_line())
    return Ledger(path, head)


async def _proven_or_gap(
    client: CoordinatorClient, sources: Sequence[Ledger], made: Path, ledger: Ledger
) -> Made:
    """Write what the sources prove, and what has landed since. Raises LedgerNotProvenError."""
    made.unlink(missing_ok=True)
    found = _write(ledger.head, sources, made)
    if found.gap:
        raise LedgerNotProvenError("a ledger without a gap", found.gap, _OTHERS, str(ledger.path))
    with LedgerFile(made, ledger.head) as file:
        try:
            added, proof = await catch_up(client, file)
        except AccountMissingError:
            return found  # the run is closed: only the hashes in its own closes are left
    _proven(ledger.path, proof)
    return Made(found.num_entries + added, proof.num_events, "")


def _check_heads(head: LedgerHead, others: Iterable[Ledger]) -> None:
    """Raise OutputFileError unless these ledgers are of one run, program and network."""
    for other in others:
        if other.head != head:
            raise OutputFileError(
                f"a ledger of run {head.run}, program {head.program}, network {head.genesis_hash}",
                f"run {other.head.run}, program {other.head.program},"
                f" network {other.head.genesis_hash}",
                "Name ledgers of one run only.",
                str(other.path),
            )


def _write(head: LedgerHead, sources: Sequence[Ledger], out: Path) -> Made:
    merging = Merging(head.reader())
    with LedgerFile(out, head) as ledger:
        entries = [one.sound_entries() for one in _of_one_life(sources)]
        number = ledger.append(merging.entries(entries))
        return Made(number, ledger.fold.next_sequence, merging.gap)


def _of_one_life(sources: Sequence[Ledger]) -> list[Ledger]:
    """Return those of the life that the first one tells of: numbers begin anew with each life."""
    created = [one.created_slot() for one in sources]
    slot = next(filter(None, created), None)
    return [one for one, other in zip(sources, created, strict=True) if other in (None, slot)]


def _proven(path: Path, found: Compared) -> Compared:
    """Return the comparison if the chain proves the ledger. Raises LedgerNotProvenError."""
    if found.match is Match.WHOLE:
        return found
    told = {
        Match.BEHIND: (f"{found.num_events} of them", _PULL),
        Match.AHEAD: (f"{found.num_events} events", "The RPC node lags: ask another with --rpc."),
        Match.OTHER: (
            "as many that give another hash",
            "Repair it from another RPC node: troth ledger repair --rpc URL.",
        ),
    }[found.match]
    expected = f"the {found.num_on_chain} events that the Run account has absorbed"
    raise LedgerNotProvenError(expected, told[0], told[1], str(path))
