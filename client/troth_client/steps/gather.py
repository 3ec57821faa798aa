"""Gather: obtain every committed submission, or as many as there is time for.

Owns: for how long and in which phase to fetch; copies of our own payload go out meanwhile.
Never: checks bytes; `network/submissions.py` does. Next: `attest.py`.
"""

import asyncio
from typing import Any

from troth_attestation.errors import HeaderError
from troth_client.network.chain import RunChain
from troth_client.network.submissions import Submissions
from troth_client.runtime.base import end
from troth_client.state.records import Held, Published, RoundPlan
from troth_client.steps.publish import Outbox, outboxes
from troth_client.telemetry.spans import timed
from troth_client.transport.errors import TransportError
from troth_coordinator.rules import bitmap, progress
from troth_coordinator.rules.ids import ParticipantIndex
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, RoundView


@timed("gather")
async def gather(
    chain: RunChain, submissions: Submissions, plan: RoundPlan, published: Published
) -> dict[int, Held]:
    """Return the submissions that passed every check, by index.

    Ends when all committed ones are held or refused, or when it is time to attest with those that
    arrived. So a holder that hangs does not make us late.
    """
    view = await chain.recent()
    collection = _Collection(submissions, published.round)
    handing = _Handing(outboxes(submissions, published))
    try:
        while True:
            collection.ask(view)
            handing.offer()
            under_way: list[asyncio.Future[Any]] = [*collection.under_way, *handing.under_way]
            await chain.runtime.wait(under_way)
            handing.take()
            collection.take()
            view = await chain.recent()
            is_complete = collection.is_complete and not handing.is_owed
            if is_complete or _is_time(view, plan):
                break
            if not collection.under_way:
                await chain.runtime.wait()
    finally:
        await end(*collection.under_way, *handing.under_way)
    collection.report()
    chain.events.emit("gathered", round=plan.round, held=len(collection.held))
    return collection.held


class _Handing:
    """The copies of our own payload on their way to others."""

    def __init__(self, boxes: list[Outbox]) -> None:
        self._boxes = boxes
        self._offers: dict[int, asyncio.Task[None]] = {}

    @property
    def under_way(self) -> list["asyncio.Task[None]"]:
        """The offers that were not taken in yet."""
        return list(self._offers.values())

    @property
    def is_owed(self) -> bool:
        """Whether nobody else has our payload yet, and somebody may still take it."""
        is_taken = any(box.num_taken for box in self._boxes)
        return not is_taken and any(box.may_be_taken for box in self._boxes)

    def offer(self) -> None:
        """Offer again what is not out yet, each box by itself."""
        for at, box in enumerate(self._boxes):
            if not box.is_empty and at not in self._offers:
                self._offers[at] = asyncio.create_task(box.offer())

    def take(self) -> None:
        """Take in the offers that have ended; raise what is no holder's fault: our disk's."""
        for at, offer in list(self._offers.items()):
            if offer.done():
                del self._offers[at]
                offer.result()


class _Collection:
    """The submissions that were asked for, those that arrived, and those refused for good."""

    def __init__(self, submissions: Submissions, round_: RoundView) -> None:
        self.held: dict[int, Held] = {}
        self._submissions = submissions
        self._events = submissions.state.events
        self._round = round_
        self._missing = set(bitmap.indices_of(round_.committed))
        self._tasks: dict[int, asyncio.Task[Held]] = {}
        self._failures: dict[int, TransportError] = {}

    @property
    def is_complete(self) -> bool:
        """Whether no more submissions can arrive."""
        return not self._missing

    @property
    def under_way(self) -> list["asyncio.Task[Held]"]:
        """The fetches of missing submissions."""
        return list(self._tasks.values())

    def ask(self, view: NetworkView) -> None:
        """Start a fetch for every missing submission that is not being fetched."""
        for index in sorted(self._missing - self._tasks.keys()):
            fetching = self._submissions.vouchable(self._round, view, index)
            self._tasks[index] = asyncio.create_task(fetching)

    def take(self) -> None:
        """Take in finished fetches; submissions that nobody serves yet are asked for again."""
        for index, task in list(self._tasks.items()):
            if not task.done():
                continue
            del self._tasks[index]
            try:
                self.held[index] = task.result()
            except HeaderError as error:
                self._refuse(index, error)
            except TransportError as error:
                self._failures[index] = error
                continue
            self._missing.discard(ParticipantIndex(index))

    def report(self) -> None:
        """Report the missing submissions, and why they could not be fetched."""
        for index in sorted(self._missing):
            reason = str(self._failures.get(index, "no answer in time"))
            self._events.emit("fetch_failed", round=self._round.round, index=index, reason=reason)

    def _refuse(self, index: int, error: HeaderError) -> None:
        self._events.emit(
            "header_refused",
            round=self._round.round,
            index=index,
            field=error.subject,
            reason=str(error),
        )


def _is_time(view: NetworkView, plan: RoundPlan) -> bool:
    """Whether to attest now: shortly before the phase may end, or when it has ended."""
    run = view.run
    if run.round != plan.round or run.phase != Phase.ATTEST:
        return True
    return view.slot >= progress.attest_deadline(run)
