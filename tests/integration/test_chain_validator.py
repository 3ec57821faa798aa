"""The chain client on the real solana-test-validator: nothing works on LiteSVM alone.

The binary is the one on PATH or the one that TROTH_VALIDATOR names; without it, these tests are
skipped.
"""

import asyncio

import pytest
from solders.system_program import TransferParams, transfer
from support.chain import GENESIS_ROOT, PROGRAM, SOL, World, key, vote
from support.validator import validator_binary

from troth_coordinator import artifacts
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.client import CoordinatorClient, SendPolicy
from troth_coordinator.chain.errors import (
    InsufficientFundsError,
    ProgramMissingError,
    ProgramRefusedError,
    RpcUnreachableError,
)
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.operations import Authority, Crank, JoinOffer, Owner, Session
from troth_coordinator.rules.phase import Phase
from troth_localnet.validator import ValidatorLauncher, ValidatorOptions

pytestmark = pytest.mark.validator

# Phases that no slow machine can miss, and vesting that outlasts them.
ROOMY = {
    "commit_slots": 2_000,
    "attest_slots": 2_000,
    "vesting_slots": 9_000,
    "unbond_slots": 9_000,
}


@pytest.fixture(scope="module")
def validator():
    options = ValidatorOptions(binary=validator_binary(), slot_milliseconds=50)
    with ValidatorLauncher(options) as one:
        one.start({PROGRAM: artifacts.program_image()})
        yield one


@pytest.fixture
async def client(validator):
    async with HttpRpc(validator.rpc_url) as rpc:
        yield CoordinatorClient(rpc, policy=SendPolicy(poll_seconds=0.02))


async def funded(client, *names, lamports=50 * SOL):
    one = key(*names)
    await client.airdrop(one.pubkey(), lamports)
    return one


async def test_a_round_on_a_real_validator(client):
    await client.check_program()
    terms = World(has_program=False).terms(**ROOMY)
    authority = Authority.create_at(client, await funded(client, "authority"), terms)
    at, crank = authority.at, Crank(client, authority.at, authority.key)
    await authority.create_run(terms, SOL)
    peers = []
    for number in range(2):
        owner = Owner(client, at, await funded(client, "owner", number))
        session = key("session", number)
        index, sent = await owner.join_run(JoinOffer(session.pubkey(), 3, f"http://{number}", SOL))
        assert sent.is_complete
        assert sent.events[0].name == "ParticipantJoined"
        peers.append((owner, Session(client, at, session, index)))
    await crank.advance_phase(0)
    for owner, session in peers:
        await session.post_ready(0, vote(at, owner, 0, GENESIS_ROOT))
    await crank.advance_phase(0)
    for number, (owner, session) in enumerate(peers):
        advance = make.advance_phase(at, session.key.pubkey(), 0)
        root_vote = vote(at, owner, 0, GENESIS_ROOT)
        sent = await session.commit_payload(0, bytes([7] * 32), root_vote, [advance] * number)
    assert [event.name for event in sent.events] == ["PayloadCommitted", "PhaseStarted"]
    await asyncio.gather(*(session.attest(0, 0b11, bytes(64)) for _owner, session in peers))
    sent = await crank.close_round((await client.snapshot(at.run)).run, GENESIS_ROOT)
    assert sent.events[0].name == "RoundClosed"
    seen = await client.snapshot(at.run)
    assert seen.run.phase == Phase.COMMIT
    assert seen.run.round == 1
    assert seen.previous_round.included == 0b11
    assert seen.round.members == 0b11
    assert len(await client.find_participants(at.run)) == 2
    with pytest.raises(ProgramRefusedError) as caught:
        await peers[0][1].commit_payload(0, bytes(32), bytes(32))
    assert caught.value.instruction == 0
    assert caught.value.logs


async def test_refusals_of_a_real_validator(client):
    alice, poor = await funded(client, "alice"), key("poor")
    keys = {"from_pubkey": poor.pubkey(), "to_pubkey": alice.pubkey()}
    with pytest.raises(InsufficientFundsError, match=str(poor.pubkey())):
        await client.send([transfer(TransferParams(**keys, lamports=1))], [poor])
    keys = {"from_pubkey": alice.pubkey(), "to_pubkey": poor.pubkey()}
    with pytest.raises(InsufficientFundsError, match="needed"):
        await client.send([transfer(TransferParams(**keys, lamports=10**15))], [alice])


async def test_no_program_on_a_real_validator(validator):
    options = ValidatorOptions(binary=validator_binary(), slot_milliseconds=50)
    with ValidatorLauncher(options) as bare:
        bare.start({})
        async with HttpRpc(bare.rpc_url) as rpc:
            client = CoordinatorClient(rpc, policy=SendPolicy(poll_seconds=0.02))
            terms = World(has_program=False).terms()
            alice = await funded(client, "alice")
            authority = Authority.create_at(client, alice, terms)
            with pytest.raises(ProgramMissingError):
                await client.check_program()
            with pytest.raises(ProgramMissingError):
                await authority.create_run(terms)


async def test_its_websocket_port_is_recognised_as_one(validator):
    """It closes the connection without a word, unlike the embedded chain."""
    async with HttpRpc(validator.ws_url.replace("ws:", "http:")) as rpc:
        with pytest.raises(RpcUnreachableError, match="a websocket") as caught:
            await rpc.get_slot()
    assert f"--rpc {validator.rpc_url}" in caught.value.next_step
