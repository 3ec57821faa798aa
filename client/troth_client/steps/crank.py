"""Crank: move the run on when a transition is due, without everyone sending at once.

Owns: which transition is due and the chance of sending it (about 2/n per slot, section 1).
Never: decides what a transition does, nor treats a lost race as an error.
Next: `observe.py`, which cranks while it waits.
"""

from solders.instruction import Instruction

from troth_client.peer import Peer
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap, progress, root
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, RoundView, Status

SEED_HISTORY_SLOTS = 512
"""Entries of the SlotHashes sysvar: a seed slot older than this can only be retargeted."""
SEED_BITS = 64
"""Width of the bitmap of pending seeds on chain; a round's bit is its number modulo this."""
MAX_SEEDS = 4
"""Seeds frozen in one transaction."""
TICKED = (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP, Phase.COMMIT, Phase.HALTED)
"""Phases that a tick ends; the others end by a close or by the run authority."""


async def crank(peer: Peer, view: NetworkView) -> None:
    """Send at most one due transition, with a chance that makes about two peers of n try."""
    if peer.random.random() >= 2 / max(2, _num_active(view)):
        return
    due = await due_seeds(peer, view) or due_transition(peer, view)
    if not due:
        return
    try:
        sent = await peer.chain.send(due, [peer.identity.session])
    except ProgramRefusedError as error:
        # Another peer was faster, or the chain sees it differently: the next view tells.
        peer.events.emit("crank_refused", phase=view.run.phase.name, name=error.name)
    else:
        peer.events.emit("cranked", phase=view.run.phase.name, fee=sent.fee_lamports)


def due_transition(peer: Peer, view: NetworkView) -> list[Instruction]:
    """Return the instruction of the transition that is due now; empty if there is none."""
    run, cranker = view.run, peer.identity.session.pubkey()
    if run.phase in (Phase.ATTEST, Phase.COOLDOWN) or progress.is_forced_void(view):
        return closing(peer, view)
    if run.phase == Phase.PAUSED and progress.is_pause_spent(run, view.slot):
        return [instructions.resume_run(peer.at, cranker, run.round)]
    if run.phase in TICKED and progress.is_transition_due(view):
        return [instructions.tick(peer.at, cranker, run.round)]
    return []


def closing(peer: Peer, view: NetworkView) -> list[Instruction]:
    """Return what closes the open round: with our own root, or void once nobody else can."""
    round_, run = view.round, view.run
    if round_ is None or is_blocked_by_seed(view):
        return []
    void = instructions.close_void(peer.at, peer.identity.session.pubkey(), round_.round)
    if progress.is_forced_void(view):
        return [void]
    if not progress.is_transition_due(view):
        return []
    if decide(peer, view, round_) is not root.Outcome.NOT_CANONICAL:
        return [close_round(peer, view)]
    return [void] if view.slot >= progress.void_allowed_from(run) else []


def close_round(peer: Peer, view: NetworkView) -> Instruction:
    """Return the instruction that closes the open round on our own root."""
    cranker, round_ = peer.identity.session.pubkey(), view.run.round
    return instructions.close_round(
        peer.at,
        cranker,
        round_,
        peer.replica.root(),
        with_checkpoint=instructions.is_checkpoint_due(view.run),
    )


def decide(peer: Peer, view: NetworkView, round_: RoundView) -> root.Outcome:
    """Return how the open round would close with our own root as the candidate.

    A peer that is at another round has no root to offer, but sees as well when a round is void.
    """
    is_there = peer.replica.round == round_.round
    candidate = peer.replica.root() if is_there else ZERO_DIGEST
    return root.decide_view(view.run.address, round_, view.entries, candidate).outcome


def is_blocked_by_seed(view: NetworkView) -> bool:
    """Tell whether the next round may not open yet: a seed of `keep_rounds` ago is not frozen."""
    blocking = view.run.round + 1 - view.run.params.keep_rounds
    return blocking >= 0 and blocking in pending_seeds(view)


def pending_seeds(view: NetworkView) -> list[int]:
    """Return the closed rounds whose seed is neither frozen nor lost, oldest first."""
    oldest = max(0, view.run.round - SEED_BITS + 1)
    bits = view.run.seeds_pending
    return [r for r in range(oldest, view.run.round) if bits >> (r % SEED_BITS) & 1]


async def due_seeds(peer: Peer, view: NetworkView) -> list[Instruction]:
    """Return what freezes, or retargets, the oldest seeds that are due."""
    pending = pending_seeds(view)
    if not pending:
        return []
    cranker = peer.identity.session.pubkey()
    found = await peer.chain.read_rounds(peer.at.run, pending[:MAX_SEEDS])
    due = [r for r in found if r is not None and view.slot > r.seed_slot]
    return [
        instructions.freeze_seed(peer.at, cranker, round_.round)
        if view.slot <= round_.seed_slot + SEED_HISTORY_SLOTS
        else instructions.retarget(peer.at, cranker, round_.round)
        for round_ in due
    ]


def _num_active(view: NetworkView) -> int:
    if view.round is not None:
        return bitmap.count(view.round.members)
    return sum(entry.status in (Status.PENDING, Status.ACTIVE) for entry in view.entries)
