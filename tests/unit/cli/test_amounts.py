"""Amounts are exact; addresses are whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.pubkey import Pubkey

from troth_cli.errors import InputError
from troth_cli.view.amounts import address, lamports, number_or_none, ppm, sol


@given(st.integers(0, 10**18))
def test_lamports_survive_the_text(amount):
    assert lamports(sol(amount), "x") == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [(-1, "-0.000000001 SOL"), (-1_500_000_000, "-1.5 SOL"), (-2 * 10**9, "-2 SOL")],
)
def test_an_amount_that_was_spent_is_shown_with_its_sign(amount, text):
    assert sol(amount) == text


@pytest.mark.parametrize(
    ("text", "amount"),
    [("0", 0), ("1", 10**9), ("1.5", 1_500_000_000), (" .000000001 ", 1), ("2 SOL", 2 * 10**9)],
)
def test_amounts_are_read(text, amount):
    assert lamports(text, "x") == amount


@pytest.mark.parametrize(
    "text", ["", "one", "-1", "nan", "inf", "1e30", "0.0000000001", "1,5", "1_0_0x", "1000000001"]
)
def test_other_amounts_are_refused_by_name(text):
    with pytest.raises(InputError) as raised:
        lamports(text, "--fund")
    assert raised.value.subject == "--fund"


@given(st.integers(0, 10**6))
def test_shares_are_exact_in_both_forms(parts):
    assert ppm(f"{parts // 10**6}.{parts % 10**6:06d}", "x") == parts
    assert ppm(f" {parts // 10**4}.{parts % 10**4:04d} % ", "x") == parts


@pytest.mark.parametrize("text", ["", "half", "-0.01", "1.000001", "100.0001%", "nan", "1e-7"])
def test_other_shares_are_refused_by_name(text):
    with pytest.raises(InputError) as raised:
        ppm(text, "--power")
    assert raised.value.subject == "--power"


def test_addresses_are_read_or_refused_by_name():
    key = Pubkey(bytes([255]) * 32)  # one digit behind a small number might still be an address
    assert address(f" {key} ", "RUN") == key
    for text in ("", str(key)[:-3], str(key) + "1", "0" * 44, "not an address"):
        with pytest.raises(InputError) as raised:
            address(text, "RUN")
        assert raised.value.subject == "RUN"


def test_the_mark_for_none_is_none():
    assert number_or_none(2**64 - 1) is None
    assert number_or_none(0) == 0
