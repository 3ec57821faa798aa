"""Lateness: whether a newcomer can replay from the newest checkpoint to the open round.

Owns: the relation of ring and checkpoints. Never: refuses a run: where the ring is too short,
newcomers wait for the next checkpoint. Next: `params.py`, whose presets keep the relation.
"""

from troth_coordinator.rules.params_view import ParamsView

VOID_ROUNDS_TO_HALT = 3
"""After so many void rounds in a row the run halts. A checkpoint waits for one that is not void."""


def least_ring(checkpoint_every: int) -> int:
    """Return the smallest ring that always holds the way from the newest checkpoint, and one more.

    The way is the open round and all closed ones since. The run may move on during a replay.
    """
    return checkpoint_every + VOID_ROUNDS_TO_HALT + 1


def rounds_closed_to_newcomers(params: ParamsView) -> int:
    """Return for how many rounds before each checkpoint nobody can join or return; 0 is best."""
    return min(params.checkpoint_every, max(0, least_ring(params.checkpoint_every) - params.ring))
