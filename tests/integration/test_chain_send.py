"""Sending against a chain that loses, delays and repeats: one effect, and a clear word."""

from dataclasses import dataclass

import pytest
from solders.account import Account
from solders.pubkey import Pubkey
from solders.system_program import ID as SYSTEM_PROGRAM
from solders.system_program import TransferParams, transfer
from support.chain import PROGRAM, SOL, World, key
from support.faulty_rpc import Faults, always, first

from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.attempts import Once
from troth_coordinator.chain.errors import (
    BlockhashExpiredError,
    ChainError,
    ForeignProgramError,
    InsufficientFundsError,
    MissingSignerError,
    ProgramMissingError,
    ProgramRefusedError,
    RpcRefusedError,
    RpcUnreachableError,
    TransactionTooLargeError,
    UnconfirmedError,
)
from troth_coordinator.chain.operations import Authority
from troth_coordinator.chain.sender import ConfirmedTransaction

BOB = key("bob").pubkey()


def pay(payer, lamports=SOL, to=BOB):
    keys = {"from_pubkey": payer.pubkey(), "to_pubkey": to}
    return transfer(TransferParams(**keys, lamports=lamports))


async def test_a_transaction_that_simply_lands():
    world = World()
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    assert world.balance(BOB) == SOL
    assert sent.fee_lamports == 5_000
    assert sent.slot == world.chain.slot
    assert sent.compute_units > 0
    assert sent.is_complete
    assert sent.events == ()
    assert world.num_sleeps == 0


async def test_two_equal_payments_are_two_payments():
    world = World()
    alice = world.wallet("alice")
    first_one = await world.client.send([pay(alice)], [alice])
    second = await world.client.send([pay(alice)], [alice])
    assert first_one.signature != second.signature
    assert world.balance(BOB) == 2 * SOL


async def test_a_dropped_transaction_is_sent_again():
    world = World(faults=Faults(lose=first(2)))
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    assert world.rpc.sent == [sent.signature] * 3
    assert world.balance(BOB) == SOL


async def test_an_answer_that_was_lost_does_not_repeat_the_payment():
    world = World(faults=Faults(cut=always))
    alice = world.wallet("alice")
    await world.client.send([pay(alice)], [alice])
    assert world.balance(BOB) == SOL


async def test_a_node_that_is_away_for_a_while():
    world = World(faults=Faults(unreachable=first(3), mute=first(20)))
    alice = world.wallet("alice")
    await world.client.send([pay(alice)], [alice])
    assert world.balance(BOB) == SOL


async def test_processed_is_not_enough():
    world = World(faults=Faults(early=first(3)))
    alice = world.wallet("alice")
    await world.client.send([pay(alice)], [alice])
    assert world.num_sleeps == 3
    world.faults.num_calls.clear()
    await world.client.airdrop(BOB, SOL)
    assert world.num_sleeps == 6


async def test_resending_what_landed_is_answered_with_already_processed():
    """The status stays hidden, so the same bytes are sent again; the chain takes them once."""
    world = World(faults=Faults(blind=first(25)))
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    assert len(world.rpc.sent) == 3
    assert set(world.rpc.sent) == {sent.signature}
    assert world.balance(BOB) == SOL


async def test_an_expired_blockhash_leads_to_a_fresh_one():
    """150 blocks pass while the first transaction is lost."""
    world = World(faults=Faults(lose=first(3)), slots_per_sleep=10)
    alice = world.wallet("alice")
    started = world.chain.height
    sent = await world.client.send([pay(alice)], [alice])
    assert world.chain.height - started > 150
    assert world.rpc.sent[0] != sent.signature
    assert world.balance(BOB) == SOL


async def test_a_payment_that_landed_is_not_repeated_because_nobody_could_be_asked():
    """Its blockhash expires during an outage: only an answer says that it did not land."""
    world = World(faults=Faults(mute=first(20)), slots_per_sleep=40)
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    assert set(world.rpc.sent) == {sent.signature}
    assert world.balance(BOB) == SOL


async def test_a_blockhash_that_is_stale_from_the_start():
    world = World(faults=Faults(stale=first(2)))
    alice = world.wallet("alice")
    await world.client.send([pay(alice)], [alice])
    assert world.balance(BOB) == SOL


async def test_a_transaction_that_never_lands():
    world = World(faults=Faults(lose=always), slots_per_sleep=40)
    alice = world.wallet("alice")
    with pytest.raises(BlockhashExpiredError, match="4 attempts, none landed"):
        await world.client.send([pay(alice)], [alice])
    assert len(set(world.rpc.sent)) == 4
    assert world.balance(BOB) == 0


