"""The soak: participants as real processes, faults by schedule, one report.

Owns: when a fault begins and ends, starting again what has ended, when the soak is over.
Never: makes chain, run, proxies or processes: they are the caller's, who also ends them.
Next: `schedule.py` for the faults, `evidence.py` for what is made of the record.
"""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from troth_client.telemetry.event_log import EventTail
from troth_coordinator.chain.errors import RpcError
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.membership import index_of_owner
from troth_coordinator.rules.view import NetworkView, RoundView, Status
from troth_simulation.faults import evidence
from troth_simulation.faults.ground import Ground
from troth_simulation.faults.record import PlayedFault, ProcessEnd, Record, Usage, usage_of
from troth_simulation.faults.report import Report
from troth_simulation.faults.schedule import Fault
from troth_simulation.faults.trouble import PEER_TROUBLES, RPC_TROUBLES, Kind

FULL_DISK_BYTES: Final = 1_024
"""No file may grow beyond this while a disk is full."""
QUIET_SLOTS: Final = 600
"""The longest wait after the last fault for every member to be back; a start may take a minute."""
START_SLOTS: Final = 3_000
"""The longest wait from the start of the chain for all members to take part."""
_START_AGAIN_SLOTS: Final = 3
_FIRST_ROUND: Final = 1


