"""Accounts and instructions of the upgradeable loader, byte for byte."""

import struct

import pytest
from solders.hash import Hash
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_coordinator.chain import loader
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import TransactionTooLargeError
from troth_coordinator.chain.rent import exempt_lamports, lamports_per_byte
from troth_coordinator.chain.rpc import Account
from troth_coordinator.chain.transactions import ComputeBudget, assemble

KEY, PROGRAM = Keypair.from_seed(b"k" * 32), Keypair.from_seed(b"p" * 32).pubkey()
AUTHORITY = KEY.pubkey()
BLOCKHASH = (Hash.from_bytes(b"h" * 32), 150)


def account(data, owner=loader.UPGRADEABLE):
    return Account(1, owner, data)


def signed(num_bytes):
    instruction = loader.write(PROGRAM, AUTHORITY, 2**31, bytes(num_bytes))
    return assemble([instruction], [KEY], BLOCKHASH, ComputeBudget.packaged(program_codec()))


def test_a_chunk_is_the_most_that_a_transaction_carries():
    assert len(signed(loader.CHUNK_BYTES).raw) == 1232
    with pytest.raises(TransactionTooLargeError):
        signed(loader.CHUNK_BYTES + 1)


@pytest.mark.parametrize(
    ("option", "authority"), [(b"\1" + bytes(AUTHORITY), AUTHORITY), (bytes(33), None)]
)
def test_accounts_are_read_with_and_without_authority(option, authority):
    found = loader.read_buffer(account(b"\1\0\0\0" + option + b"code"))
    assert found == loader.Buffer(authority, b"code")
    slot = (9).to_bytes(8, "little")
    found = loader.read_program_data(account(b"\3\0\0\0" + slot + option + b"code"))
    assert found == loader.ProgramData(9, authority, b"code")


def test_a_program_names_the_account_of_its_code():
    where = loader.data_address(PROGRAM)
    assert loader.read_data_address(account(b"\2\0\0\0" + bytes(where))) == where


@pytest.mark.parametrize(
    "read", [loader.read_buffer, loader.read_data_address, loader.read_program_data]
)
@pytest.mark.parametrize("kind", range(6))
def test_other_accounts_and_shorter_ones_are_told_apart(read, kind):
    own = {loader.read_buffer: 1, loader.read_data_address: 2, loader.read_program_data: 3}[read]
    whole = kind.to_bytes(4, "little") + bytes(60)
    assert (read(account(whole)) is not None) == (kind == own)
    assert read(account(whole, owner=Pubkey.default())) is None
    assert read(account(whole[:35])) is None
    assert read(account(b"")) is None


def test_a_buffer_has_one_address_for_each_authority_and_program():
    other = Keypair.from_seed(b"o" * 32).pubkey()
    found = {loader.buffer_address(a, p) for a in (AUTHORITY, other) for p in (PROGRAM, other)}
    assert len(found) == 4
    assert len(loader.buffer_seed(PROGRAM)) == 32, "a seed has at most 32 bytes"


def test_instructions_begin_with_the_number_of_their_variant():
    made = [
        loader.create_buffer(AUTHORITY, PROGRAM, 10, 7)[-1],
        loader.write(PROGRAM, AUTHORITY, 5, b"code"),
        loader.deploy(AUTHORITY, PROGRAM, 99, 7)[-1],
        loader.upgrade(AUTHORITY, PROGRAM),
        loader.make_final(AUTHORITY, PROGRAM),
        loader.close_buffer(PROGRAM, AUTHORITY),
        loader.extend(AUTHORITY, PROGRAM, 10_240),
    ]
    assert [struct.unpack_from("<I", one.data)[0] for one in made] == list(range(7))
    assert {one.program_id for one in made} == {loader.UPGRADEABLE}
    assert bytes(made[1].data)[4:] == struct.pack("<IQ", 5, 4) + b"code"
    assert bytes(made[2].data)[4:] == struct.pack("<Q", 99)
    assert bytes(made[6].data)[4:] == struct.pack("<I", 10_240)


def test_nothing_is_transferred_to_an_account_that_lacks_nothing():
    assert len(loader.create_buffer(AUTHORITY, PROGRAM, 10, 7)) == 4
    assert len(loader.create_buffer(AUTHORITY, PROGRAM, 10, 0)) == 3


def test_a_feature_is_active_once_its_account_says_a_slot():
    assert loader.is_active(account(b"\1" + bytes(8), owner=loader.FEATURES))
    assert not loader.is_active(account(bytes(9), owner=loader.FEATURES))
    assert not loader.is_active(account(b"\1" + bytes(8)))
    assert not loader.is_active(None)


@pytest.mark.parametrize(("lamports", "years"), [(3_480, 2.0), (6_960, 1.0)])
def test_rent_is_read_from_what_the_cluster_says(lamports, years):
    per_byte = lamports_per_byte(struct.pack("<QdB", lamports, years, 50))
    assert per_byte == 6_960
    assert exempt_lamports(0, per_byte) == 890_880
    with pytest.raises(ValueError, match="3 bytes"):
        lamports_per_byte(b"abc")
