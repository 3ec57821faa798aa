"""The payer: warn before the session key runs dry, and leave cleanly when it does.

Owns: the reading of the balance, the warnings, and the way out: leave, do what is owed, end.
Never: refills (`session_funding.py`), or ranks a send by its worth (`network/fee_funds.py`).
Next: `supervisor.py`, which runs this beside the rounds.

    low    warn at 20, 10, 5, 2 and 1 rounds left
    dry    for 64 slots not enough for a round: nobody refills it
           active  -> leave, which costs no stake; serve what is owed; end
           other   -> nothing to leave: end once nothing is owed that can be paid
"""

from dataclasses import dataclass, field
from typing import NoReturn

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_client.audit.debts import debts
from troth_client.member import Member
from troth_client.network.errors import FeesSpentError
from troth_client.network.fee_funds import UNSPENDABLE_LAMPORTS, Rank
from troth_client.network.watch import RPC_FAILURES
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.agreement import check_end
from troth_coordinator.chain.errors import AccountMissingError, TransactionError
from troth_coordinator.chain.operations import Owner
from troth_coordinator.chain.priority import EpochLamports
from troth_coordinator.chain.transactions import FEE_PER_SIGNATURE_LAMPORTS
from troth_coordinator.rules.view import EntryFlag, EntryView, NetworkView, Status

WARN_ROUNDS = (20, 10, 5, 2, 1)
"""A warning is given once at each of these numbers of rounds that are left."""
DRY_SLOTS = 64
"""A refill takes some seconds: only a key that stays dry for so long is given up."""
LOOK_SLOTS = 16
"""The balance is read so often while it is too low, beside once a round."""
DRY_LOOKS = 3
"""So many looks must have shown it dry before."""
IDLE_SLOTS = 900
"""It is read so often where no round comes."""
LEAVE_LAMPORTS = 2 * FEE_PER_SIGNATURE_LAMPORTS
"""Leaving takes the owner's signature, and the session's where that pays."""


def report_cap(events: EventSink, epoch: EpochLamports) -> None:
    """Report that the cap of an epoch limits priority fees; sends go on without."""
    events.emit("priority_cap_reached", epoch=epoch.epoch, spent=epoch.spent, cap=epoch.cap)


