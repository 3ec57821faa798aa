"""Arrival: a newcomer brings its weights to where the run is, before it deposits anything.

Owns: the checks that the run still takes newcomers, when the weights are those to join with, and
that a gradient can be computed at them: they are a stranger's.
Never: deposits or votes. Next: `steps/replay.py`; `process.py`, which joins afterwards.
"""

from troth_client.member import Member
from troth_client.network.errors import (
    LaggingError,
    NoGradientError,
    RunOverError,
    StoppedError,
)
from troth_client.network.watch import RPC_FAILURES
from troth_client.participant.rounds import endure
from troth_client.runtime.memory import first_line
from troth_client.train.errors import NO_GRADIENT
from troth_coordinator.rules.membership import free_indices
from troth_coordinator.rules.params import joins_are_open
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

RESTING = (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP)


async def arrive(member: Member) -> None:
    """Fetch and replay until the weights are those that a new member needs.

    While the run waits or warms up, these are those of its stored root. Raises RunOverError when it
    ends or closes to newcomers meanwhile, NoGradientError, StoppedError, and what `Replay.recover`
    raises. An RPC node's error is raised only if a stop is asked for while none answers.
    """
    num_failures = 0
    while True:
        try:
            view = await member.chain.look()
            num_failures = 0
            if await _approach(member, view):
                await _check_gradient(member)
                _check_stop(member)  # nobody deposits after a request to stop
                return
        except RPC_FAILURES as error:
            # The pieces that arrived are on disk: the next attempt goes on from there.
            num_failures += 1
            await endure(member, error, num_failures)


async def _approach(member: Member, view: NetworkView) -> bool:
    """Go on from this view; True once the weights are those that a new member needs."""
    chain, replay = member.chain, member.replay
    check_open(view)
    _check_stop(member)
    try:
        if view.run.phase in RESTING:
            await replay.load_stored_root(view)
        elif view.run.phase != Phase.HALTED:
            view = await replay.catch_up(view)
    except LaggingError as error:
        check_open(await chain.look())
        await replay.recover(error)
        return False
    _check_stop(member)
    if view.run.phase == Phase.HALTED:
        await chain.watch.next()
        return False
    chain.events.emit("arrived", round=member.state.replica.round)
    return True


async def _check_gradient(member: Member) -> None:
    """Raise NoGradientError unless there is a finite gradient at the weights, and memory.

    Without one we would commit nothing, and pay for our absence round after round.
    """
    state = member.state
    num_rows = min(state.config.train.sequences_per_payload, len(state.data))
    try:
        batch = await state.runtime.compute(state.data.sequences, range(num_rows))
        await state.runtime.compute(member.work.gradient, batch)
    except NO_GRADIENT as error:
        raise NoGradientError(
            f"{error.expected} at the weights of round {state.replica.round}",
            error.found,
            "Nothing was deposited. Do not join this run: nobody can train in it.",
        ) from error
    except MemoryError as error:
        raise NoGradientError(
            f"memory for a gradient at the weights of round {state.replica.round}",
            first_line(error),
            "Nothing was deposited. Take a smaller --micro-batch, or end other programs that use"
            " this memory.",
        ) from error


def _check_stop(member: Member) -> None:
    if member.state.stop.is_set():
        raise StoppedError(member.state.replica.round, [])


def check_open(view: NetworkView) -> None:
    """Raise RunOverError if the run does not take newcomers any more."""
    run = view.run
    if run.phase == Phase.FINISHED:
        found = f"one that finished at round {run.round}"
    elif not joins_are_open(run.round, run.params):
        found = f"round {run.round}, and joining ended with round {run.params.join_until_round}"
    elif not free_indices(view):
        found = "a full one: every place is taken, or was left too short a time ago"
    else:
        return
    raise RunOverError(
        "a run that takes newcomers",
        found,
        "Nothing was deposited. `troth checkpoint fetch` still gets its weights from its members.",
    )
