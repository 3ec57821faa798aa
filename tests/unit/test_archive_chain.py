"""The Run account in an archive: what is written is what an audit reads."""

import json

import pytest
from solders.pubkey import Pubkey

from troth_client.archive.folder import CHAIN_FILE, ArchiveFolder, SeenAccount
from troth_coordinator.chain.rpc import Account

ACCOUNT = Account(2**63, Pubkey(bytes(range(32))), bytes(range(256)))
SLOT = 2**64 - 1


def test_an_account_is_read_as_it_was_written(tmp_path):
    assert SeenAccount.read(tmp_path) is None
    ArchiveFolder(tmp_path).write_chain(SLOT, ACCOUNT)
    found = SeenAccount.read(tmp_path)
    assert found.slot == SLOT
    assert found.account() == ACCOUNT
    assert set(json.loads((tmp_path / CHAIN_FILE).read_text())) == {
        "slot",
        "owner",
        "lamports",
        "data",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"slot": -1},
        {"slot": "7"},
        {"lamports": 2**64},
        {"data": "%"},
        {"owner": "0"},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_no_account_is_a_value_error(tmp_path, change):
    ArchiveFolder(tmp_path).write_chain(SLOT, ACCOUNT)
    told = json.loads((tmp_path / CHAIN_FILE).read_text()) | change
    (tmp_path / CHAIN_FILE).write_text(json.dumps(told))
    with pytest.raises(ValueError):
        SeenAccount.read(tmp_path).account()


def test_nested_brackets_are_a_value_error(tmp_path):
    (tmp_path / CHAIN_FILE).write_bytes(b"[" * 60_000)
    with pytest.raises(ValueError, match="JSON"):
        SeenAccount.read(tmp_path)
