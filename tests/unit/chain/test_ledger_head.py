"""The first line of a ledger, which may come from a stranger."""

import json

import pytest
from solders.pubkey import Pubkey

from troth_coordinator.ledger.errors import LedgerFileError
from troth_coordinator.ledger.file import LedgerHead

KEY = str(Pubkey.default())
GOOD = "a" * 64


def line_of(genesis):
    found = {"troth_ledger": 1, "program": KEY, "run": KEY, "genesis_hash": genesis}
    return json.dumps(found).encode()


def test_a_head_has_the_hash_of_its_network():
    assert LedgerHead.of_line(line_of(GOOD), "x") == LedgerHead(KEY, KEY, GOOD)


@pytest.mark.parametrize(
    "genesis", [f"nonsense {GOOD}", f"{GOOD}\n", "a" * 63, "a" * 65, "ab" * 40, "A" * 64, ""]
)
def test_a_hash_of_another_form_is_refused(genesis):
    """A longer one was taken and ended its reader later, with no word of the file."""
    with pytest.raises(LedgerFileError):
        LedgerHead.of_line(line_of(genesis), "x")
