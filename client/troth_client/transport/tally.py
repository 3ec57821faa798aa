"""The bytes that a transport has moved, and the answers of its server.

Owns: the counts. Never: counts what surrounds a body, like headers of HTTP, or what an RPC node
is asked. Next: `exchange.py` and `server.py`, which count; `hub/metrics.py`.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """The answers of a server by method and status; bytes of bodies, received and sent."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    num_received: int = 0
    num_sent: int = 0
