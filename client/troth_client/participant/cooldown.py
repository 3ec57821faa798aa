"""Cooldown: vote for the current root, so that it becomes the checkpoint (section 3).

Owns: the root-only vote. Never: a payload; there is none in this step.
Next: `housekeeping.py` closes it.
"""

from functools import partial

from solders.instruction import Instruction

from troth_client.network.chain import RunChain
from troth_client.network.sends import Due, phase_left
from troth_client.state.replica import Replica
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import REFUSALS
from troth_coordinator.rules import bitmap, progress
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView, RoundFlag


async def vote_root(chain: RunChain, replica: Replica, view: NetworkView) -> None:
    """Commit to the root of our weights, once, while the root-only step is open."""
    round_ = view.round
    if round_ is None or not round_.flags & RoundFlag.ROOT_ONLY:
        return
    is_ours = bitmap.has(round_.trainers & ~round_.committed, chain.index)
    if not is_ours or replica.round != round_.round or progress.is_transition_due(view):
        return
    own = root_vote(chain.run, round_.round, chain.identity.owner_address, replica.root())
    vote = instructions.vote_root(chain.at, chain.payer, chain.index, round_.round, own)
    await chain.send_while(
        lambda now: now.run.phase == Phase.COOLDOWN and now.run.round == round_.round,
        partial(_send, chain, vote, round_.round),
        left=phase_left,
    )


async def _send(chain: RunChain, vote: Instruction, round_: int, due: Due) -> None:
    try:
        sent = await chain.send(vote, due=due)
    except REFUSALS as error:
        chain.events.emit("root_vote_refused", round=round_, name=error.name)
    else:
        chain.events.emit("root_voted", round=round_, fee=sent.fee_lamports)
