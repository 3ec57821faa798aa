"""Housekeeping: send the transitions that anyone may send, and drop files that nobody needs.

Owns: transitions, seeds and steps of audits, each sent by about two participants of n; and the
removal of opening sets and verdicts of settled audits. Never: treats a lost race as an error, or
lets a send that hangs delay another. Next: `steps/transitions.py`, `audit/transitions.py`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from random import Random
from typing import Any, NoReturn

from solders.instruction import Instruction

from troth_client.audit.transitions import due_for, open_audit, take_step
from troth_client.member import Member
from troth_client.network.chain import RunChain
from troth_client.network.watch import RPC_FAILURES
from troth_client.runtime.base import end
from troth_client.state.audit_state import AuditState
from troth_client.state.verdict_store import Duty
from troth_client.steps.transitions import due_transition, pending_seeds
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.view import NetworkView, RoundView, Status

SEED_HISTORY_SLOTS = 512
"""Entries of the SlotHashes sysvar: a seed slot that is younger than this is still listed."""
MAX_SEEDS = 4
"""Seeds that are read in one view."""
JUDGED = (AuditStage.SETTLED, AuditStage.DECIDED)
"""Stages in which nobody owes a verdict or a vote."""


async def keep_house(member: Member) -> NoReturn:
    """Send whatever is due in each view, for ever."""
    house = _House(member)
    try:
        while True:
            house.look(await member.audits.tracker.next())
    finally:
        await house.close()


class _House:
    """The sends under way, at most one for each purpose."""

    def __init__(self, member: Member) -> None:
        self._chain = member.chain
        self._replica = member.state.replica
        self._audits = member.audits
        self._random = member.submissions.random
        self._under_way: dict[Hashable, asyncio.Task[None]] = {}

    def look(self, view: NetworkView) -> None:
        """Start the sends that a view makes due. Raises unexpected errors of earlier sends."""
        self._take()
        if is_our_turn(self._random, view):
            self._crank(view)
        self._move_audits(view)
        tidy(self._audits, view)

    async def close(self) -> None:
        """End the sends under way."""
        await end(*self._under_way.values())

    def _crank(self, view: NetworkView) -> None:
        chain = self._chain
        if pending_seeds(view):
            self._begin("seeds", partial(settle_seeds, chain, view))
        due = due_transition(chain, self._replica.known_root, view)
        if due:
            step = ("transition", view.run.round, view.run.phase)
            self._begin(step, partial(_try_transition, chain, view, due))

    def _move_audits(self, view: NetworkView) -> None:
        chain, tracker = self._chain, self._audits.tracker
        for audit in sorted(tracker.audits(view), key=lambda audit: audit.stage_end):
            due = due_for(tracker, view, audit)
            if due is not None and is_our_turn(self._random, view):
                self._begin((audit.key, due), partial(take_step, chain, tracker, view, audit, due))
        for key in tracker.to_open(view):
            if is_our_turn(self._random, view):
                self._begin((key, None), partial(open_audit, chain, tracker, view, key))

    def _begin(self, purpose: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if purpose not in self._under_way:
            self._under_way[purpose] = self._chain.runtime.start(work(), "housekeeping")

    def _take(self) -> None:
        for purpose, task in list(self._under_way.items()):
            if task.done():
                del self._under_way[purpose]
                try:
                    task.result()
                except RPC_FAILURES as error:
                    self._chain.watch.report(error)


def is_our_turn(random: Random, view: NetworkView) -> bool:
    """Draw whether to send in this slot; about two participants of n do."""
    return random.random() < 2 / max(2, _num_active(view))


async def settle_seeds(chain: RunChain, view: NetworkView) -> None:
    """Freeze the seeds that can be frozen; retarget a seed whose slot has left the slot hashes.

    One transaction each: a seed that is refused does not hold up the others. The list counts
    blocks, not slots: while slots are skipped it reaches further back.
    """
    for round_ in await due_seeds(chain, view):
        freeze = instructions.freeze_seed(chain.at, chain.payer, round_.round)
        is_old = view.slot > round_.seed_slot + SEED_HISTORY_SLOTS
        if not await try_send(chain, view, [freeze]) and is_old:
            retarget = instructions.retarget(chain.at, chain.payer, round_.round)
            await try_send(chain, view, [retarget])


async def due_seeds(chain: RunChain, view: NetworkView) -> list[RoundView]:
    """Return the oldest rounds whose seed can be frozen, or retargeted, now."""
    found = await chain.read_rounds(pending_seeds(view)[:MAX_SEEDS])
    return [round_ for round_ in found if round_ is not None and view.slot > round_.seed_slot]


async def try_send(chain: RunChain, view: NetworkView, due: list[Instruction]) -> bool:
    """Send a transition; False if it was refused: the next view tells whether it is still due."""
    phase = view.run.phase.name
    try:
        sent = await chain.send(*due)
    except ProgramRefusedError as error:
        # Another participant was faster, or the chain sees it differently.
        chain.events.emit("crank_refused", phase=phase, name=error.name)
        return False
    chain.events.emit("cranked", phase=phase, fee=sent.fee_lamports)
    return True


async def _try_transition(chain: RunChain, view: NetworkView, due: list[Instruction]) -> None:
    await try_send(chain, view, due)


def tidy(audits: AuditState, view: NetworkView) -> None:
    """Forget the opening sets and verdicts that open audits no longer ask for."""
    for round_, target in audits.openings.held:
        if audits.tracker.is_done(round_, target, view):
            audits.openings.settle(round_, target)
    for duty in audits.verdicts.duties():
        if duty.round + view.run.params.ring < view.run.round and _is_over(audits, duty):
            audits.verdicts.drop(duty)


def _is_over(audits: AuditState, duty: Duty) -> bool:
    audit = audits.tracker.find(duty.round, duty.target, duty.kind)
    return audit is None or audit.stage in JUDGED


def _num_active(view: NetworkView) -> int:
    if view.round is not None:
        return bitmap.count(view.round.members)
    return sum(entry.status in (Status.PENDING, Status.ACTIVE) for entry in view.entries)
