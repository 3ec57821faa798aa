"""The sequences of each trainer: no overlap, no gap, no choice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.views import round_view

from troth_coordinator.rules import assignment, bitmap
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.errors import RangeError

HASHES = st.binary(min_size=32, max_size=32)


@settings(max_examples=40)
@given(st.integers(1, 700), HASHES, st.integers(0, 3))
def test_each_data_epoch_is_a_permutation(n, manifest, epoch):
    order = SequenceOrder(n, manifest)
    assert sorted(order.sequences(epoch * n, n)) == list(range(n))


def test_data_epochs_and_manifests_differ():
    order = SequenceOrder(500, bytes(32))
    assert order.sequences(0, 500) != order.sequences(500, 500)
    assert order.sequences(0, 500) != SequenceOrder(500, b"\1" * 32).sequences(0, 500)


@settings(max_examples=40)
@given(st.integers(1, 2**64 - 1), st.integers(1, 5), st.integers(0, 10**6), HASHES)
def test_trainers_share_the_cursor_advance_without_overlap(trainers, s, cursor, manifest):
    order = SequenceOrder(997, manifest)
    view = round_view(trainers=trainers, members=trainers, cursor=cursor)
    parts = [
        assignment.sequences_of(order, view, index, s) for index in bitmap.indices_of(trainers)
    ]
    end = assignment.next_cursor(cursor, bitmap.count(trainers), s)
    flat = [sequence for part in parts for sequence in part]
    assert flat == list(order.sequences(cursor, end - cursor))
    assert all(len(part) == s for part in parts)


def test_only_trainers_have_work():
    with pytest.raises(RangeError, match="rank of index 4"):
        assignment.sequences_of(SequenceOrder(10, bytes(32)), round_view(), 4, 2)


@pytest.mark.parametrize("n", [0, -1, 2**62])
def test_sizes_without_an_order_are_refused(n):
    with pytest.raises(RangeError, match="num_sequences"):
        SequenceOrder(n, bytes(32))


def test_the_key_of_an_order_has_32_bytes():
    with pytest.raises(RangeError, match="key of the order"):
        SequenceOrder(5, bytes(31))
