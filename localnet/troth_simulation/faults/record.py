"""The notes of a running soak: closed rounds, faults, ends of processes, stakes, usage.

Owns: the notes, and reading them from one look at the chain or at a process.
Never: judges them; `report.py` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView
from troth_simulation.faults.schedule import Fault
from troth_simulation.faults.trouble import Kind

_KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class ClosedRound:
    """A round that closed: bitmaps of indices."""

    round: int
    is_void: bool
    trainers: int
    included: int


@dataclass(slots=True)
class PlayedFault:
    """A fault, and the rounds that were open when it began and ended; None: it still lasts."""

    fault: Fault
    first_round: int
    last_round: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """A process that ended though nobody killed it, and the kinds of faults that it had lately."""

    member: int
    slot: int
    round: int
    code: int
    reason: str
    during: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory and disk of one process; zero where it does not run."""

    rss_bytes: int
    disk_bytes: int


@dataclass(slots=True)
class Record:
    """The notes of one soak. `first_slot` is that from which faults count theirs.

    `indices`: the index in the roster of each member; members are numbered as the caller does.
    `lowest_stake` and the bitmaps of rounds go by index, everything else by member.
    """

    indices: tuple[int, ...] = ()
    first_slot: int = 0
    last_slot: int = 0
    first_round: int = 0
    rounds: dict[int, ClosedRound] = field(default_factory=dict)
    played: list[PlayedFault] = field(default_factory=list)
    ends: list[ProcessEnd] = field(default_factory=list)
    lowest_stake: dict[int, int] = field(default_factory=dict)
    usage: dict[str, tuple[Usage, Usage]] = field(default_factory=dict)

    def note(self, view: NetworkView) -> None:
        """Take the stakes and the closed round that a view shows."""
        self.last_slot = view.slot
        for index, entry in enumerate(view.entries):
            lowest = self.lowest_stake.get(index, entry.stake)
            self.lowest_stake[index] = min(lowest, entry.stake)
        if view.previous_round is not None:
            self.note_round(view.previous_round)

    def note_round(self, found: RoundView) -> None:
        """Take a round, once it is closed."""
        if found.flags & RoundFlag.CLOSED and found.round >= self.first_round:
            is_void = bool(found.flags & RoundFlag.VOID)
            self.rounds[found.round] = ClosedRound(
                found.round, is_void, found.trainers, 0 if is_void else found.included
            )

    def missing_rounds(self, view: NetworkView) -> range:
        """Return the rounds that closed between two looks, so that the caller reads them."""
        newest = max(self.rounds, default=self.first_round - 1)
        return range(newest + 1, max(newest + 1, view.run.round - 1))


def usage_of(pid: int, folder: Path) -> Usage:
    """Measure a process and its folder now."""
    return Usage(_rss_bytes(pid), _disk_bytes(folder))


def _rss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(found[0]) * _KIB if found else 0


def _disk_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # removed while we looked
    return total
