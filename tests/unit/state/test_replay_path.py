"""The way in which an audit applies payloads: compiled kernels where they repay their start."""

import pytest

from troth_client.state import audited
from troth_client.state.audited import MANY_ROUNDS, SOME_ROUNDS, replay_path
from troth_coordinator.config_files import load_config

CONFIG = load_config([], {}).config
"""A model of fewer tiles than kernels are compiled for as a rule."""


@pytest.mark.parametrize(
    ("is_saved", "rounds", "compiled"),
    [
        (True, SOME_ROUNDS, True),
        (True, SOME_ROUNDS - 1, False),
        (False, SOME_ROUNDS, False),
        (False, MANY_ROUNDS, True),
    ],
)
def test_kernels_that_are_compiled_already_serve_shorter_replays(
    monkeypatch, is_saved, rounds, compiled
):
    monkeypatch.setattr(audited, "has_compiled", lambda: is_saved)
    assert (replay_path(CONFIG, rounds).kernels is not None) is compiled
