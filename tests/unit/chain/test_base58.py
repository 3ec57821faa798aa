import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.pubkey import Pubkey

from troth_coordinator.chain import base58


@given(st.binary(max_size=300))
def test_what_is_encoded_decodes_to_itself(data):
    assert base58.decode(base58.encode(data)) == data


@given(st.binary(min_size=32, max_size=32))
def test_keys_are_written_as_solders_writes_them(data):
    assert base58.encode(data) == str(Pubkey.from_bytes(data))


@pytest.mark.parametrize("text", ["0", "O", "I", "l", "abc def", "\u00e9"])
def test_foreign_characters_are_refused(text):
    with pytest.raises(ValueError, match=r"characters of base58|ascii"):
        base58.decode(text)


def test_long_text_is_refused_before_the_quadratic_work():
    with pytest.raises(ValueError, match=f"at most {base58.MAX_CHARACTERS}"):
        base58.decode("1" * 1_000_000)
