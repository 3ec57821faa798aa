"""From instructions to signed bytes: limits, fees, sizes, signers."""

import json

import pytest
from solders.compute_budget import ID as COMPUTE_BUDGET
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer
from solders.transaction import Transaction

from troth_coordinator import artifacts
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import (
    ArtifactError,
    MissingSignerError,
    TransactionTooLargeError,
)
from troth_coordinator.chain.transactions import (
    BUILTIN_UNITS,
    MAX_COMPUTE_UNITS,
    UNMEASURED_UNITS,
    ComputeBudget,
    assemble,
)

PAYER, OTHER = Keypair.from_seed(b"p" * 32), Keypair.from_seed(b"o" * 32)
BLOCKHASH = (Hash.from_bytes(b"h" * 32), 150)
PROGRAM = program_codec().program_id
HEAD = program_codec().instructions["advance_phase"].discriminator
BUDGET = ComputeBudget(PROGRAM, {HEAD: 12_000})
OVERHEAD = 2 * BUILTIN_UNITS


def advance(*signers, data=HEAD):
    return Instruction(PROGRAM, data, [AccountMeta(key.pubkey(), True, False) for key in signers])


def pay():
    keys = {"from_pubkey": PAYER.pubkey(), "to_pubkey": OTHER.pubkey()}
    return transfer(TransferParams(**keys, lamports=1))


def decoded(signed):
    return Transaction.from_bytes(signed.raw)


def budget_instructions(signed):
    message = decoded(signed).message
    keys = message.account_keys
    return [
        bytes(one.data)
        for one in message.instructions
        if keys[one.program_id_index] == COMPUTE_BUDGET
    ]


def test_the_first_signer_pays_and_all_sign():
    signed = assemble([advance(OTHER)], [PAYER, OTHER], BLOCKHASH, BUDGET)
    transaction = decoded(signed)
    transaction.verify()
    assert transaction.message.account_keys[0] == PAYER.pubkey()
    assert signed.signature == transaction.signatures[0]
    assert signed.num_signatures == 2
    assert signed.last_valid_height == 150
    assert signed.num_added == 1


def test_a_key_given_twice_or_not_needed_is_no_error():
    signed = assemble([pay()], [PAYER, PAYER, OTHER], BLOCKHASH, BUDGET)
    assert signed.num_signatures == 1


@pytest.mark.parametrize("signers", [[], [PAYER]])
def test_a_missing_signer_is_named(signers):
    with pytest.raises(MissingSignerError) as caught:
        assemble([advance(OTHER)], signers, BLOCKHASH, BUDGET)
    assert (str(OTHER.pubkey()) if signers else "fee payer") in str(caught.value)


def test_limits():
    unknown = advance(PAYER, data=b"whatever")
    foreign = Instruction(Pubkey.default(), b"", [])
    assert BUDGET.limit([advance(PAYER)]) == OVERHEAD + 12_000
    assert BUDGET.limit([advance(PAYER), advance(PAYER)]) == OVERHEAD + 24_000
    assert BUDGET.limit([pay()]) == OVERHEAD + BUILTIN_UNITS
    assert BUDGET.limit([foreign]) == OVERHEAD + BUILTIN_UNITS
    assert BUDGET.limit([unknown]) == OVERHEAD + UNMEASURED_UNITS
    assert BUDGET.limit([unknown] * 9) < MAX_COMPUTE_UNITS
    signed = assemble([advance(PAYER)], [PAYER], BLOCKHASH, BUDGET, spare_units=5)
    assert budget_instructions(signed) == [b"\2" + (OVERHEAD + 12_005).to_bytes(4, "little")]


def test_a_priority_fee():
    budget = ComputeBudget(PROGRAM, {}, micro_lamports_per_unit=77)
    signed = assemble([pay()], [PAYER], BLOCKHASH, budget)
    assert budget_instructions(signed)[1] == b"\3" + (77).to_bytes(8, "little")
    assert signed.num_added == 2


def test_spare_units_tell_equal_transactions_apart():
    first = assemble([pay()], [PAYER], BLOCKHASH, BUDGET, spare_units=1)
    again = assemble([pay()], [PAYER], BLOCKHASH, BUDGET, spare_units=1)
    second = assemble([pay()], [PAYER], BLOCKHASH, BUDGET, spare_units=2)
    assert first.signature == again.signature != second.signature


def test_size_limit_to_the_byte():
    def of(num_bytes):
        return assemble([advance(data=bytes(num_bytes))], [PAYER], BLOCKHASH, BUDGET)

    room = 1232 - len(of(0).raw)
    fits = next(number for number in range(room, room - 5, -1) if len_or_none(of, number))
    assert len(of(fits).raw) == 1232
    with pytest.raises(TransactionTooLargeError, match="at most 1232 bytes, found 1233 bytes"):
        of(fits + 1)


def len_or_none(build, number):
    try:
        return len(build(number).raw)
    except TransactionTooLargeError:
        return None


def packaged(monkeypatch, rows):
    text = json.dumps({"instructions": rows}).encode()
    monkeypatch.setattr(artifacts, "exists", lambda name: True)
    monkeypatch.setattr(artifacts, "read_bytes", lambda name: text)
    return ComputeBudget.packaged(program_codec())


def test_limits_from_the_table(monkeypatch):
    budget = packaged(monkeypatch, {"advance_phase": {"compute_units": 10_000, "other": "x"}})
    assert budget.units == {HEAD: 20_000}


def test_a_run_without_a_table(monkeypatch):
    monkeypatch.setattr(artifacts, "exists", lambda name: False)
    assert ComputeBudget.packaged(program_codec()).units == {}


def test_the_packaged_table_covers_every_instruction():
    units = ComputeBudget.packaged(program_codec()).units
    assert set(units) == set(program_codec().instruction_names)


@pytest.mark.parametrize(
    "rows",
    [
        {"advance_phase": 5},
        {"advance_phase": {}},
        {"advance_phase": {"compute_units": "5"}},
        {"nonsense": {"compute_units": 5}},
    ],
)
def test_a_bad_table_is_refused(monkeypatch, rows):
    with pytest.raises(ArtifactError, match=r"compute_units\.json"):
        packaged(monkeypatch, rows)
