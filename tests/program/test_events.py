"""Events on the chain: nobody hides one, nobody forges one, and any caller's are found.

The ledger of tests/support/program/chain.py rebuilds the chain hash from the inner calls of every
transaction. So in all tests of the program, a missing event fails at once.
"""

import struct
from pathlib import Path
from typing import Any

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from support.legacy_idl import discriminator
from support.program.chain import ChainDriver
from support.program.relay import deploy
from support.program.rounds import RoundDriver, key

from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.addresses import event_authority_address
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.events import EVENT_TAG, EventReader
from troth_localnet.direct import record_of
from troth_localnet.transaction_json import inner_calls_json

MEMO = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
STRANGER = key("program of a stranger").pubkey()
NUM_MEMOS = 45
"""As many empty ones as fit into a transaction with a close."""


class WithMemos(RoundDriver):
    has_token_programs = True


@pytest.fixture
def driver() -> RoundDriver:
    return RoundDriver(4)


def forged(driver: ChainDriver, sequence: int) -> bytes:
    """A call that would say: the pool got a million lamports."""
    run = bytes(driver.at.run)
    body = run + struct.pack("<QQ", sequence, 7) + run + struct.pack("<QQ", 10**6, 10**6)
    event = discriminator("event", "RunFunded") + body
    return EVENT_TAG + struct.pack("<H", len(event)) + event


def event_call(driver: ChainDriver, program: Pubkey, *, signs: bool = False) -> Instruction:
    meta = AccountMeta(event_authority_address(), is_signer=signs, is_writable=False)
    return Instruction(program, forged(driver, driver.run.event_sequence), [meta])


def test_memos_in_front_of_a_close_hide_no_event():
    """The attacker cranks a close behind empty memos.

    Their log lines fill what a node keeps of the log, so that not one line of the close is in
    it. The close and its events are there all the same.
    """
    driver = WithMemos(12)
    driver.start()
    driver.commit_all()
    driver.attest_all()
    memos = [Instruction(MEMO, b"", []) for _ in range(NUM_MEMOS)]
    landed = driver.send([*memos, driver.close_instruction()], driver.cranker)
    assert landed.names() == ["RoundClosed", "RoundSettled", "RoundOpened"]
    newest = next(driver.chain.history.newest_first(driver.at.run))
    assert "Log truncated" in newest.outcome.logs
    assert not any(line.startswith("Program data: ") for line in newest.outcome.logs)
    assert driver.run.event_sequence == driver.ledger.next_sequence


def test_nobody_signs_for_the_event_authority(driver):
    """A stranger sends the event call itself, as an instruction and by a program of its own."""
    call = event_call(driver, driver.at.program)
    assert driver.refused(call, driver.cranker) == "Custom(2002)"  # ConstraintSigner
    relayed = deploy(driver.chain, STRANGER, [call])
    assert driver.refused(relayed, driver.cranker) == "Custom(2002)"


def test_a_program_that_claims_the_signature_is_stopped_by_the_runtime(driver):
    call = event_call(driver, driver.at.program, signs=True)
    relayed = deploy(driver.chain, STRANGER, [call])
    unsigned = [AccountMeta(meta.pubkey, False, False) for meta in relayed.accounts]
    wanted = Instruction(STRANGER, b"", unsigned)
    assert driver.refused(wanted, driver.cranker) == "PrivilegeEscalation"


def test_an_event_call_of_another_program_is_not_ours(driver):
    """Two programs of a stranger: one calls the other with our tag and our event authority."""
    accepts = key("accepts anything").pubkey()
    deploy(driver.chain, accepts, [])
    relayed = deploy(driver.chain, STRANGER, [event_call(driver, accepts)])
    assert driver.send(relayed, driver.cranker).events == ()
    newest = next(driver.chain.history.newest_first(STRANGER))
    (call,) = record_of(newest).inner_calls
    assert call.data == forged(driver, driver.run.event_sequence)


def test_a_wrapper_that_calls_twice_shows_two_events(driver):
    """Order is that of execution, over instructions and calls of any depth."""
    funder = driver.authority
    fund = [make.fund_run(driver.at, funder.pubkey(), lamports) for lamports in (1, 2, 3, 4)]
    relayed = deploy(driver.chain, STRANGER, fund[1:3])
    sequence = driver.run.event_sequence
    landed = driver.send([fund[0], relayed, fund[3]], funder)
    assert landed.names() == ["RunFunded"] * 4
    assert [event.lamports for event in landed.events] == [1, 2, 3, 4]
    assert [event.sequence for event in landed.events] == [*range(sequence, sequence + 4)]


def test_a_failed_transaction_has_no_events(driver):
    """The first instruction showed its event before the second one was refused."""
    funder = driver.authority
    built = [make.fund_run(driver.at, funder.pubkey(), lamports) for lamports in (1, 0)]
    raw = driver._signed(built, [funder])
    signature = driver.chain.send(raw, skip_preflight=True)
    record = record_of(driver.chain.history.get(signature))
    assert record.failure is not None
    assert EventReader(program_codec()).read(record).events == ()


def test_an_instruction_that_changes_nothing_shows_nothing(driver):
    """The roster has its full size already: no event, and no call."""
    again = make.init_roster(driver.at, driver.authority.pubkey())
    assert driver.send(again, driver.authority).events == ()
    newest = next(driver.chain.history.newest_first(driver.at.roster))
    assert record_of(newest).inner_calls == ()


@pytest.mark.parametrize("name", ["event_authority", "program"])
def test_the_accounts_of_the_event_call_are_checked_by_name(driver, name):
    made = make.fund_run(driver.at, driver.authority.pubkey(), 1)
    names = [slot.name for slot in program_codec().instructions["fund_run"].accounts]
    metas = list(made.accounts)
    metas[names.index(name)] = AccountMeta(STRANGER, is_signer=False, is_writable=False)
    wrong = Instruction(made.program_id, bytes(made.data), metas)
    expected = {"event_authority": "WrongEventAuthority", "program": "WrongProgram"}[name]
    assert driver.refused(wrong, driver.authority) == expected


def test_the_python_of_the_guide_reads_the_same_events(driver):
    """Its input is what getTransaction says, resolved by nothing but the guide's own words."""
    page = (Path(__file__).parents[2] / "docs/guide/read-events.md").read_text()
    scope: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], scope)
    driver.start()
    newest = next(driver.chain.history.newest_first(driver.at.run))
    inner = inner_calls_json(newest.outcome, newest.keys, parsed=False)
    found = scope["read_events"](inner, list(newest.keys.all), driver.at.program)
    events = EventReader(program_codec()).read(record_of(newest)).events
    assert [data[8:] for data in found] == [event.body for event in events]
    names = program_codec().event_names
    assert [names[data[:8]] for data in found] == [event.name for event in events]
    assert len(found) > 1


def test_every_instruction_takes_the_accounts_of_the_event_call():
    for name, spec in program_codec().instructions.items():
        *_, authority, program = spec.accounts
        assert authority.name == "event_authority", name
        assert program.name == "program", name
        assert authority.address == event_authority_address(), name
        assert program.address == program_codec().program_id, name
