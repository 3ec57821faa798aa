"""Exports name their origin, and the model card repeats it."""

import hashlib
import importlib

import pytest
from support.states import TINY

from troth_attestation.manifest import CheckpointManifest
from troth_attestation.pieces import StateName, pieces_of
from troth_cli.errors import InputError
from troth_cli.workflows.checkpoint_export import check_source, find_tokenizer
from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.checkpoint.exporting import (
    CARD_FILE,
    CONFIG_FACT,
    KeptTokenizer,
    Origin,
    config_in,
    export_state,
)
from troth_client.checkpoint.folder import write_weights
from troth_client.checkpoint.weights_file import WeightsFile
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer, byte_tokenizer_json, kept_tokenizer
from troth_client.model.export import WEIGHTS_FILE
from troth_client.model.init import initial_weights
from troth_coordinator.rules.config import DataSection, RunConfig

CONFIG = RunConfig(model=TINY, data=DataSection(manifest_hash="ab" * 32, sequence_tokens=8))
ADDRESS = "1" * 31 + "2"


@pytest.fixture(scope="module")
def weights():
    return initial_weights(bytes(32), TINY)


@pytest.fixture
def folder(tmp_path, weights):
    """A whole checkpoint of round 4."""
    pieces = pieces_of(weights, StateName(4, 12, CONFIG.config_hash()))
    manifest = CheckpointManifest.of(ADDRESS, ADDRESS, CONFIG, pieces)
    data = {name: memoryview(value.reshape(-1)).cast("B") for name, value in weights.items()}
    return write_weights(tmp_path / "checkpoint", manifest, pieces, data)


def test_an_export_holds_all_that_its_root_binds(tmp_path, folder, weights):
    origin = Origin.of(folder.manifest)
    export_state(tmp_path / "model", origin, weights, None)
    file = WeightsFile.open(tmp_path / "model" / WEIGHTS_FILE)
    config = config_in(file.facts, file.path)
    assert config == CONFIG
    state = StateName(int(file.facts["round"]), int(file.facts["cursor"]), config.config_hash())
    assert pieces_of(file.weights(config.model), state).root.hex() == file.facts["state_root"]
    assert file.facts["run"] == ADDRESS
    assert file.facts["program"] == ADDRESS


@pytest.mark.parametrize("end_token", [0, 7, None])
def test_an_export_stops_where_a_document_of_its_data_set_ends(
    tmp_path, folder, weights, end_token
):
    kept = KeptTokenizer(byte_tokenizer_json(), end_token)
    export_state(tmp_path / "model", Origin.of(folder.manifest), weights, kept)
    transformers = importlib.import_module("transformers")
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "model")
    assert model.config.eos_token_id == end_token
    assert model.generation_config.eos_token_id == end_token
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == kept.raw


def test_the_tokenizer_of_a_data_set_comes_with_its_end_token(tmp_path):
    (tmp_path / "a.txt").write_text("the quick brown fox " * 40)
    (tmp_path / "b.txt").write_text("the quick brown fox " * 40)
    source = text_source([tmp_path / "a.txt", tmp_path / "b.txt"])
    options = PrepareOptions(sequence_tokens=8, validation_ppm=100_000)
    manifest = prepare(tmp_path / "set", source, ByteTokenizer(), options)
    config = CONFIG.with_manifest(manifest.hash)
    found = find_tokenizer(None, tmp_path / "set", config)
    assert found == KeptTokenizer(byte_tokenizer_json(), ByteTokenizer.END_TOKEN)
    (tmp_path / "t.json").write_bytes(b"{}")
    assert find_tokenizer(tmp_path / "t.json", None, config) == KeptTokenizer(b"{}", None)


def test_the_card_names_root_hashes_and_training_facts(tmp_path, folder, weights):
    export_state(tmp_path, Origin.of(folder.manifest), weights, None)
    card = (tmp_path / CARD_FILE).read_text()
    for text in (
        f"| run | `{ADDRESS}` |",
        "| round | 4 |",
        f"| state root | `{folder.manifest.root}` |",
        f"| config hash | `{CONFIG.config_hash().hex()}` |",
        f"| data manifest hash | `{'ab' * 32}` |",
        "| k per tile | 32 |",
        "| sequences assigned | 12 of 8 tokens |",
        f"| parameters | {sum(value.size for value in weights.values())} |",
        "No tokenizer is included",
        "troth checkpoint verify DIR --rpc URL",
    ):
        assert text in card


def test_an_export_without_a_config_claims_none_and_a_broken_one_is_refused(tmp_path):
    assert config_in({}, tmp_path) is None
    for text in ("{", '{"version": 2, "model": {"hidden_size": 7}}', '{"verison": 2}'):
        with pytest.raises(CheckpointFileError, match="the config of a run in the header"):
            config_in({CONFIG_FACT: text}, tmp_path)


class Words(ByteTokenizer):
    """A tokenizer with a file; what is in it does not matter here."""

    def __init__(self, file):
        self.raw = file.read_bytes()
        digest = hashlib.sha256(self.raw).hexdigest()
        self.entry = ByteTokenizer.entry.model_copy(update={"kind": "tokenizers", "sha256": digest})


def test_only_the_tokenizer_that_the_data_set_names_is_kept(tmp_path):
    for number in range(40):
        (tmp_path / f"text-{number:02d}.txt").write_text(f"the quick brown fox {number}\n" * 5)
    (tmp_path / "words.json").write_text("{}")
    source = text_source(sorted(tmp_path.glob("text-*")))
    options = PrepareOptions(sequence_tokens=8, validation_ppm=100_000)
    out = tmp_path / "set"
    manifest = prepare(out, source, Words(tmp_path / "words.json"), options)
    assert kept_tokenizer(out, manifest) == (out / "tokenizer.json").read_bytes()
    (out / "tokenizer.json").write_text("{ }")
    assert kept_tokenizer(out, manifest) is None
    (out / "tokenizer.json").unlink()
    assert kept_tokenizer(out, manifest) is None
    of_bytes = prepare(tmp_path / "bytes", source, ByteTokenizer(), options)
    assert kept_tokenizer(tmp_path / "bytes", of_bytes) == byte_tokenizer_json()


def test_a_bare_file_is_no_source_of_an_export(tmp_path):
    """It does not say of which run and round it is, and an export has no option for that."""
    file = tmp_path / "weights.safetensors"
    file.write_bytes(b"")
    with pytest.raises(InputError, match="found a file"):
        check_source(file)
    check_source(tmp_path)


def test_an_export_of_an_export_keeps_its_tokenizer(tmp_path):
    assert find_tokenizer(None, None, CONFIG, tmp_path) is None
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    assert find_tokenizer(None, None, CONFIG, tmp_path) == KeptTokenizer(b"{}", None)
    (named := tmp_path / "named.json").write_bytes(b"[]")
    assert find_tokenizer(named, None, CONFIG, tmp_path) == KeptTokenizer(b"[]", None)
    assert find_tokenizer(None, None, CONFIG) is None


def test_a_link_in_the_place_of_a_tokenizer_is_refused(tmp_path):
    (secret := tmp_path / "secret").write_bytes(b"mine")
    (folder := tmp_path / "model").mkdir()
    (folder / "tokenizer.json").symlink_to(secret)
    with pytest.raises(InputError) as raised:
        find_tokenizer(None, None, CONFIG, folder)
    assert "--tokenizer FILE" in raised.value.next_step
