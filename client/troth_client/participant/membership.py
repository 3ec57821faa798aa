"""Membership: from joined to active, and out again (section 3).

Owns: `post_ready` and `activate`, the weights that a restart begins with, the check that we are
still who we were. Never: stakes or leaves; the owner does that from the command line.
Next: `steps/replay.py`, which brings the weights to the round they must have.
"""

from functools import partial

from solders.instruction import Instruction

from troth_client.network.chain import RunChain
from troth_client.network.errors import BarredError, ReplacedError
from troth_client.network.sends import Due, phase_left
from troth_client.steps.replay import Replay
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import REFUSALS
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import is_ready_for
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.standing import is_short
from troth_coordinator.rules.view import (
    EntryView,
    NetworkView,
    RoundView,
    RunFlag,
    Status,
)

NOT_YET = (Status.PENDING, Status.INACTIVE, Status.JAILED)


def has_left(chain: RunChain, view: NetworkView) -> bool:
    """Return whether the owner has left the run, so that there is nothing more to do."""
    return view.entries[chain.index].status == Status.LEFT


def check_standing(chain: RunChain, view: NetworkView) -> None:
    """Raise ReplacedError if a newer process has taken over, BarredError if the run bars us."""
    entry = view.entries[chain.index]
    ours = chain.identity.session_address
    if entry.owner != chain.identity.owner_address:
        raise ReplacedError(
            f"index {chain.index} of run {chain.at.run} to be ours",
            f"owner {entry.owner.hex()}",
            "This participant has left the run: join again to take part.",
        )
    if entry.status == Status.BARRED:
        raise BarredError(
            f"participant {chain.index} to be allowed in the run",
            "barred",
            "Its stake was slashed for a second fault; `troth status` shows what is left.",
        )
    if entry.status != Status.LEFT and ours not in (entry.session, entry.next_session):
        raise ReplacedError(
            f"session key {chain.payer} for index {chain.index}",
            f"{entry.session.hex()} on chain",
            "Another process of this owner took its place, from another state folder. Only this"
            " one can show what it has committed to: `troth join --anyway` here takes it back.",
        )


async def get_ready(replay: Replay, view: NetworkView) -> None:
    """Send `post_ready` where our entry needs it: for the stored root, or for the open round."""
    chain, replica = replay.chain, replay.state.replica
    entry, run = view.entries[chain.index], view.run
    if entry.status not in NOT_YET or is_short(entry, run.params):
        return
    is_between = run.phase in (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP)
    if is_between:
        # After the last Warmup only those who are ready already keep a run from being given up.
        is_now = run.phase == Phase.WARMUP or bool(run.flags & RunFlag.LAST_WARMUP)
        is_due = is_now or entry.status != Status.PENDING
        if not is_due or is_ready_for(entry, run):
            return
        await replay.load_stored_root(view)
        if replica.round != run.root_round:
            return  # another root is stored by now, or the view was false
        round_ = run.root_round
    else:
        round_ = run.round
        if entry.ready_round == round_ or round_ < max(
            entry.return_round, entry.jailed_until_round
        ):
            return
    vote = root_vote(chain.run, round_, chain.identity.owner_address, replica.root())
    post = instructions.post_ready(chain.at, chain.payer, chain.index, round_, vote)
    about = run.phase, run.round
    await chain.send_while(
        lambda now: (now.run.phase, now.run.round) == about,
        partial(_send_ready, chain, post, round_),
        left=phase_left,
    )


async def _send_ready(chain: RunChain, post: Instruction, round_: int, due: Due) -> None:
    try:
        sent = await chain.send(post, due=due)
    except REFUSALS as error:
        chain.events.emit("ready_refused", round=round_, name=error.name, reason=str(error))
    else:
        chain.events.emit("ready", round=round_, fee=sent.fee_lamports)


async def get_active(chain: RunChain, view: NetworkView) -> bool:
    """Activate our own entry if the round that it was ready for has closed with a root.

    Returns whether the entry is active now: we are a member from the next open round on.
    """
    entry = view.entries[chain.index]
    is_due = entry.status in NOT_YET and entry.ready_round < view.run.round
    if not is_due or is_short(entry, view.run.params):
        return False
    ready_round = await chain.read_round(entry.ready_round)
    if ready_round is None or not _opens_to(chain, entry, ready_round):
        return False
    step = instructions.activate(chain.at, chain.payer, chain.index, entry.ready_round)
    round_ = view.run.round
    is_active = await chain.send_while(
        lambda now: now.run.round == round_, partial(_send_activate, chain, step, round_)
    )
    return bool(is_active)


async def _send_activate(chain: RunChain, step: Instruction, round_: int, due: Due) -> bool:
    try:
        sent = await chain.send(step, due=due)
    except REFUSALS as error:
        chain.events.emit("activate_refused", name=error.name, reason=str(error))
        return False
    chain.events.emit("activated", round=round_, fee=sent.fee_lamports)
    return True


def _opens_to(chain: RunChain, entry: EntryView, round_: RoundView) -> bool:
    """Whether the vote that was sent with `post_ready` is one for the round's canonical root."""
    root = round_.canonical_root
    return root != ZERO_DIGEST and entry.ready_root == root_vote(
        chain.run, round_.round, entry.owner, root
    )
