"""Every movement of lamports between the places of a run (program: `state/money.rs`).

Owns: rewards and their buckets, fees, slashes with tickets, rewards that wait on a probation.
Never: decides how much: `troth_attestation/slashing.py` does. Totals are sums over the books.
Next: `recount_standing.py` for what a fault does beside money.
"""

from dataclasses import dataclass

from troth_attestation import slashing
from troth_attestation.slashing import Funds, Prices, SlashIntent, Taken
from troth_audit.replay.recount_state import Books, Entry, Owner, less
from troth_coordinator.rules import reward


@dataclass(frozen=True, slots=True)
class Totals:
    """The lamports of a run by their place."""

    total_stake: int
    total_unbonding: int
    total_unvested: int
    total_claimable: int
    total_bonds: int
    total_escrow: int
    total_withheld: int
    reward_pool: int


def totals(books: Books) -> Totals:
    """Return where all lamports are."""
    entries, owners = books.entries.values(), books.owners.values()
    audits = books.audits.values()
    return Totals(
        total_stake=sum(entry.stake for entry in entries),
        total_unbonding=sum(owner.unbonding for owner in owners),
        total_unvested=sum(entry.buckets.unvested for entry in entries),
        total_claimable=sum(e.claimable for e in entries) + sum(o.claimable for o in owners),
        total_bonds=sum(audit.prepaid + audit.bond for audit in audits),
        total_escrow=sum(audit.escrow for audit in audits),
        total_withheld=sum(entry.withheld for entry in entries),
        reward_pool=books.pool,
    )


def reward_window(books: Books, slot: int) -> int:
    """Return the vesting window of a reward earned in a slot."""
    return reward.window_of(books.clock(slot), books.params.vesting_slots)


def credit(books: Books, entry: Entry, window: int, lamports: int) -> int:
    """Move a reward from the pool into its bucket; returns what vested by it."""
    books.pool = less(books.pool, lamports)
    entry.buckets, vested = reward.credit(entry.buckets, window, lamports)
    entry.claimable += vested
    return vested


def release(books: Books, entry: Entry, slot: int) -> int:
    """Move what has vested to the claimable; returns it."""
    clock, vesting = books.clock(slot), books.params.vesting_slots
    entry.buckets, vested = reward.release(entry.buckets, clock, vesting)
    entry.claimable += vested
    return vested


def unvested_at(books: Books, entry: Entry, slot: int) -> int:
    """Return what would still not have vested in a slot."""
    clock, vesting = books.clock(slot), books.params.vesting_slots
    rest, _ = reward.release(entry.buckets, clock, vesting)
    return rest.unvested


def charge(books: Books, entry: Entry, fee: int) -> int:
    """Take a fee into the pool: claimable, unvested, stake; returns what was there."""
    parts = reward.take_fee(entry.claimable, entry.buckets, entry.stake, fee)
    entry.claimable -= parts.claimable
    entry.buckets = parts.buckets
    entry.stake -= parts.stake
    books.pool += parts.total
    return parts.total


def undo(books: Books, entry: Entry, window: int, lamports: int) -> int:
    """Take a reward back into the pool, what a penalty has taken of it since as a fee."""
    entry.buckets, taken = reward.remove(entry.buckets, window, lamports)
    books.pool += taken
    return taken + charge(books, entry, lamports - taken)


def withhold(books: Books, entry: Entry, lamports: int) -> None:
    """Let a reward leave the pool, and wait."""
    books.pool = less(books.pool, lamports)
    entry.withheld += lamports


def return_withheld(books: Books, entry: Entry) -> int:
    """Move all that waits back to the pool: no audit takes it again; returns it."""
    if entry.withheld:
        entry.withheld_from = books.round
    return _take_withheld(books, entry, entry.withheld)


def credit_withheld(books: Books, entry: Entry, window: int) -> tuple[int, int]:
    """Credit all that waits; returns it, and what vested by it."""
    lamports = _take_withheld(books, entry, entry.withheld)
    return lamports, credit(books, entry, window, lamports)


def _take_withheld(books: Books, entry: Entry, lamports: int) -> int:
    part = min(lamports, entry.withheld)
    entry.withheld -= part
    books.pool += part
    return part


def undo_withheld(books: Books, entry: Entry, number: int, window: int, lamports: int) -> int:
    """Take back the reward of a round in which it was withheld, unless it went back already.

    It comes from what waits, and as any other where it was credited since.
    """
    if number < entry.withheld_from:
        return 0
    part = _take_withheld(books, entry, lamports)
    return part + undo(books, entry, window, lamports - part)


def funds(entry: Entry) -> Funds:
    """Return what can be taken from a participant."""
    return Funds(entry.claimable, entry.buckets.unvested, entry.stake, entry.unbonding)


def take(books: Books, entry: Entry, intent: SlashIntent) -> Taken:
    """Take what a slash finds; the caller places it."""
    taken = slashing.take(intent, funds(entry))
    if taken.unbonding:
        cut_tickets(books.owner(entry.owner), taken.unbonding)
    entry.buckets, _ = reward.take(entry.buckets, taken.unvested)
    entry.claimable -= taken.claimable
    entry.stake -= taken.stake
    entry.unbonding -= taken.unbonding
    return taken


def cut_tickets(owner: Owner, lamports: int) -> None:
    """Take lamports out of the tickets, from those that mature first."""
    rest = lamports
    for place in sorted(range(len(owner.tickets)), key=lambda at: owner.tickets[at][0]):
        matures, has = owner.tickets[place]
        part = min(rest, has)
        owner.tickets[place] = matures, has - part
        rest -= part
    owner.tickets = [ticket for ticket in owner.tickets if ticket[1]]


def unbond(books: Books, entry: Entry, lamports: int, matures: int) -> None:
    """Stake becomes a ticket."""
    entry.stake = less(entry.stake, lamports)
    entry.unbonding += lamports
    if lamports:
        books.owner(entry.owner).tickets.append((matures, lamports))


def prices(books: Books, reward_price: int) -> Prices:
    """Return the prices of penalties of a round that opened with this reward."""
    return Prices(reward_price, books.params.witness_fee, books.params.recompute_cost)
