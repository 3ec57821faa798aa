"""The duration of each step of a round: one `step_ended` event per step, in real processes.

Owns: the measuring around a step. Never: changes what the step does, or measures where time means
nothing (a stepped run, whose runtime shows no seconds).
Next: `scripts/bench/demo.py`, which makes a table of these events.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from troth_client.runtime.base import Runtime
from troth_client.telemetry.events import EventSink

P = ParamSpec("P")
T = TypeVar("T")


class Measured(Protocol):
    """The first argument of a step: an object with a stopwatch and a sink for events."""

    @property
    def runtime(self) -> Runtime:
        """The stopwatch."""
        ...

    @property
    def events(self) -> EventSink:
        """The sink that receives the seconds."""
        ...


M = TypeVar("M", bound=Measured)
Step = Callable[Concatenate[M, P], Coroutine[Any, Any, T]]


def timed(name: str) -> Callable[[Step[M, P, T]], Step[M, P, T]]:
    """Make a step emit its seconds when it has ended.

    The seconds include waiting for the chain and for others. A step that raises emits nothing.
    """

    def decorate(step: Step[M, P, T]) -> Step[M, P, T]:
        async def run(first: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
            start = first.runtime.seconds()
            result = await step(first, *args, **kwargs)
            end = first.runtime.seconds()
            if start is not None and end is not None:
                first.events.emit("step_ended", step=name, seconds=round(end - start, 6))
            return result

        functools.update_wrapper(run, step)
        return run

    return decorate