async def test_a_payment_under_one_signature_is_made_once_whatever_the_node_hides():
    world = World(faults=Faults(blind=always), slots_per_sleep=40)
    alice, once = world.wallet("alice"), Once()
    with pytest.raises(BlockhashExpiredError, match="1 attempts, none landed"):
        await world.client.send([pay(alice)], [alice], once)
    assert len(set(world.rpc.sent)) == 1
    assert once.is_signed
    assert world.balance(BOB) == SOL


async def test_one_signature_is_repeated_until_it_lands():
    world = World(faults=Faults(lose=first(2)))
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice], Once())
    assert world.rpc.sent == [sent.signature] * 3
    assert world.balance(BOB) == SOL


async def test_what_fails_before_it_is_signed_was_not_signed():
    world, once = World(faults=Faults(hashless=always)), Once()
    alice = world.wallet("alice")
    with pytest.raises(RpcUnreachableError):
        await world.client.send([pay(alice)], [alice], once)
    assert not once.is_signed


async def test_a_chain_that_stands_still():
    world = World(faults=Faults(lose=always), slots_per_sleep=0)
    alice = world.wallet("alice")
    with pytest.raises(UnconfirmedError, match="neither"):
        await world.client.send([pay(alice)], [alice])


async def test_a_node_that_never_answers_is_named():
    world = World(faults=Faults(unreachable=always, mute=always), slots_per_sleep=0)
    alice = world.wallet("alice")
    with pytest.raises(UnconfirmedError) as caught:
        await world.client.send([pay(alice)], [alice])
    assert isinstance(caught.value.cause, RpcUnreachableError)


async def test_a_success_under_an_older_signature_is_found():
    """The first attempt lands unseen; the second is refused by the program: both are one success.

    init_round refuses to create a position twice, as commit_payload refuses a second commit.
    """
    world = World(slots_per_sleep=40)
    terms = world.terms()
    authority = world.wallet("authority")
    at = Authority.create_at(world.client, authority, terms).at
    await world.client.send([make.create_run(at, authority.pubkey(), terms)], [authority])
    # Five polls and the search at the end of the first attempt see nothing.
    world.faults.num_calls.clear()
    world.faults.blind = first(6)
    del world.rpc.sent[:]
    sent = await world.client.send([make.init_round(at, authority.pubkey(), 3)], [authority])
    assert len(set(world.rpc.sent)) > 1
    assert sent.signature == world.rpc.sent[0]
    assert [event.name for event in sent.events] == ["RoundInitialized"]


async def test_without_an_earlier_attempt_the_same_refusal_is_an_error():
    world = World()
    authority = await world.create()
    again = make.init_round(authority.at, authority.key.pubkey(), 3)
    with pytest.raises(ProgramRefusedError) as caught:
        await world.client.send([pay(authority.key), again], [authority.key])
    assert caught.value.name == "AccountAlreadyExists"
    assert caught.value.instruction == 1
    assert any("AccountAlreadyExists" in line for line in caught.value.logs)
    assert caught.value.next_step


async def test_a_failure_on_chain_costs_its_fee_and_is_named_all_the_same():
    """A refusal that preflight did not see, because the state changed in between."""
    world = World()
    authority = await world.create()
    world.faults.raw = always
    before = world.balance(authority.key.pubkey())
    with pytest.raises(ProgramRefusedError) as caught:
        await world.client.send(
            [make.init_round(authority.at, authority.key.pubkey(), 3)], [authority.key]
        )
    assert caught.value.name == "AccountAlreadyExists"
    assert caught.value.instruction == 0
    assert caught.value.logs
    assert world.balance(authority.key.pubkey()) == before - 5_000


async def test_a_record_that_never_comes():
    world = World(faults=Faults(forget=always))
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    assert not sent.is_complete
    assert sent.fee_lamports == 5_000
    assert sent.compute_units == 0
    assert sent.events == ()


@dataclass
class Bystander:
    """Follows a send and needs no record of it."""

    is_due: bool = True
    window_left: int | None = None
    wants_record: bool = False

    def may_sign(self):
        return True

    def waiting(self, _state):
        pass


async def test_a_failure_on_chain_is_named_also_where_nobody_wants_the_record():
    world = World()
    authority = await world.create()
    world.faults.raw = always
    step = make.init_round(authority.at, authority.key.pubkey(), 3)
    with pytest.raises(ProgramRefusedError) as caught:
        await world.client.send([step], [authority.key], Bystander())
    assert caught.value.name == "AccountAlreadyExists"


async def test_a_record_that_comes_late():
    world = World(faults=Faults(forget=first(3)))
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    assert sent.is_complete
    assert sent.compute_units > 0


