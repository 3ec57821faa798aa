"""One coroutine per instruction, grouped by who signs: authority, owner, session, anyone.

Owns: sending single instructions, and the few sequences that belong together (create a run with
its roster and ring; join with the lowest free index).
Never: decides when to do what; the client's round loop does.
Next: instructions.py for the instructions themselves; client.py for combining several of them in
one transaction.

Every coroutine returns the ConfirmedTransaction and raises what Sender.send raises. A payment
that would be made again when it lands again is signed once; see `pay_once`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer

from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.attempts import Once
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    ProgramRefusedError,
    RpcUnreachableError,
    RunFullError,
)
from troth_coordinator.chain.instructions import JoinTerms, Manifest, RunTerms
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.rpc import made_by_program
from troth_coordinator.chain.sender import ConfirmedTransaction
from troth_coordinator.rules.membership import free_indices
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.view import RunView

GROWTH_BYTES = 10_240
"""The most bytes that an account may grow by in one instruction."""
ROUNDS_PER_TRANSACTION = 4
"""Ring positions created in one transaction: four addresses and their compute fit easily."""


T = TypeVar("T")


async def pay_once(
    client: CoordinatorClient,
    built: Sequence[Instruction],
    key: Keypair,
    look: str,
    once: Once | None = None,
) -> ConfirmedTransaction:
    """Send a payment under one signature: a node may hide that it landed.

    `look` is the command that shows whether it did. `once` tells the caller whether it was signed.
    Raises BlockhashExpiredError with that command where no node shows it, else as Sender.send.
    """
    once = once or Once()
    try:
        return await client.send(built, [key], once)
    except (BlockhashExpiredError, RpcUnreachableError) as error:
        if not once.is_signed:
            raise
        raise BlockhashExpiredError(1, look) from error


_Attempt = Callable[[Sequence[Instruction], Sequence[Keypair]], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class JoinOffer:
    """The terms on which an owner would join, wherever a place is free.

    session_lamports are moved to the session key in the same transaction: it pays for its own
    transactions. more_stake lamports are added to the least stake.
    """

    session: Pubkey
    roles: int
    endpoint: str
    session_lamports: int = 0
    more_stake: int = 0


@dataclass(frozen=True, slots=True)
class Authority:
    """Acts with the key that created a run."""

    client: CoordinatorClient
    at: RunAddresses
    key: Keypair

    @classmethod
    def create_at(cls, client: CoordinatorClient, key: Keypair, terms: RunTerms) -> Authority:
        """Prepare to create the run that `terms` name; nothing is sent yet."""
        ring, program = terms.params.ring, client.program_id
        at = RunAddresses.create(key.pubkey(), terms.run_id, ring, program)
        return cls(client, at, key)

    async def create_run(
        self, terms: RunTerms, fund_lamports: int = 0
    ) -> list[ConfirmedTransaction]:
        """Create run, vault, roster and ring, then fund the pool; skips what exists already.

        Safe to repeat after an interruption: an existing run is continued, not refused.
        """
        sent = []
        _slot, (run,) = await self.client.rpc.get_accounts([self.at.run])
        if made_by_program(run) is None:
            sent.append(await self._send(make.create_run(self.at, self._me, terms)))
        sent += await self._create_roster()
        sent += await self._create_rounds()
        if fund_lamports:
            sent.append(await self.fund_run(fund_lamports))
        return sent

    async def admit(self, owner: Pubkey) -> ConfirmedTransaction:
        """Put an owner on the allowlist."""
        return await self._send(make.admit(self.at, self._me, owner))

    async def fund_run(self, lamports: int) -> ConfirmedTransaction:
        """Pay into the reward pool."""
        built = make.fund_run(self.at, self._me, lamports)
        return await pay_once(self.client, [built], self.key, f"troth run show {self.at.run}")

    async def pause_run(self) -> ConfirmedTransaction:
        """Ask for a pause."""
        return await self._send(make.pause_run(self.at, self._me))

    async def resume_run(self) -> ConfirmedTransaction:
        """End a pause."""
        run = await self.client.read_run(self.at.run)
        return await self._send(make.resume_run(self.at, self._me, run.round))

    async def update_params(self, params: ParamsView) -> ConfirmedTransaction:
        """Ask for new parameters."""
        return await self._send(make.update_params(self.at, self._me, params))

    async def _create_roster(self) -> list[ConfirmedTransaction]:
        size = program_layout().accounts["Roster"].size
        _slot, (account,) = await self.client.rpc.get_accounts([self.at.roster])
        missing = size - (0 if account is None else len(account.data))
        num_calls = -(-missing // GROWTH_BYTES)
        if num_calls < 1:
            return []
        return [await self._send(*[make.init_roster(self.at, self._me)] * num_calls)]

    async def _create_rounds(self) -> list[ConfirmedTransaction]:
        positions = range(self.at.ring)
        addresses = [self.at.round(position) for position in positions]
        _slot, accounts = await self.client.rpc.get_accounts(addresses)
        missing = [place for place in positions if made_by_program(accounts[place]) is None]
        sent = []
        for start in range(0, len(missing), ROUNDS_PER_TRANSACTION):
            batch = missing[start : start + ROUNDS_PER_TRANSACTION]
            built = [make.init_round(self.at, self._me, position) for position in batch]
            sent.append(await self._send(*built))
        return sent

    @property
    def _me(self) -> Pubkey:
        return self.key.pubkey()

    async def _send(self, *built: Instruction) -> ConfirmedTransaction:
        return await self.client.send(built, [self.key])


@dataclass(frozen=True, slots=True)
class Owner:
    """Acts with the key that holds a participant's stake."""

    client: CoordinatorClient
    at: RunAddresses
    key: Keypair

    async def join_run(self, offer: JoinOffer) -> tuple[int, ConfirmedTransaction]:
        """Deposit the stake at the lowest free index; returns that index.

        Raises RunFullError where no index is free, and the program's refusals (AlreadyJoined,
        NotAdmitted, JoinClosed, ...).
        """
        return await self._at_first_place(offer, self.client.send)

    async def foretell_join(self, offer: JoinOffer) -> int:
        """Return the index that `join_run` would get now, by simulation; raises as it would."""
        index, _none = await self._at_first_place(offer, self.client.simulate)
        return index

    async def top_up_stake(self, lamports: int, once: Once | None = None) -> ConfirmedTransaction:
        """Add to the stake."""
        built = make.top_up_stake(self.at, self.key.pubkey(), lamports)
        return await pay_once(self.client, [built], self.key, self._stake_shown, once)

    async def set_session_key(
        self, session: Pubkey, session_lamports: int = 0, once: Once | None = None
    ) -> ConfirmedTransaction:
        """Name a new session key, and fund it."""
        built = [make.set_session_key(self.at, self.key.pubkey(), session)]
        if session_lamports == 0:
            return await self._send(*built)
        built += self._funding(session, session_lamports)
        return await pay_once(self.client, built, self.key, _balance_of(session), once)

    async def set_endpoint(self, endpoint: str) -> ConfirmedTransaction:
        """Announce another address for what this participant serves; in force at once."""
        return await self._send(make.set_endpoint(self.at, self.key.pubkey(), endpoint))

    async def fund_session(
        self, session: Pubkey, lamports: int, once: Once | None = None
    ) -> ConfirmedTransaction:
        """Move lamports to the session key, which pays for its own transactions."""
        built = self._funding(session, lamports)
        return await pay_once(self.client, built, self.key, _balance_of(session), once)

    async def leave_run(self, payer: Keypair | None = None) -> ConfirmedTransaction:
        """Leave from the next round open. `payer` pays the fee, else the owner."""
        signers = [self.key] if payer is None else [payer, self.key]
        return await self.client.send([make.leave_run(self.at, self.key.pubkey())], signers)

    async def withdraw_stake(self, unbond_lamports: int = 0) -> ConfirmedTransaction:
        """Take matured tickets, and open one for `unbond_lamports` unless 0."""
        owner = self.key.pubkey()
        view = await self.client.read_participant(self.at.run, owner)
        payer = None if view is None else Pubkey.from_bytes(view.payer)
        built = make.withdraw_stake(self.at, owner, unbond_lamports, payer)
        if unbond_lamports == 0:
            return await self._send(built)
        return await pay_once(self.client, [built], self.key, self._stake_shown)

    async def claim_reward(self) -> ConfirmedTransaction:
        """Take vested rewards."""
        return await self._send(make.claim_reward(self.at, self.key.pubkey()))

    @property
    def _stake_shown(self) -> str:
        return f"troth stake show {self.at.run}"

    def _funding(self, session: Pubkey, lamports: int) -> list[Instruction]:
        if lamports == 0:
            return []
        owner = self.key.pubkey()
        return [transfer(TransferParams(from_pubkey=owner, to_pubkey=session, lamports=lamports))]

    async def _at_first_place(self, offer: JoinOffer, attempt: _Attempt[T]) -> tuple[int, T]:
        """Send or simulate a join at each free index, until one is not taken."""
        view = await self.client.snapshot(self.at.run)
        owner = self.key.pubkey()
        for index in free_indices(view):
            former = view.entries[index].owner
            held_by = Pubkey.from_bytes(former) if any(former) else None
            terms = JoinTerms(index, offer.roles, offer.session, offer.endpoint)
            built = [make.join_run(self.at, owner, terms, held_by)]
            if offer.more_stake:
                built.append(make.top_up_stake(self.at, owner, offer.more_stake))
            built += self._funding(offer.session, offer.session_lamports)
            try:
                return index, await attempt(built, [self.key])
            except ProgramRefusedError as error:
                # Somebody was faster, or the former owner's rewards have not vested: the next one.
                if error.name != "IndexTaken":
                    raise
        raise RunFullError(str(self.at.run), view.run.params.capacity)

    async def _send(self, *built: Instruction) -> ConfirmedTransaction:
        return await self.client.send(built, [self.key])


