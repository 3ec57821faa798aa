"""A header is checked field by field; the error names the field."""

from dataclasses import replace

import pytest
from support.headers import (
    EXPECTED,
    FIELDS,
    HEADER,
    SEED,
    TOLD_BY_THE_TRAINER,
    ZERO_ROOT,
    key,
    other_value,
)

from troth_attestation import expected, header
from troth_attestation.errors import HeaderFieldError, HeaderHashError, HeaderSignatureError
from troth_coordinator.rules.ids import NONE

CHECKED = tuple(name for name in FIELDS if name not in TOLD_BY_THE_TRAINER)


def test_an_honest_header_passes():
    expected.check_header(HEADER, EXPECTED)
    assert list(expected.field_errors(HEADER, EXPECTED)) == []


@pytest.mark.parametrize("name", CHECKED)
def test_each_wrong_field_is_named(name):
    wrong = replace(HEADER, **{name: other_value(name)})
    with pytest.raises(HeaderFieldError) as caught:
        expected.check_header(wrong, EXPECTED)
    assert caught.value.field == name
    assert str(caught.value).startswith(f"{name}: expected ")
    assert [error.field for error in expected.field_errors(wrong, EXPECTED)] == [name]


@pytest.mark.parametrize("name", TOLD_BY_THE_TRAINER)
def test_what_only_the_trainer_knows_is_left_to_the_commitment(name):
    expected.check_header(replace(HEADER, **{name: other_value(name)}), EXPECTED)


def test_all_wrong_fields_are_listed_in_header_order():
    wrong = replace(HEADER, **{name: other_value(name) for name in CHECKED})
    found = [error.field for error in expected.field_errors(wrong, EXPECTED)]
    assert found[0] == "genesis_hash"
    assert set(found) == set(CHECKED) - {"residual_before"}


ZERO = replace(HEADER, previous_included=NONE, residual_before=ZERO_ROOT)


@pytest.mark.parametrize("previous", [203, NONE])
def test_any_header_may_declare_the_zero_state(previous):
    expected.check_header(ZERO, replace(EXPECTED, previous_included=previous))


def test_zero_means_zero():
    wrong = replace(ZERO, residual_before=key(12))
    with pytest.raises(HeaderFieldError, match="Without a previous round") as caught:
        expected.check_header(wrong, EXPECTED)
    assert caught.value.field == "residual_before"


def test_a_round_that_was_not_included_never_counts():
    with pytest.raises(HeaderFieldError, match="expected none, found 203") as caught:
        expected.check_header(HEADER, replace(EXPECTED, previous_included=NONE))
    assert caught.value.field == "previous_included"


def test_a_member_that_never_saw_the_previous_header_checks_its_round_only():
    newcomer = replace(EXPECTED, residual_before=None)
    expected.check_header(replace(HEADER, residual_before=key(99)), newcomer)
    with pytest.raises(HeaderFieldError, match="expected 203 or none, found 202"):
        expected.check_header(replace(HEADER, previous_included=202), newcomer)


def test_commitment_fields_and_signature_together():
    signature, committed = header.sign(HEADER, SEED), header.header_hash(HEADER)
    expected.check_signed_header(HEADER, signature, committed, EXPECTED)
    with pytest.raises(HeaderHashError):
        expected.check_signed_header(HEADER, signature, bytes(32), EXPECTED)
    with pytest.raises(HeaderFieldError):
        expected.check_signed_header(HEADER, signature, committed, replace(EXPECTED, epoch=5))
    with pytest.raises(HeaderSignatureError):
        expected.check_signed_header(HEADER, bytes(64), committed, EXPECTED)
