"""The troubles of a line or a node, and the kinds of faults that a soak plays.

Owns: the names. Never: does anything. Next: `proxy.py`, `rpc_proxy.py`, `schedule.py`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Effect(StrEnum):
    """One thing that is wrong. The first six are of a line, the last four of a node's answers.

    - REFUSE: no connection is accepted, and those that are open are cut.
    - RESET: connections are accepted, then reset before a byte is answered.
    - STALL: everything is accepted, and nothing passes.
    - DELAY: every piece of bytes comes so many seconds later.
    - RATE: so many bytes a second pass in each direction, all connections together.
    - CORRUPT: this share of the answers' pieces has one other bit.
    - STATUS: this HTTP status comes instead of every answer.
    - FREEZE: the node shows the chain as it was when the trouble began.
    - LAG: the node shows the chain as it was so many slots ago.
    - SWALLOW: a transaction gets a signature, and goes nowhere.
    """

    REFUSE = "refuse"
    RESET = "reset"
    STALL = "stall"
    DELAY = "delay"
    RATE = "rate"
    CORRUPT = "corrupt"
    STATUS = "status"
    FREEZE = "freeze"
    LAG = "lag"
    SWALLOW = "swallow"


ANSWERS: Final = frozenset({Effect.STATUS, Effect.FREEZE, Effect.LAG, Effect.SWALLOW})
"""Effects on a node's answers; the others are effects on a line."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An effect, and how much of it in its own unit."""

    effect: Effect
    amount: float = 0.0


class Kind(StrEnum):
    """One kind of fault of one participant."""

    KILL = "kill"
    STOP = "stop"
    DISK_FULL = "disk-full"
    RPC_REFUSE = "rpc-refuse"
    RPC_RESET = "rpc-reset"
    RPC_STALL = "rpc-stall"
    RPC_DELAY = "rpc-delay"
    RPC_CORRUPT = "rpc-corrupt"
    RPC_429 = "rpc-429"
    RPC_503 = "rpc-503"
    RPC_FREEZE = "rpc-freeze"
    RPC_LAG = "rpc-lag"
    RPC_SWALLOW = "rpc-swallow"
    PEER_REFUSE = "peer-refuse"
    PEER_RESET = "peer-reset"
    PEER_STALL = "peer-stall"
    PEER_DELAY = "peer-delay"
    PEER_RATE = "peer-rate"
    PEER_CORRUPT = "peer-corrupt"


RPC_TROUBLES: Final = {
    Kind.RPC_REFUSE: Trouble(Effect.REFUSE),
    Kind.RPC_RESET: Trouble(Effect.RESET),
    Kind.RPC_STALL: Trouble(Effect.STALL),
    Kind.RPC_DELAY: Trouble(Effect.DELAY, 1.0),
    Kind.RPC_CORRUPT: Trouble(Effect.CORRUPT, 0.3),
    Kind.RPC_429: Trouble(Effect.STATUS, 429),
    Kind.RPC_503: Trouble(Effect.STATUS, 503),
    Kind.RPC_FREEZE: Trouble(Effect.FREEZE),
    Kind.RPC_LAG: Trouble(Effect.LAG, 15),
    Kind.RPC_SWALLOW: Trouble(Effect.SWALLOW),
}
"""Faults between a participant and its RPC node."""

PEER_TROUBLES: Final = {
    Kind.PEER_REFUSE: Trouble(Effect.REFUSE),
    Kind.PEER_RESET: Trouble(Effect.RESET),
    Kind.PEER_STALL: Trouble(Effect.STALL),
    Kind.PEER_DELAY: Trouble(Effect.DELAY, 1.0),
    Kind.PEER_RATE: Trouble(Effect.RATE, 20_000),
    Kind.PEER_CORRUPT: Trouble(Effect.CORRUPT, 0.5),
}
"""Faults in front of a participant's endpoint."""