def _balance_of(key: Pubkey) -> str:
    return f"solana balance {key}"


@dataclass(frozen=True, slots=True)
class Session:
    """Acts with a participant's session key in the rounds.

    carry: instructions to put on top (see CoordinatorClient.send_carrying).
    """

    client: CoordinatorClient
    at: RunAddresses
    key: Keypair
    index: int

    async def post_ready(self, round_: int, vote: bytes) -> ConfirmedTransaction:
        """Post the root vote of the weights one would train on."""
        return await self._send(make.post_ready(self.at, self._me, self.index, round_, vote))

    async def commit_payload(
        self,
        round_: int,
        header_hash: bytes,
        root_vote: bytes,
        carry: Sequence[Instruction] = (),
    ) -> ConfirmedTransaction:
        """Commit to a header and vote for a root."""
        built = make.commit_payload(self.at, self._me, self.index, round_, header_hash, root_vote)
        return await self._send(built, carry)

    async def vote_root(
        self, round_: int, root_vote: bytes, carry: Sequence[Instruction] = ()
    ) -> ConfirmedTransaction:
        """Vote for the current root in Cooldown."""
        built = make.vote_root(self.at, self._me, self.index, round_, root_vote)
        return await self._send(built, carry)

    async def attest(
        self, round_: int, bitmap: int, possession: bytes, carry: Sequence[Instruction] = ()
    ) -> ConfirmedTransaction:
        """Vouch for payloads."""
        built = make.attest(self.at, self._me, self.index, round_, bitmap, possession)
        return await self._send(built, carry)

    async def report_missing(
        self, round_: int, target: int, open_round: int | None = None
    ) -> ConfirmedTransaction:
        """Report an included payload that nobody serves; see instructions.report_missing."""
        return await self._send(
            make.report_missing(self.at, self._me, self.index, round_, target, open_round)
        )

    async def announce_manifest(self, owner: Pubkey, manifest: Manifest) -> ConfirmedTransaction:
        """Announce where a checkpoint's files are."""
        return await self._send(
            make.announce_manifest(self.at, self._me, owner, self.index, manifest)
        )

    @property
    def _me(self) -> Pubkey:
        return self.key.pubkey()

    async def _send(
        self, built: Instruction, carry: Sequence[Instruction] = ()
    ) -> ConfirmedTransaction:
        return await self.client.send_carrying([built], carry, [self.key])


