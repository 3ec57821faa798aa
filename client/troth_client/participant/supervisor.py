"""The supervisor: sibling tasks fed by one watcher of the chain.

Owns: starting rounds, audits, housekeeping, the payer and what else is asked for; ending them
together, and the request to stop.
Never: decides what one of them does. Next: `rounds.py`, `audits.py`, `housekeeping.py`, `payer.py`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar

from troth_client.audit.debts import debts
from troth_client.member import Member
from troth_client.participant.arrival import arrive
from troth_client.participant.audits import run_audits
from troth_client.participant.housekeeping import keep_house
from troth_client.participant.membership import has_left
from troth_client.participant.payer import Payer
from troth_client.participant.rounds import begin, run_rounds
from troth_client.runtime.base import end
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

T = TypeVar("T")
Beside = Callable[[Member], Coroutine[Any, Any, NoReturn]]
NOTHING: Final[Mapping[str, Beside]] = MappingProxyType({})


class Supervisor:
    """One participant in one run. `stop` of its state lets the round under way end first.

    `has_arrived`: its weights are those of the run already, and need not be read from disk.
    `owner`: lets it leave the run when its session key cannot pay any more. `besides`: what it
    does beside the rounds, by name.
    """

    def __init__(
        self,
        member: Member,
        *,
        has_arrived: bool = False,
        owner: Owner | None = None,
        besides: Mapping[str, Beside] = NOTHING,
    ) -> None:
        self._besides = besides
        self.member = member
        self._payer = Payer(member, owner)
        self._has_arrived = has_arrived
        self._siblings: list[asyncio.Task[NoReturn]] = []

    async def run(self) -> NetworkView:
        """Take part until the run is over, we have left it or a stop is asked for.

        Returns the last view. When a stop was asked for, reports the audit duties that are left.
        Raises the error that ended a task: RootDisputeError, DisputedError, LaggingError,
        TooSlowError, ReplacedError, BarredError; FeesSpentError when no fees are left. RPC nodes
        that stay away end nothing.
        """
        member = self.member
        try:
            self._start(member.chain.watch.follow(), "watch")
            # Opening sets cannot wait for the weights to be checked; new judgements can.
            self._start(run_audits(member, lambda: self._has_arrived), "audits")
            if not self._has_arrived:
                await self._beside_siblings(begin(member), "begin")
                self._has_arrived = True
            self._start(keep_house(member), "housekeeping")
            self._start(self._payer.watch(), "payer")
            for name, work in self._besides.items():
                self._start(work(member), name)
            last = await self._beside_siblings(run_rounds(member), "rounds")
            await end(*self._siblings)
            await member.chain.all_sent()
        finally:
            await end(*self._siblings, *member.chain.sends)
        if member.state.stop.is_set():
            for debt in debts(member.audits.tracker, member.chain.index, last):
                member.chain.events.emit("owed", **asdict(debt))
        is_over = last.run.phase == Phase.FINISHED and not has_left(member.chain, last)
        if self._payer.is_spent and not is_over:
            raise self._payer.spent()
        return last

    async def arrive(self) -> None:
        """Bring a participant that has not joined yet to where the run is; then end the tasks.

        Raises RunOverError, LaggingError, TooSlowError, DisputedError, StoppedError, and what the
        parts raise.
        """
        try:
            self._start(self.member.chain.watch.follow(), "watch")
            await self._beside_siblings(begin(self.member), "begin")
            await self._beside_siblings(arrive(self.member), "arrive")
        finally:
            await end(*self._siblings)
            self._siblings.clear()

    def _start(self, work: Coroutine[Any, Any, NoReturn], name: str) -> None:
        self._siblings.append(self.member.chain.runtime.start(work, name))

    async def _beside_siblings(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Return the result of the work; raise at once the error that ends it or a sibling."""
        runtime = self.member.chain.runtime
        task = runtime.start(work, name)
        try:
            await runtime.wait_for_others(task, *self._siblings)
            for sibling in self._siblings:
                if sibling.done():
                    sibling.result()
            return task.result()
        finally:
            await end(task)
