"""Weights of audited rounds: kept while an audit needs them, and never the wrong ones."""

import numpy as np
import pytest

from troth_attestation.state import state_root
from troth_client.state.errors import WeightsLostError
from troth_client.state.kept_weights import KeptWeights
from troth_client.storage import Store, StoreIdentity, WeightState

CONFIG_HASH = b"c" * 32


@pytest.fixture
def damaged():
    return []


@pytest.fixture
def store(tmp_path, damaged):
    identity = StoreIdentity(bytes(32), b"o" * 32, CONFIG_HASH)
    with Store(tmp_path / "state", identity, damaged.append, durable=False) as opened:
        yield opened


def save(store, round_, fill=None):
    value = round_ if fill is None else fill
    tensors = {"model.norm.weight": np.full(300, value, np.float32)}
    root = state_root(tensors, round_, 16 * round_, CONFIG_HASH)
    store.save_weights(WeightState(round_, 16 * round_, root, tensors))
    return root


def test_weights_come_back_under_their_root(store):
    root = save(store, 7)
    found = KeptWeights(store, CONFIG_HASH).load(7, root)
    assert found.round == 7
    assert found.cursor == 112
    assert np.all(found.tensors["model.norm.weight"] == 7)


def test_what_was_tidied_away_is_lost(store):
    kept = KeptWeights(store, CONFIG_HASH)
    roots = [save(store, round_) for round_ in range(6)]
    store.drop_before(5, keep={2})
    kept.load(2, roots[2])
    with pytest.raises(WeightsLostError, match="none on disk"):
        kept.load(3, roots[3])


def test_weights_of_another_root_are_not_given_out(store):
    """A correction or a fork may have left weights that the chain no longer names."""
    wrong = save(store, 7, fill=8)
    right = save(store, 7)
    save(store, 7, fill=8)
    kept = KeptWeights(store, CONFIG_HASH)
    with pytest.raises(WeightsLostError, match=wrong.hex()):
        kept.load(7, right)


def test_a_root_that_is_only_written_in_the_file_is_not_believed(store):
    right = save(store, 7)
    tensors = {"model.norm.weight": np.full(300, 9, np.float32)}
    store.save_weights(WeightState(7, 112, right, tensors))
    with pytest.raises(WeightsLostError):
        KeptWeights(store, CONFIG_HASH).load(7, right)


def test_damaged_weights_are_lost(store, damaged, tmp_path):
    root = save(store, 7)
    (path,) = (tmp_path / "state").glob("weights-*")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(WeightsLostError):
        KeptWeights(store, CONFIG_HASH).load(7, root)
    assert len(damaged) == 1