@dataclass(frozen=True, slots=True)
class Crank:
    """Moves a run on, with anybody's key."""

    client: CoordinatorClient
    at: RunAddresses
    key: Keypair

    async def activate(self, index: int, ready_round: int) -> ConfirmedTransaction:
        """Make a ready participant active."""
        return await self._send(make.activate(self.at, self.key.pubkey(), index, ready_round))

    async def advance_phase(self, round_: int) -> ConfirmedTransaction:
        """Move to the next phase; `round_` is run.round."""
        return await self._send(make.advance_phase(self.at, self.key.pubkey(), round_))

    async def close_round(self, run: RunView, candidate_root: bytes) -> ConfirmedTransaction:
        """Close the open round of `run` on a root, storing a checkpoint where one is due."""
        return await self._send(
            make.close_round(
                self.at,
                self.key.pubkey(),
                run.round,
                candidate_root,
                with_checkpoint=make.is_checkpoint_due(run),
            )
        )

    async def close_void(self, round_: int) -> ConfirmedTransaction:
        """Close a round as void."""
        return await self._send(make.close_void(self.at, self.key.pubkey(), round_))

    async def freeze_seed(self, round_: int) -> ConfirmedTransaction:
        """Fix a closed round's audit seed."""
        return await self._send(make.freeze_seed(self.at, self.key.pubkey(), round_))

    async def retarget_seed(self, round_: int) -> ConfirmedTransaction:
        """Choose a new slot for a seed that was not frozen in time."""
        return await self._send(make.retarget_seed(self.at, self.key.pubkey(), round_))

    async def close_run(self, pairs: Sequence[tuple[Pubkey, Pubkey]]) -> ConfirmedTransaction:
        """Close accounts of a finished run; pairs are (account, its recorded payer)."""
        run = await self.client.read_run(self.at.run)
        authority, funder = Pubkey.from_bytes(run.authority), Pubkey.from_bytes(run.funder)
        return await self._send(
            make.close_run(self.at, self.key.pubkey(), authority, funder, pairs)
        )

    async def resume_run(self, round_: int) -> ConfirmedTransaction:
        """End a pause whose budget is spent."""
        return await self._send(make.resume_run(self.at, self.key.pubkey(), round_))

    async def _send(self, built: Instruction) -> ConfirmedTransaction:
        return await self.client.send([built], [self.key])
