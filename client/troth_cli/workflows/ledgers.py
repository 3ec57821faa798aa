"""`troth ledger`: fill, prove, merge and repair the ledger of a run.

Owns: which sources a ledger is made of, and that a file is replaced only by one that proves more.
Never: prints, or believes a ledger that the chain hash contradicts.
Next: `troth_coordinator/ledger/`, which folds, follows and merges.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_cli.errors import LedgerNotProvenError, OutputFileError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.file import Ledger, LedgerFile, LedgerHead
from troth_coordinator.ledger.fold import Fold
from troth_coordinator.ledger.follow import Compared, Match, compare, follow
from troth_coordinator.ledger.history import entries_after
from troth_coordinator.ledger.merge import Merging

BEFORE: Final = ".before-repair"
_PULL: Final = "troth ledger pull adds what has landed since; then verify again."
_TRIES: Final = 3
"""The chain may go on between reading entries and reading the Run account."""


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
    total = 0
    with LedgerFile(path, head) as ledger:
        for _ in range(_TRIES):
            total += await follow(client, ledger)
            found = compare(ledger.fold, await client.read_run(run))
            if found.match is not Match.BEHIND:
                break
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

    Raises OutputFileError for a file that is there, or for ledgers of different runs.
    """
    if out.exists():
        raise OutputFileError("a new file", "one that exists", "Name another one.", str(out))
    head = ledgers[0].head
    for other in ledgers[1:]:
        if other.head != head:
            expected = f"a ledger of run {head.run}"
            step = "Merge ledgers of one run only."
            raise OutputFileError(expected, f"run {other.head.run}", step, str(other.path))
    return _write(head, [one.sound_entries() for one in ledgers], out)


async def repair(client: CoordinatorClient, ledger: Ledger, others: Sequence[Ledger]) -> Made:
    """Fill the holes of a ledger from others and from the RPC node, and replace the file.

    The file from before stays beside it. Only entries that are in no ledger are asked for. Raises
    OutputFileError for ledgers of different runs, LedgerNotProvenError, changing nothing, where
    a gap is left, RpcError, OSError.
    """
    made = ledger.path.with_name(ledger.path.name + ".repaired")
    made.unlink(missing_ok=True)
    sources = [list(one.sound_entries()) for one in (ledger, *others)]
    known = {entry.signature: entry for source in sources for entry in source}
    run = Pubkey.from_string(ledger.head.run)
    fetched = [entry async for entry in entries_after(client, run, known=known)]
    found = _write(ledger.head, [*sources, fetched], made)
    if found.gap:
        made.unlink()
        step = "Name other ledgers with --from, or an RPC node with older transactions."
        raise LedgerNotProvenError("a ledger without a gap", found.gap, step, str(ledger.path))
    previous = ledger.path.with_name(ledger.path.name + BEFORE)
    ledger.path.replace(previous)
    made.replace(ledger.path)
    return found


def _write(head: LedgerHead, sources: Sequence[Iterable[Entry]], out: Path) -> Made:
    merging = Merging(head.reader())
    with LedgerFile(out, head) as ledger:
        number = ledger.append(merging.entries(sources))
        return Made(number, ledger.fold.next_sequence, merging.gap)


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
