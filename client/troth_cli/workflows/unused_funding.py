"""The SOL of a session key, back to its owner once the run can ask that key for nothing more.

Owns: when that is, the folder that holds the key, and the transfer. Never: touches the stake.
Next: `../commands/membership.py`, whose `withdraw` calls it; `join.py` makes the key.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer

from troth_cli.errors import InputError
from troth_cli.keyfiles import read_key
from troth_cli.state_folders import state_folder
from troth_cli.view.amounts import sol
from troth_cli.view.output import Json, Output
from troth_cli.view.participants import entry_of, owner_values
from troth_cli.workflows.join import SESSION_FILE
from troth_client.runtime.files import FolderInUseError, FolderLock
from troth_client.storage.store import IDENTITY_FILE
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import AccountMissingError
from troth_coordinator.chain.transactions import FEE_PER_SIGNATURE_LAMPORTS
from troth_coordinator.errors import TrothError

_OWED: Final = ("stake_lamports", "claimable_lamports", "unvested_lamports", "unbonding")


@dataclass(frozen=True, slots=True)
class Back:
    """The lamports that came back from a session key, less the fee; `text` says where others are.

    session: the key, where it is known.
    """

    lamports: int = 0
    session: Pubkey | None = None
    signature: str | None = None
    text: str = ""

    def values(self) -> dict[str, Json]:
        """Return the same for JSON."""
        return {
            "session": None if self.session is None else str(self.session),
            "session_lamports": self.lamports,
            "session_signature": self.signature,
        }


@dataclass(frozen=True, slots=True)
class UnusedFunding:
    """The session funding of one owner in one run; `key` is None where the folder lacks it."""

    run: Pubkey
    owner: Pubkey
    folder: Path
    key: Keypair | None

    @classmethod
    def find(
        cls, run: Pubkey, owner: Pubkey, named: Path | None, output: Output
    ) -> "UnusedFunding":
        """Look into the folder that was named, else the usual one. Sends nothing.

        Raises InputError for a named folder without a session key, and for one of somebody else.
        """
        folder = named or state_folder(run, owner)
        path = folder / SESSION_FILE
        if path.exists():
            _check_identity(folder, run, owner)
            return cls(run, owner, folder, read_key(path, output.warn))
        if named is not None:
            step = "Name the folder that troth join had, or leave the option out."
            raise InputError(f"a state folder with {SESSION_FILE}", "none", step, str(named))
        return cls(run, owner, folder, None)

    async def bring_back(self, client: CoordinatorClient) -> Back:
        """Empty the session key, which pays the fee, where the run owes its owner nothing more.

        Where something is owed, or `troth join` is at work in the folder, nothing is sent.
        """
        is_over, named = await self._standing(client)
        if not is_over:
            return Back()
        if self.key is None:
            return await self._elsewhere(client, named)
        session = self.key.pubkey()
        lamports = await client.balance(session) - FEE_PER_SIGNATURE_LAMPORTS
        if lamports <= 0:
            return Back(session=session)
        try:
            lock = FolderLock(self.folder)
        except FolderInUseError:
            text = f"{sol(lamports)} stay with the session key: troth join works in {self.folder}."
            return Back(session=session, text=f"{text} When it has ended, repeat this command.")
        try:
            return await self._empty(client, self.key, lamports)
        finally:
            lock.close()

    async def bring_back_instead(
        self, client: CoordinatorClient, error: TrothError, output: Output
    ) -> Back:
        """Do so where a withdrawal was refused with this error; raise it where nothing comes."""
        back = await self.bring_back(client)
        if back.lamports:
            return back
        if back.text:
            output.note(back.text)
        raise error

    async def _empty(self, client: CoordinatorClient, key: Keypair, lamports: int) -> Back:
        # Under another blockhash it cannot land again: the account is empty then.
        session = key.pubkey()
        paid = TransferParams(from_pubkey=session, to_pubkey=self.owner, lamports=lamports)
        sent = await client.send([transfer(paid)], [key])
        text = f"{sol(lamports)} came back from the session key."
        return Back(lamports, session, str(sent.signature), text)

    async def _standing(self, client: CoordinatorClient) -> tuple[bool, Pubkey | None]:
        """Return whether the run owes the owner nothing, and the session key that it names."""
        try:
            view = await client.snapshot(self.run)
        except AccountMissingError:  # a run that is closed owes nothing
            return True, None
        participant = await client.read_participant(self.run, self.owner)
        values = owner_values(view, participant, self.owner)
        _index, entry = entry_of(view, self.owner) or (None, None)
        named = None if entry is None else Pubkey.from_bytes(entry.session)
        return not any(values[name] for name in _OWED), named

    async def _elsewhere(self, client: CoordinatorClient, named: Pubkey | None) -> Back:
        """Say where the money is, where its key is not here."""
        where = f"{self.folder} has no {SESSION_FILE}"
        step = "repeat this command with --state DIR, the folder that troth join had."
        if named is None:
            return Back(text=f"A session key may hold SOL, but {where}: {step}")
        lamports = await client.balance(named)
        if lamports <= FEE_PER_SIGNATURE_LAMPORTS:
            return Back(session=named)
        text = f"{sol(lamports)} stay with the session key {named}, since {where}: {step}"
        return Back(session=named, text=text)


def _check_identity(folder: Path, run: Pubkey, owner: Pubkey) -> None:
    """Raise InputError for a folder that says that it is of another run or owner."""
    try:
        found = dict(json.loads((folder / IDENTITY_FILE).read_bytes()))
    except FileNotFoundError:  # nobody has taken part from here yet
        return
    except (ValueError, TypeError):
        found = {}
    for name, key in (("run", run), ("owner", owner)):
        if found.get(name) != bytes(key).hex():
            raise InputError(
                f"the state folder of {owner} in run {run}",
                f"one of another {name}",
                "Name the folder that troth join had for this key and run.",
                str(folder),
            )
