"""Data that the model of a run cannot take is named before a stake moves, whatever its hash."""

from types import SimpleNamespace

import pytest
from support.views import run_view

from troth_cli.workflows.join_checks import data_result
from troth_client.data.errors import ManifestError
from troth_client.data.fit import Misfit, load_fitting, misfit
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.participant import process
from troth_coordinator.rules.config import DataSection, ModelSection, RunConfig


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set of bytes in sequences of 16 tokens: its folder and its manifest."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "text").mkdir()
    for number in range(10):
        (folder / "text" / f"{number}.txt").write_text("some text, and more of it " * 20)
    options = PrepareOptions(sequence_tokens=16, validation_ppm=100_000)
    source = text_source([folder / "text"])
    return folder / "out", prepare(folder / "out", source, ByteTokenizer(), options)


def config(manifest, vocab_size=256, sequence_tokens=16):
    """The config of a run whose creator bound it to the data set, fit or not."""
    return RunConfig(
        model=ModelSection(vocab_size=vocab_size),
        data=DataSection(manifest_hash=manifest.hash.hex(), sequence_tokens=sequence_tokens),
    )


MISFITS = {
    "vocabulary": ({"vocab_size": 128}, "model.vocab_size", "256"),
    "length": ({"sequence_tokens": 32}, "data.sequence_tokens", "16"),
}


@pytest.mark.parametrize("changes", [{}, {"vocab_size": 300}])
def test_a_data_set_fits_a_model_with_its_tokens_or_more(data, changes):
    folder, manifest = data
    assert misfit(config(manifest, **changes), manifest) is None
    assert load_fitting(folder, config(manifest, **changes)) == manifest


def test_another_data_set_does_not_fit(data):
    _, manifest = data
    other = config(manifest).with_manifest(b"o" * 32)
    assert misfit(other, manifest) == Misfit(
        "data.manifest_hash", (b"o" * 32).hex(), manifest.hash.hex()
    )


@pytest.mark.parametrize("kind", list(MISFITS))
def test_a_newcomer_that_checks_the_data_is_told_before_it_pays(data, kind):
    """The creator bound a run to data of 256 tokens whose model has 128: its hash is on chain."""
    folder, manifest = data
    changes, key, found = MISFITS[kind]
    settings = SimpleNamespace(data=folder, config=config(manifest, **changes))
    request = SimpleNamespace(settings=settings)
    with pytest.raises(ManifestError, match=key) as caught:
        data_result(request, run_view(), lambda *_: None)
    assert caught.value.found == f"{found} in {folder / 'manifest.json'}"


@pytest.mark.parametrize("kind", list(MISFITS))
def test_a_process_does_not_open_data_that_its_model_cannot_take(data, kind):
    folder, manifest = data
    changes, key, _ = MISFITS[kind]
    settings = SimpleNamespace(data=folder, config=config(manifest, **changes))
    with pytest.raises(ManifestError, match=key):
        process._open_data(settings)
