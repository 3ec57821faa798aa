"""The coordinator program on all three chains, through the chain client: same life, same events."""

import asyncio
import hashlib

import pytest
from solders.keypair import Keypair
from support.localnet import SOL
from support.validator import validator_binary

from troth_coordinator import artifacts
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import ProgramMissingError, ProgramRefusedError
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.instructions import RunTerms
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.operations import Authority, Crank, JoinOffer, Owner
from troth_coordinator.chain.sender import SendPolicy
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.phase import Phase
from troth_localnet.direct import DirectRpc
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.svm import Chain
from troth_localnet.validator import ValidatorLauncher, ValidatorOptions

REWARD = 1_000_000


@pytest.fixture
def programs():
    return {program_layout().program_id: artifacts.read_bytes(artifacts.PROGRAM_V0)}


async def one_joins(client: CoordinatorClient) -> list[str]:
    """Create and fund a run, join it once; return what the program said happened."""
    await client.check_program()
    authority, owner, session = Keypair(), Keypair(), Keypair()
    for key in (authority, owner):
        await client.airdrop(key.pubkey(), 20 * SOL)
    params = ChainParams.localnet(
        max_rounds=10,
        reward_per_payload=REWARD,
        min_stake_lamports=100 * REWARD,
        sequences_per_payload=2,
    )
    terms = RunTerms(
        run_id=bytes(range(32)),
        config_hash=hashlib.sha256(b"config").digest(),
        manifest_hash=hashlib.sha256(b"manifest").digest(),
        genesis_root=hashlib.sha256(b"weights").digest(),
        council=authority.pubkey(),
        params=params.to_view(),
    )
    run = Authority.create_at(client, authority, terms)
    sent = await run.create_run(terms, fund_lamports=SOL)
    index, joined = await Owner(client, run.at, owner).join_run(
        JoinOffer(session.pubkey(), 3, "http://a.b", SOL)
    )
    assert index == 0
    with pytest.raises(ProgramRefusedError) as caught:
        await Crank(client, run.at, authority).advance_phase(0)
    assert caught.value.name == "NothingDue"
    view = await client.read_run(run.at.run)
    assert view.phase == Phase.WAITING_FOR_MEMBERS
    assert view.total_stake == 100 * REWARD
    return [type(event).__name__ for one in (*sent, joined) for event in one.events]


async def on_a_chain_in_process(programs) -> list[str]:
    chain = Chain()
    for program_id, image in programs.items():
        chain.add_program(program_id, image)

    async def step(_seconds: float) -> None:
        chain.advance()

    rpc = DirectRpc(chain)
    return await one_joins(CoordinatorClient(rpc, policy=SendPolicy(poll_seconds=0), sleeper=step))


async def test_a_run_can_be_created_and_joined_in_process(programs):
    events = await on_a_chain_in_process(programs)
    assert events == [
        "RunCreated",
        "RosterInitialized",
        *["RoundInitialized"] * 16,
        "RunFunded",
        "ParticipantJoined",
    ]


async def test_the_embedded_chain_says_the_same(programs):
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=20)) as launcher:
        launcher.start(programs)
        client = CoordinatorClient(HttpRpc(launcher.rpc_url))
        assert await one_joins(client) == await on_a_chain_in_process(programs)


@pytest.mark.validator
async def test_the_validator_says_the_same(programs):
    binary = validator_binary()
    with ValidatorLauncher(ValidatorOptions(binary=binary, slot_milliseconds=50)) as launcher:
        launcher.start(programs)
        client = CoordinatorClient(HttpRpc(launcher.rpc_url))
        assert await one_joins(client) == await on_a_chain_in_process(programs)


async def test_a_chain_without_the_program_is_told_apart():
    with pytest.raises(ProgramMissingError):
        await CoordinatorClient(DirectRpc(Chain())).check_program()


def test_images_are_the_same_from_bytes_and_from_a_file(programs):
    """The launcher takes both; the child reads either from a file."""
    (program_id,) = programs
    for image in (programs[program_id], artifacts.path(artifacts.PROGRAM_V0)):
        with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=None)) as launcher:
            launcher.start({program_id: image})
            account = asyncio.run(read(launcher.rpc_url, program_id))
            assert account.executable


async def read(url, address):
    _, (account,) = await HttpRpc(url).get_accounts([address])
    return account
