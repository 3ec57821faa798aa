"""`troth run create` looks at the data: its tokenizer, and the vocabulary of given weights."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from troth_cli.errors import InputError
from troth_cli.workflows.create import bind, check_tokenizer, warnings
from troth_client.data.manifest import load_manifest
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer, FileTokenizer
from troth_coordinator.config_files import load_config
from troth_coordinator.errors import TrothError
from troth_coordinator.rules.errors import ContradictionError

OPTIONS = PrepareOptions(sequence_tokens=8, validation_ppm=100_000)
WORDS = ("lorem", "ipsum", "dolor")


def tokenizer(path, *words):
    """A tokenizer.json of these words, in this order."""
    vocabulary = {word: number for number, word in enumerate(("[UNK]", *words))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    path.parent.mkdir(exist_ok=True)
    made.save(str(path))
    return path


@pytest.fixture
def base(tmp_path):
    """A folder of weights, of which only the tokenizer matters here."""
    return tokenizer(tmp_path / "base" / "tokenizer.json", *WORDS).parent


@pytest.fixture
def source(tmp_path):
    (tmp_path / "text").mkdir()
    for number in range(10):
        (tmp_path / "text" / f"{number}.txt").write_text("lorem ipsum dolor " * 20)
    return text_source([tmp_path / "text"])


@pytest.fixture
def data(tmp_path, source, base):
    """A data set with the tokenizer of the weights."""
    prepare(tmp_path / "data", source, FileTokenizer(base / "tokenizer.json"), OPTIONS)
    return tmp_path / "data"


def settings(vocab_size):
    model = {"vocab_size": vocab_size}
    return load_config([], {"model": model, "data": {"sequence_tokens": 8}})


def about_tokens(vocab_size, manifest, start):
    """The warnings that name tokens or a tokenizer."""
    found = warnings(settings(vocab_size), manifest, start)
    return [text for text in found if "token" in text]


def test_the_tokenizer_of_the_weights_is_taken_without_a_word(data, base):
    assert about_tokens(4, load_manifest(data), base) == []


def test_a_tokenizer_of_the_same_size_but_another_order_is_noticed(tmp_path, source, base):
    """Each token would stand for another word than the weights have learned."""
    other = tokenizer(tmp_path / "other.json", *reversed(WORDS))
    manifest = prepare(tmp_path / "data", source, FileTokenizer(other), OPTIONS)
    (warning,) = about_tokens(4, manifest, base)
    assert f"another tokenizer than {base / 'tokenizer.json'}" in warning


def test_weights_without_a_tokenizer_leave_the_question_to_the_creator(data, base):
    (base / "tokenizer.json").unlink()
    (warning,) = about_tokens(4, load_manifest(data), base)
    assert warning.startswith(f"no {base / 'tokenizer.json'} to compare with")


def test_padding_of_given_weights_is_said_and_nobody_is_sent_to_change_their_model(data, base):
    """`read_start` refuses another vocab_size than that of the weights."""
    (warning,) = about_tokens(64, load_manifest(data), base)
    assert "60 rows of the embedding are never trained" in warning
    assert "set model.vocab_size" not in warning
    (drawn,) = about_tokens(64, load_manifest(data), None)
    assert "set model.vocab_size to 4" in drawn


def test_data_of_more_tokens_than_given_weights_has_another_way_out(data, base):
    manifest = load_manifest(data)
    with pytest.raises(ContradictionError) as caught:
        bind(settings(3), manifest, base)
    file = base / "tokenizer.json"
    assert caught.value.next_step.endswith(f"troth data prepare --tokenizer {file}")
    with pytest.raises(ContradictionError, match=r"Set model\.vocab_size to 4"):
        bind(settings(3), manifest)


@pytest.mark.parametrize("kind", ["missing", "another"])
def test_a_data_set_without_its_tokenizer_creates_no_run(data, kind):
    """Nobody could fetch it under the hash that is on chain: nobody could join."""
    manifest, file = load_manifest(data), data / "tokenizer.json"
    check_tokenizer(data, manifest)
    file.unlink() if kind == "missing" else file.write_text("{}")
    with pytest.raises(InputError, match="a missing or another file"):
        check_tokenizer(data, manifest)


def test_a_data_set_of_bytes_needs_no_file(tmp_path, source):
    manifest = prepare(tmp_path / "bytes", source, ByteTokenizer(), OPTIONS)
    check_tokenizer(tmp_path / "bytes", manifest)


def test_sequences_longer_than_a_manifest_can_name_make_no_settings():
    model = {"max_position_embeddings": 2**24}
    data = {"sequence_tokens": 2**24 - 1}
    assert load_config([], {"model": model, "data": data}).config.data.sequence_tokens == 2**24 - 1
    with pytest.raises(TrothError, match="sequence_tokens"):
        load_config([], {"model": model, "data": {"sequence_tokens": 2**24}})
