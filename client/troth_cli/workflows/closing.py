"""Returns and debts of a run that is closed: read from the accounts.

Owns: the accounts that can be closed now, who paid for them, and who is owed something.
Never: sends anything, or holds the rule; `rules/closing.py` does.
Next: `close.py`, which closes them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solders.pubkey import Pubkey

from troth_cli.view.amounts import sol
from troth_coordinator.chain.accounts import program_reader
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.rpc import MAX_ACCOUNTS_PER_CALL, made_by_program
from troth_coordinator.rules.closing import entries_of, is_settled, leftovers
from troth_coordinator.rules.view import EntryView, ParticipantView, RunView

Pair = tuple[Pubkey, Pubkey]


@dataclass(frozen=True, slots=True)
class Closable:
    """An account that can be closed, the payer of its rent, and that rent."""

    pair: Pair
    lamports: int

    @property
    def payer(self) -> Pubkey:
        """The receiver of the rent."""
        return self.pair[1]


@dataclass(frozen=True, slots=True)
class Owed:
    """The debt of a run to a participant; amounts in lamports."""

    owner: Pubkey
    stake: int
    unbonding: int
    rewards: int

    @property
    def lamports(self) -> int:
        """All of it."""
        return self.stake + self.unbonding + self.rewards

    @property
    def text(self) -> str:
        """The amounts, each with the command that takes it out."""
        parts = (
            (self.stake, "at stake: troth leave"),
            (self.unbonding, "on its way out: troth withdraw"),
            (self.rewards, "of rewards: troth claim"),
        )
        found = [f"{sol(amount)} {word}" for amount, word in parts if amount]
        return ", ".join(found) or "nothing, but has not left"


@dataclass(frozen=True, slots=True)
class Closing:
    """A run as closing finds it. `leftover` goes to the funder, `last_rent` to the authority.

    `last_rent` is that of run, roster and vault, which are closed after everything else. Whether
    that happened, `is_closed` says, once it was read from the chain.
    """

    at: RunAddresses
    view: RunView
    accounts: tuple[Closable, ...]
    owed: tuple[Owed, ...]
    leftover: int
    last_rent: int
    is_closed: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nobody is owed anything, so that the run itself can be closed, too."""
        return not self.owed

    @property
    def returned(self) -> Mapping[tuple[Pubkey, str], int]:
        """The lamports that go back, by receiver and reason."""
        found: Counter[tuple[Pubkey, str]] = Counter()
        for one in self.accounts:
            found[one.payer, "rent"] += one.lamports
        if self.leftover:
            found[Pubkey(self.view.funder), "reward pool and leftovers"] += self.leftover
        if self.is_complete:
            found[Pubkey(self.view.authority), "rent of run, roster and vault"] += self.last_rent
        return found


async def look_at(client: CoordinatorClient, run: Pubkey) -> Closing:
    """Read what could be closed now."""
    view = await client.read_run(run)
    at = RunAddresses.of(view, client.program_id)
    found = await client.find_participants(run)
    entries = (await client.snapshot(run)).entries if found else ()
    settled = [one for one in found if is_settled(one, entries)]
    checkpoints = await client.find_checkpoints(run)
    pairs = [
        *((at.participant(Pubkey(one.owner)), Pubkey(one.payer)) for one in settled),
        *((at.checkpoint(one.round), Pubkey(one.payer)) for one in checkpoints),
    ]
    addresses = [Pubkey(view.vault), at.roster, run, *(address for address, _ in pairs)]
    vault, roster, own, *others = await _lamports(client, addresses)
    accounts = [Closable(*one) for one in zip(pairs, others, strict=True) if one[1]]
    return Closing(
        at=at,
        view=view,
        accounts=(*accounts, *await _rounds(client, at)),
        owed=tuple(_owed(one, entries) for one in found if not is_settled(one, entries)),
        leftover=leftovers(view, vault),
        last_rent=roster + own + view.vault_rent,
    )


async def is_gone(client: CoordinatorClient, run: Pubkey) -> bool:
    """Return whether the account of a run has been closed."""
    return await _lamports(client, [run]) == [0]


async def _lamports(client: CoordinatorClient, addresses: Sequence[Pubkey]) -> list[int]:
    found: list[int] = []
    for first in range(0, len(addresses), MAX_ACCOUNTS_PER_CALL):
        chosen = addresses[first : first + MAX_ACCOUNTS_PER_CALL]
        _slot, accounts = await client.rpc.get_accounts(chosen)
        made = map(made_by_program, accounts)
        found += [0 if account is None else account.lamports for account in made]
    return found


async def _rounds(client: CoordinatorClient, at: RunAddresses) -> list[Closable]:
    reader = program_reader(at.program)
    positions = [at.round(position) for position in range(at.ring)]
    _slot, accounts = await client.rpc.get_accounts(positions)
    return [
        Closable((address, Pubkey(reader.round(address, account).payer)), account.lamports)
        for address, account in zip(positions, map(made_by_program, accounts), strict=True)
        if account is not None
    ]


def _owed(participant: ParticipantView, entries: Sequence[EntryView]) -> Owed:
    theirs = entries_of(participant, entries)
    rewards = sum(one.claimable + sum(one.bucket_amount) + one.withheld for one in theirs)
    return Owed(
        owner=Pubkey(participant.owner),
        stake=sum(one.stake for one in theirs),
        unbonding=sum(ticket.lamports for ticket in participant.tickets),
        rewards=participant.claimable + rewards,
    )
