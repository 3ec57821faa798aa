"""Reasons for a participant to stop taking part, as a branch of the client's tree.

    ClientError
    └── RoundError
        ├── LaggingError      what the chain included cannot be obtained here (LAGGING)
        ├── TooSlowError      checkpoints are replaced by newer ones before they are fetched
        ├── RootDisputeError  exact replay contradicts the canonical root (ROOT_DISPUTE)
        ├── DisputedError     weights of others are wanted after a ROOT_DISPUTE
        ├── RunOverError      the run ended, or closed to newcomers, before we had joined
        ├── NoGradientError   the weights give us no gradient: nothing was deposited
        ├── ReplacedError     another process took over the session of this participant
        ├── BarredError       the run has barred this participant
        ├── FeesSpentError    no money for fees is left, and nobody refills it
        └── StoppedError      asked to stop in the middle of catching up

Owns: the classes and their sentences. Never: raised for something that the next round heals.
Next: `steps/replay.py` and `steps/restore.py`, which raise the first four.
"""

from troth_client.errors import ClientError
from troth_coordinator.rules.view import NetworkView


class RoundError(ClientError):
    """Base of what stops a participant."""


class LaggingError(RoundError):
    """LAGGING: a payload or round that was included cannot be had from anybody."""


class TooSlowError(RoundError):
    """Several checkpoints in a row were replaced by newer ones before they were fetched."""


class RootDisputeError(RoundError):
    """ROOT_DISPUTE: exact replay from a verified root gives another root than the canonical one."""

    def __init__(self, round_: int, canonical: bytes, own: bytes) -> None:
        super().__init__(
            f"state root {own.hex()} of round {round_}, which exact replay gives here",
            f"canonical root {canonical.hex()} on chain",
            "ROOT_DISPUTE: nothing was loaded. Keep this folder: it is the evidence. "
            "Check the memory and the software version of this machine, then replay elsewhere.",
        )
        self.round = round_
        self.canonical = canonical
        self.own = own


class DisputedError(RoundError):
    """A ROOT_DISPUTE is on record: weights of others are not loaded until the user allows it."""


class RunOverError(RoundError):
    """The run does not take newcomers any more; nothing was deposited."""


class NoGradientError(RoundError):
    """A gradient at the run's weights is not finite or finds no memory: we would commit nothing."""


class ReplacedError(RoundError):
    """The chain names another session key for this participant."""


class BarredError(RoundError):
    """The chain says that this participant may never act in the run again."""


class FeesSpentError(RoundError):
    """The session key is dry: the participant has left, or rests until somebody pays."""

    def __init__(self, session: str, spendable: int, round_lamports: int, has_left: bool) -> None:
        advice = (
            "It has left the run at no cost, and the whole stake unbonds: `troth withdraw` takes"
            " it. Send SOL to the owner's account and repeat the command: it serves what audits"
            " still ask for. Later, `troth join --yes` joins again with a new stake."
            if has_left
            else "The stake stays. Send SOL to the owner's account, then repeat the command: it"
            " goes on where it was."
        )
        super().__init__(
            f"session key {session} to pay about {round_lamports} lamports a round",
            f"{spendable} lamports to spend, and no refill",
            advice,
        )


class StoppedError(RoundError):
    """Asked to stop while something was missing; for a member it is a normal end."""

    def __init__(self, round_: int, missing: list[int]) -> None:
        what = f"the payloads {missing} of" if missing else "weights newer than those of"
        super().__init__(
            f"{what} round {round_}",
            "a request to stop",
            "Nothing is lost: the next start goes on where this one stopped.",
        )


def out_of_ring(round_: int, view: NetworkView) -> LaggingError:
    """Return the error for a round that the ring of the chain no longer holds."""
    return LaggingError(
        f"round {round_} to be among the last {view.run.params.ring} on chain",
        f"the run at round {view.run.round}",
        "LAGGING: too far behind to replay. The newest checkpoint is needed.",
    )
