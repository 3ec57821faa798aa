"""How long each step of a round takes: one `step_ended` event per step, in real processes.

Owns: the measuring around a step. Never: changes what the step does, or measures where time means
nothing (a stepped run, whose clock shows no seconds).
Next: `scripts/bench/demo.py`, which makes a table of these events.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from troth_client.participant.peer import Peer

P = ParamSpec("P")
T = TypeVar("T")
Step = Callable[Concatenate[Peer, P], Coroutine[Any, Any, T]]


def timed(name: str) -> Callable[[Step[P, T]], Step[P, T]]:
    """Make a step note its name in `peer.step` while it runs, and its seconds when it has ended.

    The seconds include waiting for the chain and for peers. A step that raises emits nothing.
    """

    def decorate(step: Step[P, T]) -> Step[P, T]:
        async def run(peer: Peer, /, *args: P.args, **kwargs: P.kwargs) -> T:
            outer, peer.step = peer.step, name
            start = peer.clock.seconds()
            try:
                result = await step(peer, *args, **kwargs)
            finally:
                peer.step = outer
            end = peer.clock.seconds()
            if start is not None and end is not None:
                peer.events.emit("step_ended", step=name, seconds=round(end - start, 6))
            return result

        functools.update_wrapper(run, step)
        return run

    return decorate
