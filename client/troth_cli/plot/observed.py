"""From what an outsider sees of a run on chain to the numbers of a picture.

Owns: the same record as `collect.py` makes of logs. Never: reads the chain; `../observe` does.
Next: `data.py` for the result; `draw.py`.
"""

from troth_cli.errors import EventLogError
from troth_cli.observe.record import Observation, RoundSeen
from troth_cli.plot.data import PlotData, RoundRow, Slash, StakeLine
from troth_client.telemetry.history import MICRO


def of_observation(seen: Observation) -> PlotData:
    """Return the numbers of an observed run. Raises EventLogError where no round has closed.

    The chain knows the stakes of now alone, and no length of a payload.
    """
    if not seen.rounds:
        raise EventLogError(
            "a run in which a round has closed",
            f"none: its phase is {seen.run.phase.replace('_', ' ')}",
            "Wait for the end of the first round.",
            subject=seen.run.run,
        )
    owners = {one.index: one.owner for one in seen.participants}
    last = seen.rounds[-1].chain.round
    return PlotData(
        run=seen.run.run,
        names=(),
        rounds=tuple(map(_row, seen.rounds)),
        stakes=tuple(
            StakeLine(one.owner, ((last, one.stake_lamports),)) for one in seen.participants
        ),
        slashes=tuple(
            Slash(one.round, owners.get(one.index, f"participant {one.index}"), one.taken)
            for one in seen.slashes
            if one.taken
        ),
    )


def _row(one: RoundSeen) -> RoundRow:
    chain, mean = one.chain, one.mean_loss_micro
    return RoundRow(
        round=chain.round,
        loss=None if mean is None else mean / MICRO,
        validation=None,
        num_committed=chain.num_committed,
        num_included=chain.num_included,
        num_bytes=None,
        is_void=chain.is_void,
    )
