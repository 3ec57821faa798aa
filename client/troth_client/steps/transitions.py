"""Transitions: the instruction that moves the run on, given a view.

Owns: the transition that is due, and the one that our own commit or attestation makes due.
Never: sends, nor decides the effect of a transition.
Next: `participant/housekeeping.py`, which sends them.
"""

from dataclasses import replace

from solders.instruction import Instruction

from troth_client.network.chain import RunChain
from troth_client.state.records import OwnRoot
from troth_coordinator.chain import instructions
from troth_coordinator.rules import bitmap, progress, root
from troth_coordinator.rules.ids import ZERO_DIGEST, Bitmap, Digest
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, RoundView

SEED_BITS = 64
"""Width of the bitmap of pending seeds on chain; a round's bit is its number modulo this."""
ENDED_BY_ADVANCE = (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP, Phase.COMMIT, Phase.HALTED)
"""Phases that `advance_phase` ends; the others end by a close or by the run authority."""


def due_transition(chain: RunChain, own: OwnRoot | None, view: NetworkView) -> list[Instruction]:
    """Return the instruction of the transition that is due now; empty if there is none."""
    run = view.run
    if run.phase in (Phase.ATTEST, Phase.COOLDOWN) or progress.is_forced_void(view):
        return _closing(chain, own, view)
    if run.phase == Phase.PAUSED and progress.is_pause_spent(run, view.slot):
        return [instructions.resume_run(chain.at, chain.payer, run.round)]
    if run.phase in ENDED_BY_ADVANCE and progress.is_transition_due(view):
        return [instructions.advance_phase(chain.at, chain.payer, run.round)]
    return []


def advance_by(chain: RunChain, view: NetworkView) -> list[Instruction]:
    """Return the `advance_phase` that our commit makes due, if everyone else has acted already."""
    if progress.attendance(view).missing != bitmap.from_indices([chain.index]):
        return []
    return [instructions.advance_phase(chain.at, chain.payer, view.run.round)]


def close_by(
    chain: RunChain, own: OwnRoot | None, view: NetworkView, vouched: int
) -> list[Instruction]:
    """Return the close that our attestation makes due, if everyone else has attested already.

    `vouched` is the bitmap of the payloads that we vouch for.
    """
    round_, index = view.round, chain.index
    missing = progress.attendance(view).missing
    if round_ is None or missing != bitmap.from_indices([index]):
        return []
    ours = replace(round_.ballots[index], attest_bitmap=Bitmap(vouched))
    ballots = (*round_.ballots[:index], ours, *round_.ballots[index + 1 :])
    after = replace(round_, ballots=ballots, attested=Bitmap(round_.attested | 1 << index))
    return _closing(chain, own, replace(view, round=after))


def pending_seeds(view: NetworkView) -> list[int]:
    """Return the closed rounds whose seed is neither frozen nor lost, oldest first."""
    oldest = max(0, view.run.round - SEED_BITS + 1)
    bits = view.run.seeds_pending
    return [r for r in range(oldest, view.run.round) if bits >> (r % SEED_BITS) & 1]


def _closing(chain: RunChain, own: OwnRoot | None, view: NetworkView) -> list[Instruction]:
    """Return the close of the open round: with our own root, or void once nobody else can."""
    round_, run = view.round, view.run
    if round_ is None or _is_blocked_by_seed(view):
        return []
    void = instructions.close_void(chain.at, chain.payer, round_.round)
    if progress.is_forced_void(view):
        return [void]
    if not progress.is_transition_due(view):
        return []
    candidate = _candidate(own, round_)
    decided = root.decide_view(run.address, round_, view.entries, candidate).outcome
    if decided is not root.Outcome.NOT_CANONICAL:
        return [_close(chain, candidate, view)]
    # Without a root of our own yet, it is not for us to say that there is no majority.
    is_late = view.slot >= progress.void_allowed_from(run)
    return [void] if is_late and own is not None else []


def _candidate(own: OwnRoot | None, round_: RoundView) -> Digest:
    """Return our root of the round; None if our replica is at another round."""
    return own.root if own is not None and own.round == round_.round else ZERO_DIGEST


def _close(chain: RunChain, candidate: Digest, view: NetworkView) -> Instruction:
    return instructions.close_round(
        chain.at,
        chain.payer,
        view.run.round,
        candidate,
        with_checkpoint=instructions.is_checkpoint_due(view.run),
    )


def _is_blocked_by_seed(view: NetworkView) -> bool:
    """Return whether the next round must wait: a seed of `keep_rounds` ago is not frozen."""
    blocking = view.run.round + 1 - view.run.params.keep_rounds
    return blocking >= 0 and blocking in pending_seeds(view)
