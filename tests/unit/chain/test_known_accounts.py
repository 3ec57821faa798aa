"""Answers that contradict what was seen before, and those that do not."""

import pytest
from solders.pubkey import Pubkey
from solders.system_program import ID as SYSTEM_PROGRAM

from troth_coordinator.chain.known_accounts import KnownAccounts
from troth_coordinator.chain.rpc import Account

AT = [Pubkey.new_unique()]
PROGRAM = Pubkey.new_unique()
MADE = Account(5, PROGRAM, bytes(9))
DUST = Account(890_880, SYSTEM_PROGRAM, b"")


@pytest.mark.parametrize(
    ("before", "after", "complains", "is_lost"),
    [
        (MADE, MADE, False, False),
        (MADE, Account(5, Pubkey.new_unique(), bytes(9)), True, False),
        (MADE, Account(5, PROGRAM, bytes(8)), True, False),
        (MADE, None, False, True),
        (MADE, DUST, False, True),
        (DUST, MADE, False, False),
        (DUST, DUST, False, False),
        (DUST, None, False, True),
        (None, DUST, False, False),
        (None, MADE, False, False),
    ],
    ids=[
        "as before",
        "of another program",
        "shorter",
        "closed",
        "closed, then paid to by anybody",
        "paid to by anybody, then made",
        "a wallet",
        "an empty wallet",
        "paid to by anybody",
        "made",
    ],
)
def test_answers_after_answers(before, after, complains, is_lost):
    known = KnownAccounts()
    known.remember(AT, [before])
    assert bool(known.complaint(AT, [after])) == complains
    assert bool(known.loss(AT, [after])) == is_lost