@pytest.mark.parametrize(
    ("owned", "paid"),
    [(0, 1), (1_000_000, SOL), (SOL, SOL), (1_000_000, 100_000)],
    ids=["never funded", "too little", "nothing left for the fee", "less than rent left"],
)
async def test_insufficient_funds(owned, paid):
    world = World()
    poor = world.wallet("poor", lamports=owned) if owned else key("poor")
    with pytest.raises(InsufficientFundsError) as caught:
        await world.client.send([pay(poor, paid)], [poor])
    assert str(poor.pubkey()) in str(caught.value)
    assert "Send SOL" in str(caught.value)
    assert world.balance(poor.pubkey()) == owned


async def test_insufficient_funds_inside_the_program():
    world = World()
    terms = world.terms()
    poor = world.wallet("poor", lamports=2_000_000)
    at = Authority.create_at(world.client, poor, terms).at
    with pytest.raises(ChainError) as caught:
        await world.client.send([make.create_run(at, poor.pubkey(), terms)], [poor])
    named = isinstance(caught.value, ProgramRefusedError)
    assert not named or caught.value.name == "InsufficientFunds"
    assert named or isinstance(caught.value, InsufficientFundsError)


async def test_no_program():
    world = World(has_program=False)
    terms = world.terms()
    alice = world.wallet("alice")
    at = Authority.create_at(world.client, alice, terms).at
    with pytest.raises(ProgramMissingError, match=str(PROGRAM)):
        await world.client.check_program()
    with pytest.raises(ProgramMissingError, match=str(PROGRAM)):
        await world.client.send([make.create_run(at, alice.pubkey(), terms)], [alice])


async def test_a_foreign_account_in_the_program_s_place():
    world = World(has_program=False)
    world.chain.accounts.set(PROGRAM, Account(SOL, b"hello", SYSTEM_PROGRAM, False, 0))
    terms = world.terms()
    alice = world.wallet("alice")
    at = Authority.create_at(world.client, alice, terms).at
    with pytest.raises(ForeignProgramError, match="not executable"):
        await world.client.check_program()
    with pytest.raises((ForeignProgramError, ProgramMissingError)):
        await world.client.send([make.create_run(at, alice.pubkey(), terms)], [alice])


async def test_the_right_program_passes():
    await World().client.check_program()


async def test_what_cannot_be_sent_is_not_sent():
    world = World()
    alice, carol = world.wallet("alice"), world.wallet("carol")
    with pytest.raises(MissingSignerError, match=str(carol.pubkey())):
        await world.client.send([pay(carol)], [alice])
    with pytest.raises(TransactionTooLargeError):
        await world.client.send([pay(alice, 1, Pubkey.new_unique()) for _ in range(40)], [alice])
    assert world.rpc.sent == []


async def test_the_proof_of_a_landed_transaction_cannot_be_made_by_hand():
    world = World()
    alice = world.wallet("alice")
    sent = await world.client.send([pay(alice)], [alice])
    with pytest.raises(ChainError, match="made by sending a transaction"):
        ConfirmedTransaction(sent.signature, sent.slot, 5_000, 1, (), True)


async def test_a_refused_method_is_not_repeated():
    """A node that takes no transactions at all says so once; there is nothing to wait for."""
    world = World()
    alice = world.wallet("alice")

    async def refuse(raw, *, skip_preflight=False):
        raise RpcRefusedError("sendTransaction", -32601, "Method not found")

    world.rpc.send = refuse
    with pytest.raises(RpcRefusedError, match="Method not found"):
        await world.client.send([pay(alice)], [alice])
    assert world.num_sleeps == 0


async def test_a_busy_node_after_sending_is_waited_for():
    """Rate limits while polling do not lose a transaction that is on its way."""
    world = World(faults=Faults(lose=first(1), blind=first(8)))
    alice = world.wallet("alice")
    record, height, calls = world.rpc.transaction, world.rpc.block_height, []

    def busy(ask):
        async def asked(*arguments):
            calls.append(ask)
            if calls.count(ask) == 1:
                raise RpcRefusedError("any", -32429, "Too many requests")
            return await ask(*arguments)

        return asked

    world.rpc.transaction, world.rpc.block_height = busy(record), busy(height)
    sent = await world.client.send([pay(alice)], [alice])
    assert sent.is_complete
    assert calls.count(height) > 1
    assert calls.count(record) == 2
    assert world.balance(BOB) == SOL


async def test_an_airdrop_is_waited_for():
    world = World(faults=Faults(blind=first(3)))
    await world.client.airdrop(BOB, SOL)
    assert await world.client.balance(BOB) == SOL
    assert await world.client.balance(key("nobody").pubkey()) == 0
    world.faults.blind = always
    with pytest.raises(UnconfirmedError):
        await world.client.airdrop(BOB, SOL)
