"""The integer basis is a constant: the same on every machine, and really a DCT."""

import hashlib

import numpy as np
from support import reference

from troth_client.compression.basis import BASIS_SHA256, float_basis, integer_basis


def test_basis_has_the_hash_of_the_protocol():
    stored = hashlib.sha256(integer_basis().astype("<i2").tobytes()).hexdigest()
    assert stored == BASIS_SHA256
    assert stored.startswith("81941e6ec7c354d3")


def test_basis_equals_fifty_digit_cosines():
    assert integer_basis().tolist() == reference.basis()


def test_float_basis_is_orthonormal_and_rounds_to_the_integer_one():
    basis = float_basis()
    assert np.allclose(basis @ basis.T, np.eye(64), atol=1e-14)
    assert np.array_equal(np.rint(2**14 * basis), integer_basis())
