"""Every package raises errors of one tree, and all of them speak in one shape."""

import importlib
import inspect

import pytest
from support.fields import assert_fields

from troth_attestation.errors import AttestationError
from troth_client.errors import ClientError
from troth_coordinator.chain.errors import ChainError
from troth_coordinator.errors import TrothError
from troth_coordinator.rules.errors import RulesError
from troth_localnet.errors import LocalnetError

MODULES = [
    "troth_attestation.errors",
    "troth_cli.demo.errors",
    "troth_cli.errors",
    "troth_client.compression.errors",
    "troth_client.data.errors",
    "troth_client.model.errors",
    "troth_client.network.errors",
    "troth_client.participant.errors",
    "troth_client.state.errors",
    "troth_client.storage.errors",
    "troth_client.train.errors",
    "troth_client.transport.errors",
    "troth_coordinator.chain.errors",
    "troth_coordinator.rules.errors",
    "troth_localnet.errors",
]


@pytest.mark.parametrize("name", MODULES)
def test_every_error_has_the_one_base(name):
    module = importlib.import_module(name)
    own = [
        one
        for _, one in inspect.getmembers(module, inspect.isclass)
        if one.__module__ == name and issubclass(one, BaseException)
    ]
    strangers = [one.__name__ for one in own if not issubclass(one, TrothError)]
    assert own
    assert strangers == []


@pytest.mark.parametrize("kind", [ClientError, LocalnetError])
def test_an_error_without_a_subject_is_two_sentences(kind):
    error = kind("a file", 3, "Check the path.")
    assert str(error) == "expected a file, found 3. Check the path."
    assert_fields(error, subject="", expected="a file", found="3")


@pytest.mark.parametrize("kind", [RulesError, ChainError, AttestationError])
def test_an_error_with_a_subject_names_it_first(kind):
    error = kind("ring", "at least 1", 0, "read it from the run")
    assert str(error) == "ring: expected at least 1, found 0. Read it from the run."
    assert_fields(error, subject="ring", next_step="read it from the run")


def test_a_question_keeps_its_mark():
    assert str(ClientError("a", "b", "did you mean c?")).endswith(". Did you mean c?")
