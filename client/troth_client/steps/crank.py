"""Crank: move the run on when a transition is due, without everyone sending at once.

Owns: which transitions are due and the chance of sending them (about 2/n per slot, section 1).
Never: decides what a transition does, nor treats a lost race as an error.
Next: `observe.py`, which cranks while it waits.
"""

from solders.instruction import Instruction

from troth_client.participant.peer import Peer
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap, progress, root
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, RoundView, Status

SEED_HISTORY_SLOTS = 512
"""Entries of the SlotHashes sysvar: a seed slot that is younger than this is still listed."""
SEED_BITS = 64
"""Width of the bitmap of pending seeds on chain; a round's bit is its number modulo this."""
MAX_SEEDS = 4
"""Seeds that one call settles."""
TICKED = (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP, Phase.COMMIT, Phase.HALTED)
"""Phases that a tick ends; the others end by a close or by the run authority."""


async def crank(peer: Peer, view: NetworkView) -> None:
    """Send what is due, with a chance that makes about two peers of n try.

    One transaction each: a seed that is refused holds up neither the others nor the transition.
    """
    if not is_our_turn(peer, view):
        return
    for round_ in await due_seeds(peer, view):
        await _settle_seed(peer, view, round_)
    due = due_transition(peer, view)
    if due:
        await _try_send(peer, view, due)


def is_our_turn(peer: Peer, view: NetworkView) -> bool:
    """Draw whether to send what anyone may send: about two peers of n do, in each slot."""
    return peer.random.random() < 2 / max(2, _num_active(view))


async def tend(peer: Peer, view: NetworkView) -> None:
    """Use a wait: move the run on, then do what its audits ask of us."""
    await crank(peer, view)
    await peer.attend(peer, view)


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


async def due_seeds(peer: Peer, view: NetworkView) -> list[RoundView]:
    """Return the oldest rounds whose seed can be frozen, or retargeted, now."""
    pending = pending_seeds(view)
    if not pending:
        return []
    found = await peer.chain.read_rounds(peer.at.run, pending[:MAX_SEEDS])
    return [round_ for round_ in found if round_ is not None and view.slot > round_.seed_slot]


async def _settle_seed(peer: Peer, view: NetworkView, round_: RoundView) -> None:
    """Freeze a seed; retarget it where its slot has left the list.

    The list counts blocks, not slots: while slots are skipped it reaches further back.
    """
    cranker = peer.identity.session.pubkey()
    freeze = instructions.freeze_seed(peer.at, cranker, round_.round)
    retarget = instructions.retarget(peer.at, cranker, round_.round)
    is_old = view.slot > round_.seed_slot + SEED_HISTORY_SLOTS
    if not await _try_send(peer, view, [freeze]) and is_old:
        await _try_send(peer, view, [retarget])


async def _try_send(peer: Peer, view: NetworkView, due: list[Instruction]) -> bool:
    """Send a transition; False if it was refused: the next view tells whether it is still due."""
    phase = view.run.phase.name
    try:
        sent = await peer.chain.send(due, [peer.identity.session])
    except ProgramRefusedError as error:
        # Another peer was faster, or the chain sees it differently.
        peer.events.emit("crank_refused", phase=phase, name=error.name)
        return False
    peer.events.emit("cranked", phase=phase, fee=sent.fee_lamports)
    return True


def _num_active(view: NetworkView) -> int:
    if view.round is not None:
        return bitmap.count(view.round.members)
    return sum(entry.status in (Status.PENDING, Status.ACTIVE) for entry in view.entries)