class Soak:
    """Plays faults on a run whose processes are started. Use `play` once."""

    def __init__(self, ground: Ground, faults: Sequence[Fault], num_slots: int) -> None:
        self._ground = ground
        self._waiting = sorted(faults, reverse=True)
        self._num_slots = num_slots
        self._record = Record()
        self._started: list[Usage] = []
        self._first: NetworkView
        self._again: dict[int, int] = {}
        """The slot at which an ended process is started again, by member."""

    async def play(self) -> Report:
        """Wait until all take part, play every fault, wait until all are back, and report.

        Raises TimeoutError if they do not all take part within `START_SLOTS` slots at first, and
        RuntimeError if one of them ends before that.
        """
        view = await self._until_all_work()
        self._begin_record(view)
        while view.slot < self._record.first_slot + self._num_slots:
            await self._play_due(view)
            view = await self._look()
        for played in self._lasting():
            await self._end(played, view.run.round)
        last = view.slot + QUIET_SLOTS
        while view.slot < last and not self._all_back(view):
            await self._play_due(view)
            view = await self._look()
        return await self._report(view)

    async def _until_all_work(self) -> NetworkView:
        ground = self._ground
        while True:
            view = await self._look()
            owners = [index_of_owner(view.entries, bytes(one.owner)) for one in ground.stations]
            indices = [index for index in owners if index is not None]
            is_complete = len(indices) == len(ground.stations)
            if is_complete and view.run.round > _FIRST_ROUND and _are_in(view, indices):
                self._record.indices = tuple(int(index) for index in indices)
                return view
            self._check_ends(view)
            if self._record.ends:
                raise RuntimeError(f"expected all members to take part, found {self._record.ends}")
            if view.slot > START_SLOTS:
                raise TimeoutError(
                    f"expected all members in a round by slot {START_SLOTS}, found {view.run.phase}"
                    f" of round {view.run.round}: see the members' logs"
                )

    def _begin_record(self, view: NetworkView) -> None:
        indices = self._record.indices
        self._record = Record(indices, view.slot, view.slot, view.run.round)
        for one in self._ground.stations:
            one.lines.forget_traffic()
        self._started = self._usage()
        self._first = view
        self._record.note(view)

    async def _look(self) -> NetworkView:
        """Return a view of the chain a slot later, and note it."""
        ground = self._ground
        while True:
            await asyncio.sleep(ground.slot_seconds)
            try:
                view = await ground.client.snapshot(ground.run)
                for found in await self._missed(view):
                    self._record.note_round(found)
            except RpcError:
                continue  # a loaded machine: the chain itself is never in trouble
            self._record.note(view)
            return view

    async def _missed(self, view: NetworkView) -> list[RoundView]:
        rounds = self._record.missing_rounds(view)
        if not rounds:
            return []
        found = await self._ground.client.read_rounds(self._ground.run, rounds)
        return [one for one in found if one is not None]

    async def _play_due(self, view: NetworkView) -> None:
        now = view.slot - self._record.first_slot
        for played in self._lasting():
            if played.fault.end_slot <= now:
                await self._end(played, view.run.round)
        self._check_ends(view)
        for member in [one for one, slot in self._again.items() if slot <= view.slot]:
            del self._again[member]
            self._ground.fleet.start_again(member)
        while self._waiting and self._waiting[-1].slot <= now:
            await self._begin(self._waiting.pop(), view.run.round)

    async def _begin(self, fault: Fault, round_: int) -> None:
        if self._ground.fleet.exit_codes()[fault.member] is not None:
            return  # it ended by itself and is not back yet
        self._record.played.append(PlayedFault(fault, round_))
        lines = self._ground.stations[fault.member].lines
        match fault.kind:
            case Kind.KILL:
                self._ground.fleet.kill(fault.member)
            case Kind.STOP:
                self._ground.fleet.signal(fault.member, signal.SIGSTOP)
            case Kind.DISK_FULL:
                self._limit_files(fault.member, FULL_DISK_BYTES)
            case _:
                await lines.set(fault.kind, (RPC_TROUBLES | PEER_TROUBLES)[fault.kind])

    async def _end(self, played: PlayedFault, round_: int) -> None:
        played.last_round = round_
        fault = played.fault
        match fault.kind:
            case Kind.KILL:
                self._ground.fleet.start_again(fault.member)
            case Kind.STOP:
                self._ground.fleet.signal(fault.member, signal.SIGCONT)
            case Kind.DISK_FULL:
                self._limit_files(fault.member, None)
            case _:
                await self._ground.stations[fault.member].lines.set(fault.kind, None)

    def _limit_files(self, member: int, num_bytes: int | None) -> None:
        """Bound the files of a process that runs; None takes the bound away."""
        if self._ground.fleet.exit_codes()[member] is None:
            pid, kind = self._ground.fleet.pids[member], resource.RLIMIT_FSIZE
            _soft, hard = resource.prlimit(pid, kind)
            resource.prlimit(pid, kind, (hard if num_bytes is None else num_bytes, hard))

    def _lasting(self) -> list[PlayedFault]:
        return [one for one in self._record.played if one.last_round is None]

    def _check_ends(self, view: NetworkView) -> None:
        """Note the processes that ended though nobody killed them, and start them again soon."""
        killed = {one.fault.member for one in self._lasting() if one.fault.kind is Kind.KILL}
        for member, code in enumerate(self._ground.fleet.exit_codes()):
            if code is None or member in killed or member in self._again:
                continue
            during = self._kinds_near(member, view.run.round)
            reason = _last_words(self._ground.stations[member].log)
            end = ProcessEnd(member, view.slot, view.run.round, code, reason, during)
            self._record.ends.append(end)
            self._again[member] = view.slot + _START_AGAIN_SLOTS

    def _kinds_near(self, member: int, round_: int) -> tuple[Kind, ...]:
        """Return the kinds of faults that a member has, or had until the round before.

        A process needs some slots to end, and by then the fault that ends it may be over.
        """
        own = (one for one in self._record.played if one.fault.member == member)
        near = (o for o in own if o.last_round is None or o.last_round >= round_ - 1)
        return tuple(dict.fromkeys(one.fault.kind for one in near))

    def _all_back(self, view: NetworkView) -> bool:
        """Tell whether every member is active, and is in the newest round that closed."""
        newest = max(self._record.rounds, default=-1)
        if newest <= max((one.last_round or 0 for one in self._record.played), default=0):
            return False
        included = self._record.rounds[newest].included
        are_in = all(bitmap.has(included, index) for index in self._record.indices)
        return are_in and _are_in(view, self._record.indices)

    def _usage(self) -> list[Usage]:
        """Return the usage of each member, then that of the chain."""
        ground = self._ground
        of_members = [
            usage_of(pid, one.folder)
            for pid, one in zip(ground.fleet.pids, ground.stations, strict=True)
        ]
        return [*of_members, usage_of(ground.chain_pid, Path("/nonexistent"))]

    async def _report(self, view: NetworkView) -> Report:
        # The members go on while we read the chain's history: whatever counts is taken before.
        usage = tuple(zip(self._started, self._usage(), strict=True))
        traffic = evidence.all_traffic(self._ground, len(self._record.rounds))
        events = await self._ground.client.history(self._ground.run, self._ground.run)
        seen = evidence.Seen(self._first, view, events, usage, traffic)
        return evidence.report(self._ground, self._record, seen)


def _are_in(view: NetworkView, indices: Sequence[int]) -> bool:
    return all(view.entries[index].status is Status.ACTIVE for index in indices)


def _last_words(log: Path) -> str:
    """Return the last failure in a log, else its last event."""
    events = list(EventTail(log).read())
    failed = [event for event in events[-3:] if event["event"] == "failed"]
    last = (failed or events)[-1:]
    return " ".join(f"{k}={v}" for event in last for k, v in event.items() if k != "time")[:400]
