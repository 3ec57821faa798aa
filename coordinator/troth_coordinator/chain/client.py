"""`CoordinatorClient`: the one object through which all code above reads and writes the chain.

Owns: reading runs as views (one call, one slot) and sending transactions.
Never: decides what to send; keeps no state but the round it last saw, to ask for the right
accounts in one call.
Next: operations.py for one coroutine per instruction; instructions.py to combine several in one
transaction; errors.py for what to catch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.accounts import program_reader
from troth_coordinator.chain.addresses import (
    RunAddresses,
    audit_address,
    checkpoint_address,
    participant_address,
)
from troth_coordinator.chain.attempts import SendWatch
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES, program_codec
from troth_coordinator.chain.errors import (
    REFUSALS,
    AccountMissingError,
    ArtifactError,
    EventsMissingError,
    ForeignProgramError,
    MalformedReplyError,
    ProgramIdError,
    ProgramMissingError,
    UnconfirmedError,
    UnreadableRecordError,
)
from troth_coordinator.chain.events import Event, EventReader, creation_in
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.pricing import Pricing
from troth_coordinator.chain.rpc import (
    MAX_ACCOUNTS_PER_CALL,
    Account,
    BytesAt,
    Listed,
    Rpc,
    TransactionRecord,
    made_by_program,
)
from troth_coordinator.chain.run_checks import check_run
from troth_coordinator.chain.sender import ConfirmedTransaction, Sender, SendPolicy, Sleeper
from troth_coordinator.rules.audit_view import AuditKey, AuditView
from troth_coordinator.rules.ids import Slot
from troth_coordinator.rules.view import (
    CheckpointView,
    NetworkView,
    ParticipantView,
    RoundView,
    RunView,
)

__all__ = ["ConfirmedTransaction", "CoordinatorClient", "SendPolicy", "Sleeper"]

MOST_READS: Final = 4
"""A round may open between two reads; a node that shows others at each of so many is broken."""


class CoordinatorClient:
    """Reads and writes one program through one Rpc. Methods raise ChainError and its kin.

    program_id: the address of the program, else that of the packaged one.
    policy, sleeper: how patiently to send, and how to wait (seconds); tests step a chain there.
    pricing: how much may be paid to come first (nothing by default), and the node that sends ask.
    """

    def __init__(
        self,
        rpc: Rpc,
        program_id: Pubkey | None = None,
        *,
        policy: SendPolicy | None = None,
        sleeper: Sleeper = asyncio.sleep,
        pricing: Pricing | None = None,
    ) -> None:
        codec = program_codec(program_id)
        self.rpc = rpc
        self.program_id = codec.program_id
        self._policy = policy or SendPolicy()
        self._sleeper = sleeper
        self._reader = program_reader(program_id)
        self._events = EventReader(codec)
        self.pricing = pricing or Pricing(rpc)
        self._sender = Sender(
            self.pricing.rpc, codec, policy=self._policy, pricing=self.pricing, sleeper=sleeper
        )
        self._last_seen: dict[Pubkey, tuple[int, int]] = {}

    async def check_program(self) -> None:
        """Make sure that the program is there.

        Raises ProgramMissingError or ForeignProgramError (an account that is not executable).
        """
        _slot, (account,) = await self.rpc.get_accounts([self.program_id])
        if account is None:
            raise ProgramMissingError(str(self.program_id))
        if not account.executable:
            found = f"an account of {account.owner} that is not executable"
            raise ForeignProgramError(str(self.program_id), found)

    async def snapshot(self, run: Pubkey, round_hint: int | None = None) -> NetworkView:
        """Read a run, its roster, its round and the round before, all at one slot.

        One getMultipleAccounts; a second one only where the round is neither the hint nor, without
        a hint, the one seen last (and on the first). Raises AccountMissingError without such a run
        or roster, MalformedReplyError for a node that shows another round at each read.
        """
        at = await self._addresses(run)
        round_ = self._last_seen[run][0] if round_hint is None else round_hint
        for _read in range(MOST_READS):
            keys = [run, at.roster, at.round(round_), at.round(max(0, round_ - 1))]
            slot, (run_account, roster_account, *rounds) = await self.rpc.get_accounts(keys)
            view = self._seen(run, run_account)
            if (view.round, view.params.ring) == (round_, at.ring):
                break
            round_, at = view.round, RunAddresses.of(view, self.program_id)
        else:
            raise MalformedReplyError("getMultipleAccounts", f"{MOST_READS} rounds in a row")
        if roster_account is None:
            raise AccountMissingError("Roster", str(at.roster))
        return NetworkView(
            slot=Slot(slot),
            run=view,
            entries=self._reader.roster(at.roster, roster_account),
            round=self._round(keys[2], rounds[0], round_),
            previous_round=self._round(keys[3], rounds[1], round_ - 1),
        )

    async def reread(self, known: NetworkView) -> NetworkView | None:
        """Read Run and Round again, at one slot; None if more than these two may have changed.

        Every instruction but a commit and an attestation leaves a trace in Run: the number of
        events and their chained hash. Those two change the Round, presence in the roster, and the
        quorum in Run.
        """
        run = Pubkey(known.run.address)
        at = RunAddresses.of(known.run, self.program_id)
        keys = [run, at.round(known.run.round)]
        slot, (run_account, round_account) = await self.rpc.get_accounts(keys)
        view = self._seen(run, run_account)
        if replace(view, quorum_slot=known.run.quorum_slot) != known.run:
            return None
        round_ = self._round(keys[1], round_account, view.round)
        if (round_ is None) != (known.round is None):
            return None
        return replace(known, slot=Slot(slot), run=view, round=round_)

    async def read_run(self, run: Pubkey) -> RunView:
        """Read a Run account; AccountMissingError if there is none."""
        _slot, (account,) = await self.rpc.get_accounts([run])
        return self._seen(run, account)

    async def read_participant(self, run: Pubkey, owner: Pubkey) -> ParticipantView | None:
        """Read an owner's Participant account, or None."""
        address = participant_address(run, owner, self.program_id)
        _slot, (account,) = await self.rpc.get_accounts([address])
        return self._participant(address, account)

    async def read_participants(
        self, run: Pubkey, owners: Sequence[Pubkey]
    ) -> list[ParticipantView | None]:
        """Read the Participant accounts of up to 100 owners in one call (endpoints of peers)."""
        addresses = [participant_address(run, owner, self.program_id) for owner in owners]
        _slot, accounts = await self.rpc.get_accounts(addresses)
        return [self._participant(*found) for found in zip(addresses, accounts, strict=True)]

    async def find_participants(self, run: Pubkey) -> list[ParticipantView]:
        """Read every Participant account of a run, also of those who have left."""
        found = await self._of_kind("Participant", run)
        return [self._reader.participant(address, account) for address, account in found]

    async def read_checkpoint(self, run: Pubkey, round_: int) -> CheckpointView | None:
        """Read the checkpoint of a round, or None."""
        address = checkpoint_address(run, round_, self.program_id)
        _slot, (account,) = await self.rpc.get_accounts([address])
        made = made_by_program(account)
        return None if made is None else self._reader.checkpoint(address, made)

    async def find_checkpoints(self, run: Pubkey) -> list[CheckpointView]:
        """Read all checkpoints of a run, oldest first."""
        found = await self._of_kind("Checkpoint", run)
        views = [self._reader.checkpoint(address, account) for address, account in found]
        return sorted(views, key=lambda view: view.round)

    async def read_rounds(self, run: Pubkey, rounds: Sequence[int]) -> list[RoundView | None]:
        """Read up to 100 rounds; None for one that the ring no longer (or not yet) holds."""
        at = await self._addresses(run)
        addresses = [at.round(round_) for round_ in rounds]
        _slot, accounts = await self.rpc.get_accounts(addresses)
        return [self._round(*one) for one in zip(addresses, accounts, rounds, strict=True)]

    async def read_audits(
        self, run: Pubkey, keys: Sequence[tuple[int, int, int]]
    ) -> list[AuditView | None]:
        """Read up to 100 audits by (round, target, kind); None for one that is not open."""
        addresses = [audit_address(run, *key, self.program_id) for key in keys]
        _slot, accounts = await self.rpc.get_accounts(addresses)
        return [self._audit(*found) for found in zip(addresses, accounts, strict=True)]

    async def read_audited(
        self, run: Pubkey, rounds: Sequence[int], keys: Sequence[AuditKey]
    ) -> tuple[RunView, list[RoundView | None], list[AuditView | None]]:
        """Read a run, and rounds and audits of it, at one slot; more than 99 in several calls."""
        at = await self._addresses(run)
        addresses = [
            *(at.round(round_) for round_ in rounds),
            *(audit_address(run, *key, self.program_id) for key in keys),
        ]
        most = MAX_ACCOUNTS_PER_CALL - 1
        accounts: list[Account | None] = []
        for first in range(0, max(1, len(addresses)), most):
            chosen = [run, *addresses[first : first + most]]
            _slot, (run_account, *found) = await self.rpc.get_accounts(chosen)
            accounts += found
        num = len(rounds)
        return (
            self._seen(run, run_account),
            [self._round(*one) for one in zip(addresses, accounts, rounds, strict=False)],
            [self._audit(*one) for one in zip(addresses[num:], accounts[num:], strict=True)],
        )

    async def find_audits(self, run: Pubkey) -> list[AuditView]:
        """Read all open audits and cases of a run, by round, target and kind."""
        found = await self._of_kind("Audit", run)
        views = [self._reader.audit(address, account) for address, account in found]
        return sorted(views, key=lambda view: view.key)

    async def history(self, address: Pubkey, run: Pubkey, newest: int | None = None) -> list[Event]:
        """Return a run's events of all transactions that name an account, oldest first.

        This is how an account is known that is closed. Of a run that was created again only the
        newest life counts, where its creation names the account. Transactions that the node has
        forgotten are left out, and those of no known shape; `newest` bounds how many are read.
        Raises EventsMissingError for a node that keeps transactions without their inner calls.
        """
        found: list[Listed] = []
        last: Signature | None = None
        while page := await self.rpc.signatures(address, before=last):
            found, last = found + page, page[-1].signature
            if newest is not None and len(found) >= newest:
                break
        events = [
            event
            for listed in reversed(found[:newest])
            if not listed.has_failed
            for event in await self.events_of(listed.signature, run) or ()
        ]
        return events[creation_in(events) or 0 :]

    async def events_of(self, signature: Signature, run: Pubkey) -> tuple[Event, ...] | None:
        """Return a run's events of a transaction; None while the node has no record to be read.

        Raises EventsMissingError as `history` does.
        """
        try:
            found = await self.landed(signature, run)
        except UnreadableRecordError:
            return None
        return None if found is None else found[1]

    async def landed(
        self, signature: Signature, run: Pubkey
    ) -> tuple[TransactionRecord, tuple[Event, ...]] | None:
        """Return the node's record of a transaction and a run's events in it.

        Events of other runs are left out: a stranger may name any account in a transaction about a
        run of his own. Raises as `history`, UnreadableRecordError, and MalformedReplyError for an
        event that the program cannot have written.
        """
        record = await self.rpc.transaction(signature)
        if record is None:
            return None
        try:
            parsed = self._events.read(record)
        except ArtifactError as error:  # of this transaction the node is the only witness
            raise MalformedReplyError("getTransaction", f"{signature}: {error.found}") from error
        if not parsed.is_complete:
            raise EventsMissingError(str(signature))
        return record, tuple(event for event in parsed.events if event.run == run)

    async def balance(self, address: Pubkey) -> int:
        """Return the lamports of an address, 0 where there is no account."""
        _slot, (account,) = await self.rpc.get_accounts([address])
        return 0 if account is None else account.lamports

    async def airdrop(self, address: Pubkey, lamports: int) -> None:
        """Ask for free lamports and wait for them (localnet, devnet); else UnconfirmedError."""
        signature = await self.rpc.request_airdrop(address, lamports)
        for _poll in range(self._policy.max_polls):
            (status,) = await self.rpc.statuses([signature])
            if status is not None and status.finality != "processed":
                return
            await self._sleeper(self._policy.poll_seconds)
        raise UnconfirmedError(str(signature), None)

    async def send(
        self,
        instructions: Sequence[Instruction],
        signers: Sequence[Keypair],
        watch: SendWatch | None = None,
    ) -> ConfirmedTransaction:
        """Send one transaction, the first signer paying, and wait for `confirmed`; see Sender."""
        try:
            return await self._sender.send(instructions, signers, watch)
        except ProgramIdError:
            # Runtimes use one word for "no program" and "not a program": look for ourselves.
            await self.check_program()
            raise

    async def simulate(
        self, instructions: Sequence[Instruction], signers: Sequence[Keypair]
    ) -> None:
        """Ask whether one transaction would succeed now; raises as `send` would, sends nothing."""
        await self._sender.simulate(instructions, signers)

    async def send_carrying(
        self,
        instructions: Sequence[Instruction],
        carried: Sequence[Instruction],
        signers: Sequence[Keypair],
        watch: SendWatch | None = None,
    ) -> ConfirmedTransaction:
        """Send instructions with others on top, and without those where the chain refuses them.

        For the last commit or attestation, which carries the next transition: if somebody else
        was faster with the transition, or its units run out, ours must land all the same.
        """
        if not carried:
            return await self.send(instructions, signers, watch)
        try:
            return await self.send([*instructions, *carried], signers, watch)
        except REFUSALS as error:
            if error.instruction is None or error.instruction < len(instructions):
                raise
        return await self.send(instructions, signers, watch)

    def _seen(self, run: Pubkey, account: Account | None) -> RunView:
        # A wallet is named as such, but for a run that was here: anybody may pay to where it was.
        made = made_by_program(account) if run in self._last_seen else account
        if made is None:
            raise AccountMissingError("Run", str(run))
        view = self._reader.run(run, made)
        check_run(view)
        self._last_seen[run] = (view.round, view.params.ring)
        self.pricing.begin(view)
        return view

    async def _addresses(self, run: Pubkey) -> RunAddresses:
        """Return the addresses of a run, which is read where it was not seen yet."""
        if run not in self._last_seen:
            await self.read_run(run)
        return RunAddresses(run, self._last_seen[run][1], self.program_id)

    def _participant(self, address: Pubkey, account: Account | None) -> ParticipantView | None:
        made = made_by_program(account)
        return None if made is None else self._reader.participant(address, made)

    def _audit(self, address: Pubkey, account: Account | None) -> AuditView | None:
        made = made_by_program(account)
        return None if made is None else self._reader.audit(address, made)

    def _round(self, address: Pubkey, account: Account | None, round_: int) -> RoundView | None:
        made = made_by_program(account)
        if made is None:
            return None
        view = self._reader.round(address, made)
        return view if view.round == round_ else None

    async def _of_kind(self, name: str, run: Pubkey) -> list[tuple[Pubkey, Account]]:
        """Read all accounts of a kind of a run."""
        kind = program_layout().accounts[name]
        of_run = BytesAt(DISCRIMINATOR_BYTES + _run_offset(name), bytes(run))
        filters: list[int | BytesAt] = [kind.size, BytesAt(0, kind.discriminator), of_run]
        return await self.rpc.get_program_accounts(self.program_id, filters)


def _run_offset(kind: str) -> int:
    """Return where an account names its run. The small ones have it behind version and bump."""
    return program_layout().field(kind, "run").offset if kind == "Audit" else 2
