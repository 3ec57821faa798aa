"""The record of a payload's signs: three arrays that belong together, or none."""

import numpy as np
import pytest

from troth_attestation.errors import TensorError
from troth_attestation.signs import Signs

PRESENT = np.ones(3, np.bool_)
INDICES = np.zeros((3, 2), np.int16)
NEGATIVE = np.zeros((3, 2), np.bool_)


def test_it_knows_its_sizes():
    signs = Signs(PRESENT, INDICES, NEGATIVE)
    assert signs.num_tiles == 3
    assert signs.k == 2


@pytest.mark.parametrize(
    "arrays",
    [
        (PRESENT[:2], INDICES, NEGATIVE),
        (PRESENT, INDICES, NEGATIVE[:, :1]),
        (PRESENT, INDICES, NEGATIVE[:2]),
        (PRESENT, INDICES[0], NEGATIVE[0]),
        (PRESENT[:0], INDICES[:0], NEGATIVE[:0]),
        (PRESENT, INDICES[:, :0], NEGATIVE[:, :0]),
        (PRESENT[:, None], INDICES, NEGATIVE),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(arrays):
    with pytest.raises(TensorError, match=r"present \[T\], indices \[T, k\]"):
        Signs(*arrays)


@pytest.mark.parametrize(
    "arrays",
    [
        (PRESENT.astype(np.int8), INDICES, NEGATIVE),
        (PRESENT, INDICES.astype(np.int64), NEGATIVE),
        (PRESENT, INDICES, NEGATIVE.astype(np.int8)),
    ],
)
def test_other_dtypes_are_refused(arrays):
    with pytest.raises(TensorError, match="bool, int16 and bool"):
        Signs(*arrays)
