"""A failed assertion on fields names each one that differs."""

from dataclasses import dataclass

import pytest
from support.fields import assert_fields, assert_records


@dataclass(frozen=True)
class Entry:
    stake: int
    strikes: int


def test_equal_fields_pass():
    assert_fields(Entry(5, 0), stake=5, strikes=0)
    assert_records([Entry(5, 0), Entry(6, 1)], [{"stake": 5}, {"stake": 6, "strikes": 1}])


def test_each_field_that_differs_is_named_with_both_values():
    with pytest.raises(AssertionError) as caught:
        assert_fields(Entry(5, 0), "index 3", stake=4, strikes=1)
    message = "Entry (index 3): stake is 5, expected 4; strikes is 0, expected 1"
    assert str(caught.value) == message


def test_a_field_that_is_not_there_is_no_match():
    with pytest.raises(AttributeError, match="bond"):
        assert_fields(Entry(5, 0), bond=5)


@pytest.mark.parametrize("num_expected", [1, 3])
def test_records_that_are_missing_or_too_many_are_counted(num_expected):
    with pytest.raises(AssertionError, match=f"expected {num_expected} records"):
        assert_records([Entry(5, 0), Entry(5, 0)], [{"stake": 5}] * num_expected)


def test_the_record_that_differs_is_named_by_its_place():
    with pytest.raises(AssertionError, match=r"Entry \(1\): stake is 6, expected 5"):
        assert_records([Entry(5, 0), Entry(6, 0)], [{"stake": 5}, {"stake": 5}])
