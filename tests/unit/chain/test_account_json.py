"""Accounts of foreign machines: whatever they say, little memory and one of our errors."""

import base64
import json
import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from solders.pubkey import Pubkey

from troth_coordinator.chain import account_json
from troth_coordinator.chain.account_json import ENCODING, AccountsText, unfold

LIMIT = 1 << 16


def folded(data: bytes) -> str:
    """Fold as nodes do: in pieces, without the length of the content."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return base64.b64encode(compressor.compress(data) + compressor.flush()).decode()


def reply(*accounts: object) -> str:
    return json.dumps({"result": {"context": {"slot": 5}, "value": list(accounts)}})


def account(content: bytes, encoding: str = ENCODING, **changes: object) -> dict[str, object]:
    text = folded(content) if encoding == ENCODING else base64.b64encode(content).decode()
    about = {"lamports": 7, "owner": str(Pubkey.default()), "executable": False}
    return about | {"data": [text, encoding]} | changes


@given(st.binary(max_size=2_000))
def test_what_is_folded_is_unfolded(data):
    assert unfold(folded(data), ENCODING, LIMIT) == data
    assert unfold(base64.b64encode(data).decode(), "base64", LIMIT) == data


def test_accounts_are_read_in_both_encodings():
    slot, found = AccountsText(reply(account(b"ab"), None, account(b"c", "base64"))).at_slot()
    assert slot == 5
    assert [one and one.data for one in found] == [b"ab", None, b"c"]


@pytest.mark.parametrize("slot", [-1, 2**63, 2**64, 10**400, 5.0, True, None], ids=str)
def test_a_slot_that_no_chain_gets_to_is_refused(slot):
    text = json.dumps({"result": {"context": {"slot": slot}, "value": []}})
    with pytest.raises(TypeError, match="expected a slot"):
        AccountsText(text).at_slot()


@pytest.mark.parametrize("size", [LIMIT + 1, 1 << 30], ids=["one too many", "a gigabyte"])
def test_a_small_answer_does_not_unfold_to_a_large_one(size):
    text = folded_zeros(size)
    assert len(text) < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"at most {LIMIT} bytes"):
            unfold(text, ENCODING, LIMIT)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def folded_zeros(size: int) -> str:
    compressor = zstandard.ZstdCompressor().compressobj()
    parts = [compressor.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    parts += [compressor.compress(bytes(size % (1 << 20))), compressor.flush()]
    return base64.b64encode(b"".join(parts)).decode()


def test_many_accounts_together_have_one_bound(monkeypatch):
    monkeypatch.setattr(account_json, "MAX_UNFOLDED_BYTES", 300)
    text = reply(*[account(bytes(100)) for _ in range(3)])
    assert len(AccountsText(text).at_slot()[1]) == 3
    text = reply(*[account(bytes(100)) for _ in range(4)])
    with pytest.raises(ValueError, match="bytes of accounts"):
        AccountsText(text).at_slot()


def test_a_frame_may_not_ask_for_a_window_of_its_liking():
    parameters = zstandard.ZstdCompressionParameters(window_log=27, compression_level=1)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    frame = compressor.compress(b"small") + compressor.flush()
    with pytest.raises(ValueError, match="zstd frame"):
        unfold(base64.b64encode(frame).decode(), ENCODING, LIMIT)


@pytest.mark.parametrize(
    "value",
    [
        7,
        account(b"a", lamports="7"),
        account(b"a", lamports=-1),
        account(b"a", lamports=2**64),
        account(b"a", executable=1),
        account(b"a", owner="x"),
        account(b"a", data=["AA==", "base58"]),
        account(b"a", data=["AA==", ENCODING]),
        account(b"a", data=["é", "base64"]),
        account(b"a", data="AA=="),
    ],
)
def test_odd_accounts_are_refused(value):
    with pytest.raises((ValueError, TypeError, KeyError)):
        AccountsText(reply(value)).at_slot()
