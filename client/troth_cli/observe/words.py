"""An observation in words: losses, durations, the time left.

Owns: units and how much is said about what is not known. Never: a number that was not observed.
Next: `../view/status.py` and `../watch/`, which print the words.
"""

from troth_cli.observe.record import Observation, RoundSeen
from troth_cli.observe.time_left import TimeLeft
from troth_client.telemetry.parts import duration, nats


def loss_text(seen: Observation) -> str:
    """Return the loss of the newest round that has one, and how many headers told it."""
    newest = seen.newest_with_loss
    if newest is None or newest.loss is None:
        return "not known" if seen.newest is not None else "no round has closed"
    return f"{nats(newest.mean_loss_micro)} nats in round {newest.chain.round} ({voices(newest)})"


def voices(one: RoundSeen) -> str:
    """Return how many of the included payloads told a loss, like `4 of 5 headers, 1 odd`."""
    found = 0 if one.loss is None else one.loss.num_known
    odd = 0 if one.loss is None else one.loss.num_odd
    text = f"{found} of {one.chain.num_included} headers"
    return f"{text}, {odd} odd" if odd else text


def time_left_text(left: TimeLeft) -> str:
    """Return the estimate with its range, or why there is none."""
    if left.seconds is None or left.seconds_low is None or left.seconds_high is None:
        return f"not known: {left.reason}"
    if left.num_rounds == 0:
        return "none: the last round has closed"
    low, high = duration(left.seconds_low), duration(left.seconds_high)
    span = "" if low == high else f", {low} to {high}"
    paced = "" if left.is_slot_time_measured else f" at {left.slot_micros / 1e6:g} s a slot"
    return f"about {duration(left.seconds)}{span}{paced}, without halts"
