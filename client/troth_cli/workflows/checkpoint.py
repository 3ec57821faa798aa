"""The chain's side of checkpoints: their roots, and who announced that they hold one.

Owns: the choice of a checkpoint, and the check of a config against the run.
Never: imports torch or a transport: it answers at once.
Next: `checkpoint_fetch.py`, `checkpoint_verify.py`, `checkpoint_export.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation.committed import (
    CommittedState,
    checkpoint_state,
    newest_state,
    round_state,
)
from troth_attestation.errors import CommittedStateError
from troth_cli.errors import CheckpointMissingError, OtherRunError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.view import (
    CheckpointView,
    NetworkView,
    ParticipantView,
    RunView,
    Status,
)

GONE: Final = (Status.EMPTY, Status.LEFT)
"""Those who owe nobody any more that their endpoint answers."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """A run, its Checkpoint accounts (oldest first) and its Participant accounts, at one slot."""

    view: NetworkView
    accounts: Sequence[CheckpointView]
    participants: Sequence[ParticipantView]

    def one(self, round_: int | None) -> CheckpointView:
        """Return the checkpoint of a round, the newest by default; CheckpointMissingError."""
        found = [one for one in self.accounts if round_ in (None, one.round)]
        if not found:
            rounds = ", ".join(str(one.round) for one in self.accounts)
            raise CheckpointMissingError(
                "a Checkpoint account" + ("" if round_ is None else f" of round {round_}"),
                f"those of rounds {rounds}" if rounds else "no checkpoint yet",
                "List them with `troth checkpoint list`. Most rounds have none.",
                f"run {Pubkey(self.view.run.address)}",
            )
        return found[-1]

    def announcers(self, round_: int) -> list[ParticipantView]:
        """Return those whose newest announcement is about a round, by index.

        Those who have left are not asked for it any more.
        """
        living = {entry.owner for entry in self.view.entries if entry.status not in GONE}
        found = [
            one for one in self.participants if one.manifest_round == round_ and one.owner in living
        ]
        return sorted(found, key=lambda one: one.index)


async def read_checkpoints(client: CoordinatorClient, run: Pubkey) -> Checkpoints:
    """Read all checkpoints of a run and who announced them. Raises AccountMissingError."""
    view = await client.snapshot(run)
    return Checkpoints(
        view, await client.find_checkpoints(run), await client.find_participants(run)
    )


async def committed(client: CoordinatorClient, view: RunView, round_: int | None) -> CommittedState:
    """Return the state of a Checkpoint account, the newest by default. CheckpointMissingError."""
    found = await read_checkpoints(client, Pubkey(view.address))
    return checkpoint_state(view, found.one(round_))


async def named(client: CoordinatorClient, view: RunView, round_: int) -> CommittedState:
    """Return the state of a round that the chain names in any account.

    That is a Checkpoint account, the run's own root, or a closed round that the ring still holds.
    Raises CheckpointMissingError.
    """
    run = Pubkey(view.address)
    account = await client.read_checkpoint(run, round_)
    if account is not None:
        return checkpoint_state(view, account)
    if view.root_round == round_:
        return newest_state(view)
    (closed,) = await client.read_rounds(run, [round_])
    if closed is not None:
        try:
            return round_state(view, closed)
        except CommittedStateError as error:
            raise CheckpointMissingError(
                f"a state root of round {round_} on chain",
                error.found,
                "Take the weights of another round.",
                f"run {run}",
            ) from error
    return await committed(client, view, round_)


def check_config(view: RunView, config: RunConfig) -> None:
    """Raise OtherRunError unless this is the config of the run, by its hash on chain."""
    found = config.config_hash()
    if found != view.config_hash:
        raise OtherRunError(
            f"the config with the hash {view.config_hash.hex()}",
            f"one with {found.hex()}",
            "Name the file that the run's creator handed out, run.toml, in place of its address.",
            f"run {Pubkey(view.address)}",
        )
