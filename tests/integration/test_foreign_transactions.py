"""A stranger names a run in transactions of its own: no reader is blinded, no RPC node rests.

The program is the real one, and so are the sockets. Only the shape of some answers is that of
newer nodes than the embedded chain (tests/support/todays_node.py).
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.signature import Signature
from solders.system_program import TransferParams, transfer
from support.program import relay
from support.program.ledger_files import head_of, open_ledger
from support.program.rounds import SOL, RoundDriver, key
from support.todays_node import TodaysNode

from troth_audit.newest import NewestEvents
from troth_audit.transactions import read_transactions
from troth_client.archive.following import Following
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.failover import FailoverRpc
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import LedgerFile
from troth_coordinator.ledger.follow import Match, compare, follow

SINK, PROGRAM = key("accepts anything").pubkey(), key("program of a stranger").pubkey()
LDDW, EXIT = 0x18, 0x95


@pytest.fixture
def driver():
    """A run with one round behind it, and a stranger with money."""
    made = RoundDriver(4, max_rounds=12, checkpoint_every=3, keep_rounds=2)
    made.start()
    made.play(1)
    made.chain.airdrop(key("stranger").pubkey(), 10 * SOL)
    return made


def land(driver: RoundDriver, instruction: Instruction) -> Signature:
    """Land a stranger's transaction, even one that fails."""
    raw = driver._signed(instruction, [key("stranger")])
    return driver.chain.send(raw, skip_preflight=True)


def naming(driver: RoundDriver, instruction: Instruction) -> Instruction:
    """The instruction with the run as one more account that it only reads."""
    run = AccountMeta(driver.at.run, is_signer=False, is_writable=False)
    return Instruction(instruction.program_id, instruction.data, [*instruction.accounts, run])


def pay_oneself(driver: RoundDriver) -> Instruction:
    stranger = key("stranger").pubkey()
    paid = TransferParams(from_pubkey=stranger, to_pubkey=stranger, lamports=0)
    return naming(driver, transfer(paid))


def refused_by_borsh(driver: RoundDriver) -> Instruction:
    """A call of a program that ends with ProgramError::BorshIoError."""
    made = relay.Program(functions={0: "entrypoint"})
    made.text += struct.pack("<BBhi", LDDW, 0, 0, 0) + struct.pack("<BBhi", 0, 0, 0, 15)
    made.text += struct.pack("<BBhi", EXIT, 0, 0, 0)
    driver.chain.add_program(PROGRAM, relay.image_v0.write(made))
    return naming(driver, Instruction(PROGRAM, b"", []))


async def match_of(rpc: FailoverRpc, ledger: LedgerFile, driver: RoundDriver) -> Match:
    await follow(CoordinatorClient(rpc), ledger)
    return compare(ledger.fold, driver.run).match


@contextmanager
def archive_of(rpc: FailoverRpc, driver: RoundDriver, path) -> Iterator[tuple[Following, list]]:
    """The part of an archive that looks at the chain, and the events that it has taken."""
    taken: list = []
    with LedgerFile(path, head_of(driver)) as ledger:
        client = CoordinatorClient(rpc)
        yield Following(client, ledger, EventList(), taken.append, taken.clear), taken


async def test_a_transaction_of_a_newer_version_blinds_nobody(driver, tmp_path):
    """For 5000 lamports every ledger, archive and auditor of the run was blind for ever."""
    async with TodaysNode(driver.chain) as node, FailoverRpc.over([node.url]) as rpc:
        with (
            open_ledger(driver, tmp_path / "own.jsonl") as ledger,
            archive_of(rpc, driver, tmp_path / "archive.jsonl") as (archive, taken),
        ):
            assert await match_of(rpc, ledger, driver) is Match.WHOLE
            await archive.look()
            before = len(taken)
            node.versions[str(land(driver, pay_oneself(driver)))] = 1
            driver.play(2)
            assert await match_of(rpc, ledger, driver) is Match.WHOLE
            await archive.look()
            assert len(taken) > before
            assert not archive.is_behind
        with open_ledger(driver, tmp_path / "fresh.jsonl") as fresh:
            assert await match_of(rpc, fresh, driver) is Match.WHOLE


async def test_a_close_inside_a_transaction_of_a_newer_version_is_read(driver, tmp_path):
    """Anybody may crank the close of a round, in a transaction of any version."""
    driver.commit_all()
    driver.attest_all()
    driver.close()
    closing = next(driver.chain.history.newest_first(driver.at.run)).signature
    driver.play(1)
    async with TodaysNode(driver.chain) as node, FailoverRpc.over([node.url]) as rpc:
        node.versions[str(closing)] = 1
        events = await CoordinatorClient(rpc).events_of(closing, driver.at.run)
        assert [event.name for event in events] == ["RoundClosed", "RoundSettled", "RoundOpened"]
        with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
            assert await match_of(rpc, ledger, driver) is Match.WHOLE


