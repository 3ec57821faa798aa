"""Addresses: the seeds of the specification, spelled out by hand."""

import pytest
from solders.pubkey import Pubkey

from troth_coordinator.chain import addresses
from troth_coordinator.chain.errors import ChainError
from troth_coordinator.chain.layouts import program_layout

PROGRAM = program_layout().program_id
RUN = Pubkey.from_bytes(bytes(range(32)))
OWNER = Pubkey.from_bytes(bytes(range(1, 33)))


def derived(*seeds, program=PROGRAM):
    return Pubkey.find_program_address(list(seeds), program)[0]


def test_every_address():
    run = bytes(RUN)
    assert addresses.run_address(OWNER, b"i" * 32) == derived(b"run", bytes(OWNER), b"i" * 32)
    assert addresses.roster_address(RUN) == derived(b"roster", run)
    assert addresses.vault_address(RUN) == derived(b"vault", run)
    assert addresses.participant_address(RUN, OWNER) == derived(b"participant", run, bytes(OWNER))
    assert addresses.round_position_address(RUN, 258) == derived(b"round", run, b"\2\1")
    assert addresses.round_address(RUN, 35, 16) == derived(b"round", run, b"\3\0")
    assert addresses.checkpoint_address(RUN, 35) == derived(b"checkpoint", run, b"\x23" + bytes(7))


def test_the_addresses_of_one_run():
    at = addresses.RunAddresses.create(OWNER, b"i" * 32, 16)
    assert at.run == addresses.run_address(OWNER, b"i" * 32)
    assert at.program == PROGRAM
    assert at.roster == addresses.roster_address(at.run)
    assert at.vault == addresses.vault_address(at.run)
    assert at.round(35) == at.round(3) == addresses.round_position_address(at.run, 3)
    assert at.participant(OWNER) == addresses.participant_address(at.run, OWNER)
    assert at.checkpoint(3) == addresses.checkpoint_address(at.run, 3)


def test_another_program_has_other_addresses():
    other = addresses.RunAddresses.create(OWNER, b"i" * 32, 16, OWNER)
    assert other.run == derived(b"run", bytes(OWNER), b"i" * 32, program=OWNER)
    assert other.vault == derived(b"vault", bytes(other.run), program=OWNER)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: addresses.run_address(OWNER, b"short"),
            "run id: expected 32 bytes, found 5 bytes",
        ),
        (lambda: addresses.round_position_address(RUN, 1 << 16), "ring position"),
        (lambda: addresses.round_position_address(RUN, -1), "ring position"),
        (lambda: addresses.round_address(RUN, 1, 0), "ring: expected at least 1"),
        (lambda: addresses.checkpoint_address(RUN, 1 << 64), "round: expected 0 to"),
        (lambda: addresses.checkpoint_address(RUN, -1), "round"),
    ],
)
def test_values_that_have_no_address(call, text):
    with pytest.raises(ChainError) as caught:
        call()
    assert text in str(caught.value)
