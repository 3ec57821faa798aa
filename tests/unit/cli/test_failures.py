"""Errors of every package's tree come out with their four parts."""

import io
import json
import re
import sys

import pytest
from solders.pubkey import Pubkey

from troth_attestation.errors import AttestationError
from troth_cli.failures import explain, show
from troth_cli.refusals import STEPS
from troth_client.errors import ClientError
from troth_coordinator import artifacts
from troth_coordinator.chain import errors as chain
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.rules.errors import ContradictionError, UnknownKeyError
from troth_localnet.errors import PortInUseError

COMMAND = re.compile(r"troth ((?:run |stake |case )?[a-z-]+)")
ERRORS = [
    ClientError("this", "that", "do it"),
    ContradictionError("chain.ring", "this", 3, "do it"),
    UnknownKeyError("a.b", "one of c", "an unknown key", "did you mean 'c'?"),
    AttestationError("header", "this", "that", "do it"),
    chain.ProgramMissingError(str(Pubkey.default())),
    chain.InsufficientFundsError("payer", "7 lamports"),
    chain.RpcTimeoutError("http://127.0.0.1:1", "no answer"),
    chain.ProgramRefusedError(
        "JoinClosed", 6000, "too late", "join another", TransactionFailure("x")
    ),
    PortInUseError("127.0.0.1", 8899, "JSON-RPC"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_tree_is_explained(error):
    failure = explain(error)
    assert failure is not None
    assert failure.kind == type(error).__name__
    assert failure.expected == str(error.expected)
    assert failure.found == str(error.found)
    text, record = io.StringIO(), io.StringIO()
    show(failure, text, is_json=False)
    show(failure, record, is_json=True)
    assert len(text.getvalue().splitlines()) == 4
    for part in (failure.expected, failure.found, failure.next_step):
        assert part
        assert part in text.getvalue()
        assert part in json.loads(record.getvalue())["error"].values()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\x07b", "a\\r\\x07b"),
        ("\udcff", "\\udcff"),
        ("é\u202e", "é\\u202e"),
    ],
)
def test_a_text_of_a_stranger_cannot_steer_the_terminal(text, shown):
    """A file names its program and its keys; an error repeats what it found."""
    stream = io.StringIO()
    show(explain(ClientError("this", f"the key {text}", "do it")), stream, is_json=False)
    assert f"the key {shown}\n" in stream.getvalue()
    assert stream.getvalue().replace("\n", "").isprintable()


def test_a_refusal_of_the_program_keeps_its_name():
    failure = explain(ERRORS[7])
    assert failure.extra == {"name": "JoinClosed", "code": 6000}


def test_a_refusal_says_what_to_type_next():
    failure = chain.ProgramRefusedError(
        "NotPaused", 6049, "the run is not paused", "look it up", TransactionFailure("x")
    )
    assert explain(failure).next_step == STEPS["NotPaused"]
    assert explain(ERRORS[7]).next_step == "join another"


def test_steps_name_refusals_and_commands_that_there_are(cli):
    names = {error["name"] for error in artifacts.read_json(artifacts.IDL)["errors"]}
    assert sorted(STEPS.keys() - names) == []
    typed = {match for step in STEPS.values() for match in COMMAND.findall(step)}
    assert len(typed) > 8
    for command in sorted(typed):
        assert cli(*command.split(), "--help").code == 0, command


@pytest.mark.parametrize("error", [ValueError("x"), RuntimeError(), OSError("no file in it")])
def test_what_nobody_foresaw_is_not_explained(error):
    assert explain(error) is None


def test_a_package_that_is_not_installed_is_named_with_its_extra(cli, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    (tmp_path / "text").write_text("words")
    command = ("data", "prepare", "--text", tmp_path / "text", "--out", tmp_path / "data")
    error = cli.refused(*command, "--tokenizer", tmp_path / "text")
    assert error["kind"] == "PackageMissingError"
    assert error["subject"] == "tokenizers"
    assert "[train]" in error["next_step"]
