"""A stranger makes a transaction about a run of his own name the accounts of another run.

He convicts a sybil in his run, and adds an instruction that names the other run's vault and Audit
address. RPC nodes list that transaction there. Nobody was ever judged in the other run.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.system_program import TransferParams, transfer
from support.program.cases import CaseDriver
from support.program.chain import ChainDriver
from support.program.ledger_files import client_of
from support.program.rounds import SOL, key, params_of, root_of

from troth_audit.history import read_case
from troth_audit.newest import NewestEvents
from troth_audit.slashes import read_slashes
from troth_audit.transactions import read_transactions
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient

T = TypeVar("T")
KEY = (0, 3, 0)
NEWEST = 100


def another_run(chain: ChainDriver) -> RunAddresses:
    """A run of somebody else on the same chain, which waits for members."""
    boss = key("somebody else")
    chain.chain.airdrop(boss.pubkey(), 100 * SOL)
    at = RunAddresses.create(boss.pubkey(), b"A" * 32, params_of().ring, chain.at.program)
    terms = make.RunTerms(
        b"A" * 32, b"c" * 32, b"m" * 32, root_of(0), key("council").pubkey(), params_of()
    )
    # The driver folds what it sends itself, which is about its own run.
    chain.chain.send(chain._signed(make.create_run(at, boss.pubkey(), terms), [boss]))
    return at


def naming(at: RunAddresses, payer: Instruction) -> Instruction:
    """The same instruction, which also names the vault and an Audit address of a run."""
    named = [AccountMeta(one, False, False) for one in (at.vault, at.audit(*KEY))]
    return Instruction(payer.program_id, bytes(payer.data), [*payer.accounts, *named])


@pytest.fixture(scope="module")
def own() -> CaseDriver:
    """The stranger's run, before anybody is convicted in it."""
    return CaseDriver.started()


@pytest.fixture(scope="module")
def victim(own: CaseDriver) -> RunAddresses:
    """The run whose accounts the transaction of the conviction names."""
    at = another_run(own)
    cranker = own.cranker.pubkey()
    nothing = transfer(TransferParams(from_pubkey=cranker, to_pubkey=cranker, lamports=0))
    settle = own.settle_case_instruction(own.voted(0, 3), [3])
    own.send([settle, naming(at, nothing)], own.cranker)
    return at


def asked(driver: CaseDriver, ask: Callable[[CoordinatorClient], Awaitable[T]]) -> T:
    async def work() -> T:
        return await ask(client_of(driver))

    return asyncio.run(work())


def test_the_stranger_s_own_run_shows_the_conviction(own: CaseDriver, victim: RunAddresses):
    slashes = asked(own, lambda client: read_slashes(client, own.at))
    assert [case.key for case in slashes.cases] == [KEY]
    case, _events = asked(own, lambda client: read_case(client, own.at, KEY))
    assert case is not None
    assert case.is_conviction


def test_the_other_run_shows_no_slash(own: CaseDriver, victim: RunAddresses):
    slashes = asked(own, lambda client: read_slashes(client, victim))
    assert slashes.cases == ()
    assert slashes.fines == ()
    assert [event.name for event in slashes.events] == ["RunCreated"]


def test_the_other_run_shows_no_case(own: CaseDriver, victim: RunAddresses):
    case, events = asked(own, lambda client: read_case(client, victim, KEY))
    assert case is None
    assert events == []


def test_who_watches_the_other_run_s_vault_sees_no_slash(own: CaseDriver, victim: RunAddresses):
    def watch(client: CoordinatorClient) -> Awaitable[tuple[object, ...]]:
        return NewestEvents(client, victim.vault, victim.run, NEWEST).read()

    assert [event.name for event in asked(own, watch)] == ["RunCreated"]


def test_the_transaction_is_listed_without_an_event(own: CaseDriver, victim: RunAddresses):
    address = victim.audit(*KEY)
    found = asked(own, lambda client: read_transactions(client, address, victim.run, NEWEST))
    assert [line.events for line in found.lines] == [()]
