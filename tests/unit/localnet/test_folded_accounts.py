"""Accounts as JSON: what many readers ask for is folded once."""

from solders.account import Account
from solders.pubkey import Pubkey

from troth_coordinator.chain.account_json import ENCODING, unfold
from troth_localnet.account_json import account_json
from troth_localnet.methods.params import AccountConfig

FOLDED = AccountConfig(encoding=ENCODING)


def folded(data: bytes) -> str:
    return account_json(Account(7, data, Pubkey.default()), FOLDED)["data"][0]


def test_equal_accounts_are_folded_once():
    assert folded(bytes(1_000)) is folded(bytes(1_000))


def test_accounts_that_differ_in_one_byte_are_told_apart():
    for data in (bytes(1_000), bytes(999) + b"x"):
        assert unfold(folded(data), ENCODING, 1_000) == data
