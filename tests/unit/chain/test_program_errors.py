"""Numbers from the chain become names, sentences and a next step."""

import pytest
from solders.pubkey import Pubkey

from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import (
    ForeignProgramError,
    InsufficientFundsError,
    ProgramMissingError,
    ProgramRefusedError,
    TransactionFailedError,
    TransactionRejectedError,
)
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.program_errors import sort_failure

CODEC = program_codec()
OURS = str(CODEC.program_id)
SYSTEM = "1" * 32
PAYER = Pubkey.from_bytes(bytes(range(32)))


def custom(code, position=0):
    return TransactionFailure("InstructionError", position, "Custom", code)


def failed(program, code):
    return f"Program {program} failed: custom program error: {hex(code)}"


def sort(failure, logs=(), landed=False):
    return sort_failure(failure, logs, PAYER, CODEC, landed=landed)


@pytest.mark.parametrize("spec", CODEC.errors.values(), ids=lambda spec: spec.name)
def test_every_error_of_the_program_says_what_to_do(spec):
    error = sort(custom(spec.code, 2), [failed(OURS, spec.code)])
    assert isinstance(error, ProgramRefusedError)
    assert error.name == spec.name
    assert error.code == spec.code
    assert error.instruction == 2
    assert error.logs == (failed(OURS, spec.code),)
    assert error.text
    assert error.next_step
    assert spec.name in str(error)


def test_the_sentence_is_split_into_what_and_what_to_do():
    spec = next(spec for spec in CODEC.errors.values() if spec.name == "AccountAlreadyExists")
    error = sort(custom(spec.code))
    assert error.text == "the account already exists"
    assert error.next_step == "fetch it instead of creating it"


def test_errors_of_the_framework_are_named_with_their_account():
    log = (
        "Program log: AnchorError caused by account: run. Error Code: ConstraintHasOne. "
        "Error Number: 2001. Error Message: A has one constraint was violated."
    )
    error = sort(custom(2001), [log, failed(OURS, 2001)])
    assert error.name == "ConstraintHasOne"
    assert error.code == 2001
    assert "(account run)" in error.text


def test_errors_of_the_framework_without_a_log():
    assert sort(custom(3012)).name == "AnchorError3012"


def test_codes_of_other_programs_stay_numbers():
    code = next(iter(CODEC.errors))
    error = sort(custom(code), [failed("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr", code)])
    assert isinstance(error, TransactionRejectedError)
    assert error.failure.code == code


def test_the_innermost_program_counts():
    """A transfer inside our program fails: our program repeats the code, the cause is the other."""
    logs = [
        "Transfer: insufficient lamports 5, need 100",
        failed(SYSTEM, 1),
        failed(OURS, 1),
    ]
    error = sort(custom(1), logs)
    assert isinstance(error, InsufficientFundsError)
    assert "5 lamports, 100 needed" in str(error)
    assert str(PAYER) in str(error)


@pytest.mark.parametrize(
    "kind",
    [
        "AccountNotFound",
        "InsufficientFundsForFee",
        "InsufficientFundsForRent",
        "InvalidRentPayingAccount",
    ],
)
def test_a_payer_without_funds(kind):
    error = sort(TransactionFailure(kind), ["x"])
    assert isinstance(error, InsufficientFundsError)
    assert error.payer == str(PAYER)
    assert error.logs == ("x",)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (TransactionFailure("ProgramAccountNotFound"), ProgramMissingError),
        (TransactionFailure("InvalidProgramForExecution"), ForeignProgramError),
        (TransactionFailure("InstructionError", 0, "UnsupportedProgramId"), ProgramMissingError),
        (TransactionFailure("InstructionError", 0, "AccountNotExecutable"), ForeignProgramError),
    ],
)
def test_no_program_or_another(failure, expected):
    assert isinstance(sort(failure), expected)


@pytest.mark.parametrize(("landed", "expected"), [(0, "refusal before sending"), (1, "a failure")])
def test_what_has_no_name(landed, expected):
    failure = TransactionFailure("InstructionError", 1, "InvalidArgument")
    error = sort(failure, ["first", "last"], landed=bool(landed))
    kind = TransactionFailedError if landed else TransactionRejectedError
    assert isinstance(error, kind)
    assert expected in str(error)
    assert "instruction 1: InvalidArgument" in str(error)
    assert "last log line: last" in str(error)
    assert isinstance(sort(custom(5999), landed=bool(landed)), kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("BlockhashNotFound", TransactionFailure("BlockhashNotFound")),
        (
            {"InsufficientFundsForRent": {"account_index": 1}},
            TransactionFailure("InsufficientFundsForRent"),
        ),
        ({"InstructionError": [3, {"Custom": 7}]}, custom(7, 3)),
        (
            {"InstructionError": [3, {"BorshIoError": "x"}]},
            TransactionFailure("InstructionError", 3, "BorshIoError"),
        ),
        (
            {"InstructionError": [0, "InvalidArgument"]},
            TransactionFailure("InstructionError", 0, "InvalidArgument"),
        ),
        ({"InstructionError": 7}, TransactionFailure("InstructionError", None, "7")),
        ({"InstructionError": ["x", 1]}, TransactionFailure("InstructionError", None, "['x', 1]")),
        ({}, TransactionFailure("Unreadable", None, "{}")),
        (7, TransactionFailure("Unreadable", None, "7")),
        ([1], TransactionFailure("Unreadable", None, "[1]")),
    ],
)  # fmt: skip
def test_failures_of_every_shape(text, expected):
    assert TransactionFailure.from_json(text) == expected
    assert expected is None or str(expected)
