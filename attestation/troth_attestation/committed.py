"""States that the chain names: the roots against which weights from others are checked.

Owns: `CommittedState`, the proof that a root comes from the chain, and the check of a piece list.
Never: reads the chain; the caller passes views of it. Needs no weights.
Next: `pieces.py`; `manifest.py` for checkpoints on disk.
"""

from collections.abc import Mapping
from typing import Final

from troth_attestation.errors import CommittedStateError, PieceListError
from troth_attestation.pieces import PieceList, Shape, StateName
from troth_coordinator.rules.ids import ZERO_DIGEST, Address, Digest
from troth_coordinator.rules.view import CheckpointView, RoundFlag, RoundView, RunView

_FROM_CHAIN: Final = object()


class CommittedState:
    """A state root that the program stored; only the functions of this module make one."""

    __slots__ = ("root", "run", "state")

    def __init__(self, run: Address, state: StateName, root: Digest, *, seal: object) -> None:
        if seal is not _FROM_CHAIN:
            raise TypeError("CommittedState is made from views of the chain, in committed.py only")
        self.run: Final[Address] = run
        self.state: Final[StateName] = state
        self.root: Final[Digest] = root

    @property
    def round(self) -> int:
        """The round that trains on these weights."""
        return self.state.round

    def check_pieces(self, data: bytes, shapes: Mapping[str, Shape]) -> PieceList:
        """Return the piece list of this state, for tensors of these shapes.

        Raises PieceListError for another length or another root: then it is not this state's.
        """
        found = PieceList.decode(data, shapes, self.state)
        self.check(found)
        return found

    def check(self, pieces: PieceList) -> None:
        """Raise PieceListError unless these are the pieces of this state."""
        if pieces.root != self.root:
            raise PieceListError(
                f"pieces of round {self.round}",
                f"the state root {self.root.hex()}, which is on chain",
                pieces.root.hex(),
                "do not use them; another holder may have the right ones",
            )


def newest_state(run: RunView) -> CommittedState:
    """Return the newest checkpoint of a run; that of round 0 is genesis."""
    state = StateName(run.root_round, run.root_cursor, run.config_hash)
    return CommittedState(run.address, state, run.root, seal=_FROM_CHAIN)


def checkpoint_state(run: RunView, account: CheckpointView) -> CommittedState:
    """Return the state of a Checkpoint account. Raises CommittedStateError for another run's."""
    _check_run(run, account.run, f"checkpoint of round {account.round}")
    state = StateName(account.round, account.cursor, run.config_hash)
    return CommittedState(run.address, state, account.root, seal=_FROM_CHAIN)


def round_state(run: RunView, account: RoundView) -> CommittedState:
    """Return the canonical state of a closed round.

    Raises CommittedStateError if it has none, or is another run's.
    """
    _check_run(run, account.run, f"round {account.round}")
    if not account.flags & RoundFlag.CLOSED or account.canonical_root == ZERO_DIGEST:
        raise CommittedStateError(
            f"round {account.round}",
            "a canonical root",
            "an open or a void round",
            "take another round",
        )
    state = StateName(account.round, account.cursor, run.config_hash)
    return CommittedState(run.address, state, account.canonical_root, seal=_FROM_CHAIN)


def _check_run(run: RunView, found: Address, what: str) -> None:
    if found != run.address:
        raise CommittedStateError(
            what, f"the run {run.address.hex()}", found.hex(), "read the account of this run"
        )
