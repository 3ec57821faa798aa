"""Between the rounds of every run that the program has written, some things hold.

Owns: refusing a false answer by which readers would go for ever: a ring gives the addresses of
rounds, and weights are sought for the rounds that a run names.
Never: tells whether a run that could be is the one on chain; only another RPC node can.
Next: `client.py`, which asks before it remembers anything of a run.
"""

from typing import Final

from troth_coordinator.chain.errors import AccountValueError
from troth_coordinator.rules.view import RunView

ORDER: Final = (
    ("root_round", "round"),
    ("restart_round", "round"),
    ("restart_root_round", "restart_round"),
)
"""Rounds that a run remembers, and what none of them is ahead of."""
_NEXT: Final = "ask another RPC node"


def check_run(run: RunView) -> None:
    """Raise AccountValueError for the first number that the program cannot have written."""
    if run.params.ring < 1:
        raise AccountValueError("Run.params.ring", "at least 1", run.params.ring, _NEXT)
    for name, later in ORDER:
        found, most = getattr(run, name), getattr(run, later)
        if found > most:
            raise AccountValueError(f"Run.{name}", f"at most {later}, {most}", found, _NEXT)
