"""Somebody sends lamports to where the program has no account yet, or none any more.

Threat T135.
"""

import pytest
from support.attacks.cheats import (
    FIRST_LIE,
    MAL,
    Books,
    assert_convicted_of_work,
    assert_found,
    assert_honest_untouched,
    play_out,
    stage,
    work_cheat,
)
from support.chain import World

from troth_attestation.verdict import Reason, VerdictKind
from troth_cli.workflows.close import close_accounts
from troth_coordinator.chain.addresses import (
    audit_address,
    checkpoint_address,
    participant_address,
)
from troth_coordinator.chain.errors import AccountMissingError
from troth_coordinator.chain.event_types_audits import AuditClosed
from troth_coordinator.chain.operations import Authority, Crank

DUST = 1_000_000
"""Lamports that keep an address: a hundredth of the smallest stake."""


class Duster(Books):
    """Pays to the address of each audit before it is opened, and again once it is closed."""

    def transaction_landed(self, landed, changed):
        num_known = len(self.events)
        super().transaction_landed(landed, changed)
        for event in self.events[num_known:]:
            if isinstance(event, AuditClosed):
                self.pay(audit_address(self._run.at.run, event.round, event.target, 0))

    def pay(self, address):
        self._run.chain.airdrop(address, DUST)


async def test_lamports_at_the_addresses_of_audits_hide_no_cheat(run_factory):
    """A free-rider sends a few lamports to where its audits will be, and to where others were.

    It hopes that clients take the address for a foreign account and see no audit any more, so that
    it is never judged, and seats that stay silent are fined. An address without an account of the
    program counts as absent, whatever lies there; it is convicted of its first lie.
    """
    run, _ = await stage(run_factory, work_cheat("free-rider"))
    books = Duster(run)
    for round_ in range(FIRST_LIE + 1):
        for target in range(MAL + 1):
            books.pay(audit_address(run.at.run, round_, target, 0))
    await play_out(run)
    (loss,) = books.convictions()
    assert loss.event.round == FIRST_LIE
    assert_found(run, FIRST_LIE, VerdictKind.MISMATCH, Reason.WORK_DIFFERS)
    assert_convicted_of_work(books, loss)
    await assert_honest_untouched(run, books)
    assert books.named("AuditClosed"), "the second half of the story was played"


async def test_lamports_make_no_account():
    """A newcomer joins, and clients read audits, where somebody has sent lamports before."""
    world = World()
    at = (await world.create()).at
    newcomer = world.wallet("owner", "alice").pubkey()
    for address in (
        audit_address(at.run, 0, 1, 0),
        checkpoint_address(at.run, 0),
        participant_address(at.run, newcomer),
    ):
        world.chain.airdrop(address, DUST)
    client = world.client
    assert await client.read_audits(at.run, [(0, 1, 0)]) == [None]
    _run, _rounds, audits = await client.read_audited(at.run, [], [(0, 1, 0)])
    assert audits == [None]
    assert await client.read_checkpoint(at.run, 0) is None
    assert await client.read_participant(at.run, newcomer) is None
    assert await client.read_participants(at.run, [newcomer]) == [None]
    await world.join(at, "alice")
    assert (await client.read_participant(at.run, newcomer)) is not None


async def test_lamports_where_an_account_was_closed_keep_no_rent():
    """Somebody closes one account of a run, which anybody may, and sends lamports to where it was.

    It hopes that `troth run close` fails there for ever, so that the rent of all others is lost.
    """
    world = World()
    authority = await world.create()
    at, key = authority.at, authority.key
    await Crank(world.client, at, key).close_run([(at.round(0), key.pubkey())])
    world.chain.airdrop(at.round(0), DUST)
    closing, _sent = await close_accounts(world.client, at.run, key)
    assert at.round(0) not in [one.pair[0] for one in closing.accounts]
    assert at.round(1) in [one.pair[0] for one in closing.accounts]
    world.chain.airdrop(at.run, DUST)
    with pytest.raises(AccountMissingError):
        await world.client.read_run(at.run)


async def test_lamports_sent_before_a_run_is_created_leave_no_gap_in_it():
    """Somebody watches the transactions that create a run, and pays to the rounds to come.

    It hopes that the creation takes them for made, and that the run can never open those rounds.
    """
    world = World()
    terms = world.terms()
    authority = Authority.create_at(world.client, world.wallet("authority"), terms)
    for address in (authority.at.run, authority.at.roster, authority.at.round(3)):
        world.chain.airdrop(address, DUST)
    await authority.create_run(terms)
    assert (await world.client.snapshot(authority.at.run)).run.num_rounds == authority.at.ring
