"""A tokenizer of bytes is the same in our data sets and in the `tokenizers` library."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from troth_client.data.tokens import byte_tokenizer_json

LIBRARY = Tokenizer.from_str(byte_tokenizer_json().decode())


@given(st.text())
def test_the_token_of_a_byte_is_its_value(text):
    raw = list(text.encode())
    assert LIBRARY.encode(text).ids == raw
    assert LIBRARY.decode(raw) == text


@pytest.mark.parametrize("byte", range(256))
def test_each_byte_has_a_token(byte):
    """Also the bytes that no UTF-8 has: a model may write them."""
    assert LIBRARY.get_vocab_size() == 256
    assert LIBRARY.id_to_token(byte) is not None
    expected = bytes([byte]).decode("utf-8", "replace")
    assert LIBRARY.decode([byte], skip_special_tokens=False) == expected
