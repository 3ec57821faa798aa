"""The disk is looked at before anything is paid."""

import shutil
from dataclasses import replace

import pytest
from support.views import PARAMS

from troth_cli.errors import DiskSpaceError
from troth_cli.workflows.disk import check_disk
from troth_client.state.retention import Retention
from troth_coordinator.rules.config import ModelSection, RunConfig

HIDDEN = 1_024
RING = 16


def config_of(num_parameters: float) -> RunConfig:
    """A config whose model has at least so many parameters, nearly all in the embedding."""
    model = ModelSection(
        vocab_size=int(num_parameters) // HIDDEN + 1,
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        tie_word_embeddings=True,
    )
    return RunConfig(model=model)


def test_a_model_that_can_never_fit_is_refused(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(DiskSpaceError, match="Nothing was paid"):
        check_disk(tmp_path, config_of(free / 4), PARAMS)


def test_a_disk_that_may_become_full_is_a_warning(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    warning = check_disk(tmp_path, config_of(free / 40), replace(PARAMS, ring=RING))
    assert "a full disk ends this participant" in warning


def test_a_small_model_is_no_matter(tmp_path):
    assert check_disk(tmp_path, RunConfig(), PARAMS) == ""


def test_retention_grows_with_the_ring_and_with_the_distance_of_checkpoints():
    near = Retention.of(replace(PARAMS, ring=16, checkpoint_every=2))
    assert near.weights == near.payloads == 15
    far = Retention.of(replace(PARAMS, ring=16, checkpoint_every=20))
    assert far.weights == 15
    assert far.payloads > 2 * 20