async def test_a_failure_of_a_newer_kind_is_passed_over_and_not_asked_for(driver, tmp_path):
    """It spoilt the whole page of the list, and the node that served the rounds was at rest."""
    async with TodaysNode(driver.chain) as node, FailoverRpc.over([node.url]) as rpc:
        signature = land(driver, refused_by_borsh(driver))
        driver.play(1)
        with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
            assert await match_of(rpc, ledger, driver) is Match.WHOLE
        client = CoordinatorClient(rpc)
        whole = await client.history(driver.at.run, driver.at.run)
        assert await NewestEvents(client, driver.at.run, driver.at.run, 10_000).read() == tuple(
            whole
        )
        assert node.asked_for(signature) == 0
        lines = (await read_transactions(client, driver.at.run, driver.at.run, 50)).lines
        (line,) = [line for line in lines if line.signature == str(signature)]
        assert line.has_failed
        assert line.events == ()
        assert node.asked_for(signature) == 0
        failed = await rpc.transaction(signature)
        assert failed.failure.reason == "BorshIoError"


@pytest.mark.parametrize(
    "shape", [{}, {"slot": 5}, {"message": "of a format to come"}], ids=["empty", "slot", "other"]
)
async def test_a_record_of_no_known_shape_blinds_nobody_and_rests_no_node(driver, tmp_path, shape):
    async with TodaysNode(driver.chain) as node, FailoverRpc.over([node.url]) as rpc:
        signature = land(driver, pay_oneself(driver))
        node.records[str(signature)] = lambda _result: shape
        driver.play(1)
        client = CoordinatorClient(rpc)
        with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
            for _look in range(5):
                assert await match_of(rpc, ledger, driver) is Match.WHOLE
                assert (await rpc.get_accounts([driver.at.run]))[0] == driver.chain.slot
        names = [event.name for event in await client.history(driver.at.run, driver.at.run)]
        assert names.count("RoundClosed") == 2
        newest = NewestEvents(client, driver.at.run, driver.at.run, 10_000)
        for _look in range(3):
            found = await newest.read()
        assert [event.name for event in found] == names
        assert node.asked_for(signature) > 0


def close_of(driver: RoundDriver) -> str:
    """The signature of the newest close."""
    driver.play(1)
    return str(next(driver.chain.history.newest_first(driver.at.run)).signature)


async def test_a_node_that_hides_an_event_as_unreadable_is_found_out(driver, tmp_path):
    hidden = close_of(driver)
    driver.play(1)
    async with TodaysNode(driver.chain) as node, FailoverRpc.over([node.url]) as rpc:
        node.records[hidden] = lambda _result: {}
        with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
            with pytest.raises(LedgerError):
                await match_of(rpc, ledger, driver)
            del node.records[hidden]
            assert await match_of(rpc, ledger, driver) is Match.WHOLE


async def test_a_node_that_hides_an_event_as_failed_is_found_out(driver, tmp_path):
    hidden = close_of(driver)
    driver.play(1)
    async with TodaysNode(driver.chain) as node, FailoverRpc.over([node.url]) as rpc:
        node.lists = lambda page: [
            {**one, "err": "BorshIoError"} if one["signature"] == hidden else one for one in page
        ]
        with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
            with pytest.raises(LedgerError):
                await match_of(rpc, ledger, driver)
            node.lists = None
            assert await match_of(rpc, ledger, driver) is Match.WHOLE


async def test_a_node_that_hides_a_commit_is_found_out_at_the_close(driver, tmp_path):
    """Commits carry no number of their own; the close of their round does."""
    first, *others = driver.trainers()
    driver.commit(first)
    hidden = str(next(driver.chain.history.newest_first(driver.at.run)).signature)
    driver.commit_all(others)
    async with TodaysNode(driver.chain) as node, FailoverRpc.over([node.url]) as rpc:
        node.records[hidden] = lambda _result: {}
        with open_ledger(driver, tmp_path / "ledger.jsonl") as ledger:
            assert await match_of(rpc, ledger, driver) is Match.WHOLE
            driver.attest_all()
            driver.close()
            with pytest.raises(LedgerError):
                await match_of(rpc, ledger, driver)


async def test_the_bytes_of_a_strangers_calls_are_never_decoded(driver):
    """Sixty-two calls of 10 kB each cost 5000 lamports, and took 2.6 s of every reader's time."""
    size, num = 1_000, 20  # fewer than the runtime allows: the embedded chain has to write them
    relay.deploy(driver.chain, SINK, [])
    calls = [Instruction(SINK, bytes([255]) * size, []) for _ in range(num)]
    start = relay.deploy(driver.chain, PROGRAM, calls)
    signature = land(driver, naming(driver, start))
    async with TodaysNode(driver.chain) as node, FailoverRpc.over([node.url]) as rpc:
        record, events = await CoordinatorClient(rpc).landed(signature, driver.at.run)
    assert events == ()
    assert [type(call.written) for call in record.inner_calls] == [str] * num
    assert {call.program for call in record.inner_calls} == {SINK}
