"""Housekeeping: send the transitions that anyone may send, make checkpoints, drop old files.

Owns: transitions, seeds and steps of audits, sent in turns (`turns.py`); the start of a checkpoint;
and the removal of opening sets and verdicts of settled audits (`state/unneeded.py` says when).
Never: treats a lost race as an error, or lets a send that hangs delay another.
Next: `steps/transitions.py`, `audit/transitions.py`, `checkpoints.py`.
"""

from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from solders.instruction import Instruction

from troth_client.audit.transitions import due_for, open_audit, take_step
from troth_client.member import Member
from troth_client.network.chain import RunChain
from troth_client.network.fee_funds import Rank
from troth_client.network.named_tasks import NamedTasks
from troth_client.network.sends import Due
from troth_client.participant.checkpoints import Checkpoints
from troth_client.participant.turns import is_our_turn
from troth_client.state.audit_state import AuditState
from troth_client.state.verdict_store import Duty
from troth_client.steps.transitions import due_transition, pending_seeds
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import REFUSALS
from troth_coordinator.rules.audit_view import NOTHING_OWED
from troth_coordinator.rules.phase import IN_ROUND, Phase
from troth_coordinator.rules.progress import attendance
from troth_coordinator.rules.seeds import SLOT_HASHES_LISTED
from troth_coordinator.rules.view import NetworkView, RoundView

MAX_SEEDS = 4
"""Seeds that are read at one look."""


async def keep_house(member: Member) -> NoReturn:
    """Do at each look what is due, for ever."""
    watch, tracker, house = member.chain.watch, member.audits.tracker, _House(member)
    try:
        while True:
            looked, refreshed = watch.upcoming(), tracker.upcoming()
            await house.tasks.until(looked, refreshed)
            if looked.done():
                house.crank(looked.result())
            if refreshed.done():
                house.move_audits(tracker.view)
    finally:
        await house.tasks.close()


class _House:
    """Begins the sends that a view makes due, at most one for each purpose at a time.

    Several looks may fall in one slot. Only the first counts: a later one need not show what the
    first has led to.
    """

    def __init__(self, member: Member) -> None:
        self.tasks = NamedTasks(member.chain, "housekeeping")
        self._chain = member.chain
        self._replica = member.state.replica
        self._audits = member.audits
        self._checkpoints = Checkpoints(member)
        self._cranked_slot = self._moved_slot = -1
        self._hurried: tuple[int, Phase] | None = None

    def crank(self, view: NetworkView) -> None:
        """Move the run on: seeds, and the transition that is due."""
        if view.slot == self._cranked_slot:
            return
        self._cranked_slot = view.slot
        if self._checkpoints.is_due(view):
            self.tasks.start("checkpoint", partial(self._checkpoints.make, view))
        if self._checkpoints.is_offer_due(view):
            self.tasks.start("offer", partial(self._checkpoints.offer, view))
        chain = self._chain
        if not chain.funds.allows(Rank.HOUSE):
            return
        moment = view.run.round, view.run.phase
        is_ours = is_our_turn(chain.index, view, moment)
        if pending_seeds(view) and is_ours:
            self.tasks.start("seeds", partial(settle_seeds, chain, view))
        if not is_ours and (moment == self._hurried or not _have_all_acted(view)):
            return
        due = due_transition(chain, self._replica.known_root, view)
        if due:
            self._hurried = moment
            self.tasks.start(("transition", *moment), partial(_try_transition, chain, view, due))

    def move_audits(self, view: NetworkView) -> None:
        """Move audits on, and forget what they no longer ask for."""
        if view.slot == self._moved_slot:
            return
        self._moved_slot = view.slot
        tidy(self._audits, view)
        chain, tracker = self._chain, self._audits.tracker
        if not chain.funds.allows(Rank.HOUSE):
            return
        for audit in sorted(tracker.audits(view), key=lambda audit: audit.stage_end):
            due = due_for(tracker, view, audit)
            if due is not None and is_our_turn(chain.index, view, audit.key):
                self.tasks.start(
                    (audit.key, due), partial(take_step, chain, tracker, view, audit, due)
                )
        for key in tracker.to_open(view):
            if is_our_turn(chain.index, view, key):
                self.tasks.start((key, None), partial(open_audit, chain, tracker, view, key))


def _have_all_acted(view: NetworkView) -> bool:
    """Tell whether everybody has acted in a phase of a round; then we try once, out of turn.

    No push says so. Those who see it first are the last to act, who looked after their act: few.
    """
    return view.run.phase in IN_ROUND and not attendance(view).missing


async def settle_seeds(chain: RunChain, view: NetworkView) -> None:
    """Freeze the seeds that can be frozen; retarget a seed whose slot has left the slot hashes.

    One transaction each: a seed that is refused does not hold up the others. The list counts
    blocks, not slots: while slots are skipped it reaches further back.
    """
    for round_ in await due_seeds(chain, view):
        freeze = instructions.freeze_seed(chain.at, chain.payer, round_.round)
        is_old = view.slot > round_.seed_slot + SLOT_HASHES_LISTED
        if not await try_send(chain, view, [freeze]) and is_old:
            retarget = instructions.retarget_seed(chain.at, chain.payer, round_.round)
            await try_send(chain, view, [retarget])


async def due_seeds(chain: RunChain, view: NetworkView) -> list[RoundView]:
    """Return the oldest rounds whose seed can be frozen, or retargeted, now."""
    found = await chain.rounds_of(view, pending_seeds(view)[:MAX_SEEDS])
    return [round_ for round_ in found if round_ is not None and view.slot > round_.seed_slot]


async def try_send(chain: RunChain, view: NetworkView, steps: list[Instruction]) -> bool:
    """Send a transition; False if it was refused, or is over before it landed.

    The next view tells whether it is still due.
    """
    moment = view.run.round, view.run.phase
    has_landed = await chain.send_while(
        lambda now: (now.run.round, now.run.phase) == moment,
        partial(_try_send, chain, view.run.phase.name, steps),
    )
    return bool(has_landed)


async def _try_send(chain: RunChain, phase: str, steps: Sequence[Instruction], due: Due) -> bool:
    try:
        sent = await chain.send(*steps, due=due)
    except REFUSALS as error:
        # Another participant was faster, or the chain sees it differently.
        chain.events.emit("crank_refused", phase=phase, name=error.name)
        return False
    chain.events.emit("cranked", phase=phase, fee=sent.fee_lamports)
    return True


async def _try_transition(chain: RunChain, view: NetworkView, due: list[Instruction]) -> None:
    await try_send(chain, view, due)


def tidy(audits: AuditState, view: NetworkView) -> None:
    """Forget the opening sets and verdicts that open audits no longer ask for, at many views."""
    sets = [held for held in audits.openings.held if audits.tracker.is_done(*held, view)]
    for round_, target in audits.idle_sets.ripe(sets, view.slot):
        audits.openings.settle(round_, target)
    over = [
        duty
        for duty in audits.verdicts.duties()
        if duty.round + view.run.params.ring < view.run.round and _is_over(audits, duty)
    ]
    for duty in audits.idle_duties.ripe(over, view.slot):
        audits.verdicts.drop(duty)


def _is_over(audits: AuditState, duty: Duty) -> bool:
    audit = audits.tracker.find(duty.round, duty.target, duty.kind)
    return audit is None or audit.stage in NOTHING_OWED