@dataclass(slots=True)
class Payer:
    """Watches the session key of a member. `owner` can leave the run; None: nobody here can."""

    member: Member
    owner: Owner | None
    is_spent: bool = False
    _read_slot: int = field(default=-1, init=False)
    _read_round: int = field(default=-1, init=False)
    _dry_slot: int | None = field(default=None, init=False)
    _num_dry: int = field(default=0, init=False)
    _was_there: bool = field(default=False, init=False)
    _warned: int = field(default=WARN_ROUNDS[0] + 1, init=False)

    async def watch(self) -> NoReturn:
        """Read the balance each round, for ever. Raises FeesSpentError when nothing can be done."""
        watch = self.member.chain.watch
        while True:
            view = await watch.next()
            if not self._is_time(view):
                continue
            try:
                await self._look(view)
            except RPC_FAILURES as error:
                watch.report(error)

    def spent(self) -> FeesSpentError:
        """Return the error that a participant ends with when its fees are used up."""
        chain = self.member.chain
        has_left = _has_left(chain.watch.latest.entries[chain.index])
        return FeesSpentError(
            str(chain.payer), chain.funds.spendable or 0, chain.funds.round_lamports, has_left
        )

    def _is_time(self, view: NetworkView) -> bool:
        if view.run.round != self._read_round:
            return True
        pause = IDLE_SLOTS if self.member.chain.funds.rounds_left else LOOK_SLOTS
        return view.slot >= self._read_slot + pause

    async def _look(self, view: NetworkView) -> None:
        chain = self.member.chain
        balance = await chain.client.balance(chain.payer)
        self._read_slot, self._read_round = view.slot, view.run.round
        if balance:
            self._was_there = True
        elif self._was_there:
            # An account that pays keeps its rent: one that has vanished is a bad answer.
            raise AccountMissingError("session", str(chain.payer))
        chain.funds.read(balance, view.run.round)
        self._report()
        if chain.funds.rounds_left:
            self._dry_slot, self._num_dry = None, 0
            # A member that left for it says so at the end, although rent comes back then.
            self.is_spent = self.is_spent and _has_left(view.entries[chain.index])
            return
        if self._dry_slot is None:
            self._dry_slot = view.slot
        self._num_dry += 1
        # One false slot must not make the time of a refill pass at once.
        if view.slot >= self._dry_slot + DRY_SLOTS and self._num_dry > DRY_LOOKS:
            await check_end(chain.client, chain.at.run, chain.identity.owner)
            await self._give_up(view)

    def _report(self) -> None:
        chain = self.member.chain
        funds, pricing = chain.funds, chain.client.pricing
        left = funds.rounds_left or 0
        about = {
            "spendable": funds.spendable,
            "rounds_left": left,
            "per_round": funds.round_lamports,
        }
        chain.events.emit(
            "payer",
            **about,
            policy=str(pricing.policy),
            priority_cap=pricing.policy.cap_lamports,
            priority_spent=pricing.epoch.spent,
            priority_epoch_cap=pricing.epoch.cap,
        )
        level = min((one for one in WARN_ROUNDS if left <= one), default=WARN_ROUNDS[0] + 1)
        if left == 0:
            level = 0
        if level < self._warned:
            advice = "send SOL to the owner's account, or raise --refill-sol"
            chain.events.emit("fees_low", **about, session=str(chain.payer), advice=advice)
        self._warned = level

    async def _give_up(self, view: NetworkView) -> None:
        """Leave if we are a member; end at once where nothing more can be paid."""
        chain = self.member.chain
        entry = view.entries[chain.index]
        if not self.is_spent:
            self.is_spent = True
            chain.events.emit("fees_spent", spendable=chain.funds.spendable)
        if _has_left(entry):
            return  # the rounds end by themselves once nothing is owed
        has_left = entry.status == Status.ACTIVE and await self._leave(view)
        if has_left:
            return
        owed = [one.what for one in debts(self.member.audits.tracker, chain.index, view)]
        if not owed or not chain.funds.allows(Rank.REVEAL):
            raise self.spent()

    async def _leave(self, view: NetworkView) -> bool:
        """Leave the run; the owner pays if it can, else the session, after its reveals."""
        chain = self.member.chain
        if self.owner is None:
            return False
        payer = await self._leaving_payer(self.owner.key.pubkey(), view)
        if payer is None:
            return False
        own = payer == self.owner.key.pubkey()
        session: Keypair | None = None if own else chain.identity.session
        try:
            sent = await self.owner.leave_run(session)
        except TransactionError as error:
            chain.events.emit("leave_failed", reason=str(error))
            return False
        chain.events.emit("leaving", payer=str(payer), fee=sent.fee_lamports)
        if not own:
            chain.funds.pay(sent.fee_lamports)
        return True

    async def _leaving_payer(self, owner: Pubkey, view: NetworkView) -> Pubkey | None:
        """Return the key that can pay for leaving; the session's reveals come first."""
        chain = self.member.chain
        if await chain.client.balance(owner) >= UNSPENDABLE_LAMPORTS + LEAVE_LAMPORTS:
            return owner
        owed = debts(self.member.audits.tracker, chain.index, view)
        reveals = sum(one.what == "reveal" for one in owed)
        needed = LEAVE_LAMPORTS + reveals * FEE_PER_SIGNATURE_LAMPORTS
        return chain.payer if (chain.funds.spendable or 0) >= needed else None


def _has_left(entry: EntryView) -> bool:
    return entry.status == Status.LEFT or bool(entry.flags & EntryFlag.LEAVING)
