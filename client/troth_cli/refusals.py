"""Refusals of the program in the words of the command line: what to type next.

Owns: one step for each refusal that a command can meet. Never: decides; the program did.
Next: `failures.py`, which shows it; docs/reference/errors.md for all refusals.
"""

from collections.abc import Mapping
from typing import Final

_STATUS: Final = "`troth status RUN` shows where it stands"
_STAKE: Final = "`troth stake show RUN` shows what this key has there"

STEPS: Final[Mapping[str, str]] = {
    "InsufficientFunds": "send SOL to the key that pays, or name a smaller amount",
    "WrongPhase": f"wait for another phase: {_STATUS}",
    "RunFinished": "what is left to do: troth claim, troth leave, troth withdraw, troth run close",
    "RunNotFinished": f"wait for the end of the run: {_STATUS}",
    "AlreadyPaused": f"nothing is left to do; troth run resume ends the pause, and {_STATUS}",
    "NotPaused": f"there is no pause to end: {_STATUS}",
    "PauseBudgetRemaining": "the run's authority ends its pause: troth run resume",
    "RewardUnfunded": "fill the pool first: troth run fund RUN --sol AMOUNT",
    "NotAdmitted": "ask the run's authority for admission, then repeat it",
    "NotJoined": f"troth join takes part; {_STAKE}",
    "AlreadyJoined": "after troth leave, wait until no case may follow and the rewards have vested:"
    f" {_STAKE}; another key can join at once",
    "AlreadyLeaving": "nothing is left to do: troth withdraw pays the stake, or says when it will",
    "StakeBelowMinimum": "troth leave starts the wait for all of it; --unbond takes only the rest",
    "TicketsFull": "take what is ripe first: troth withdraw RUN",
    "Frozen": "wait for the end of the case: troth case list shows it",
    "StakeTooLow": "add to the stake first: troth stake top-up RUN AMOUNT",
    "AuditsOpen": "wait for their end: troth case list --all shows them",
    "TooFewWitnesses": "a jury needs three besides target and accuser: troth case list RUN"
    " --openable --key FILE shows what can be accused",
    "AlreadyAppealed": "wait for the council: troth case show has its time",
    "NotConvicted": "there is nothing to appeal: troth case show tells how it stands",
}
