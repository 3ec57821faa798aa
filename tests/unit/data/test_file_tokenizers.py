"""Files of the `tokenizers` library: each kind of model, large vocabularies, and odd settings."""

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, processors, trainers

from troth_client.data.errors import SourceError
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import Piece, text_source
from troth_client.data.tokens import FileTokenizer

TEXT = "the quick brown fox jumps over the lazy dog while nobody looks at it"
OPTIONS = PrepareOptions(sequence_tokens=15, shard_tokens=512, validation_ppm=100_000)
LARGEST_OF_TWO_BYTES = 65_536


def bpe():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=letters,
            show_progress=False,
        ),
    )
    return made


def unigram():
    made = Tokenizer(models.Unigram())
    special = ["<unk>", "</s>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=60, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator([TEXT] * 5, trainer)
    return made


def word_piece():
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=80, special_tokens=["[UNK]", "[SEP]"], show_progress=False
    )
    made.train_from_iterator([TEXT], trainer)
    return made


def words(number):
    """A vocabulary of so many words, w0 on."""
    made = Tokenizer(models.WordLevel({f"w{at}": at for at in range(number)}, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


@pytest.fixture
def kept(tmp_path):
    """Saves a tokenizer as a file and loads that as ours."""

    def keep(made, *options):
        made.save(str(tmp_path / "tokenizer.json"))
        return FileTokenizer(tmp_path / "tokenizer.json", *options)

    return keep


@pytest.mark.parametrize("make", [bpe, unigram, word_piece])
def test_each_kind_of_model_writes_what_the_library_writes(kept, make):
    made = make()
    ours = kept(made)
    expected = made.encode(TEXT, add_special_tokens=False).ids
    assert ours.encode(Piece(TEXT.encode(), ends_document=False)).tolist() == expected
    last = ours.encode(Piece(TEXT.encode(), ends_document=True))
    assert last.tolist() == [*expected, ours.entry.end_token]
    assert ours.end_name in ("<|endoftext|>", "</s>", "[SEP]")
    assert int(last.max()) < ours.vocab_size


@pytest.mark.parametrize("make", [bpe, unigram, word_piece])
def test_letters_that_nobody_trained_on_become_known_tokens(kept, make):
    ours = kept(make())
    found = ours.encode(Piece("Ω漢\N{GRINNING FACE} ".encode() + b"\xff", ends_document=False))
    assert len(found) > 0
    assert int(found.max()) < ours.vocab_size


@pytest.mark.parametrize("cut", ["truncation", "padding", "template"])
def test_settings_for_classifiers_change_nothing(kept, cut):
    """Otherwise a document would end after eight tokens, and nobody would notice."""
    plain, made = bpe(), bpe()
    if cut == "truncation":
        made.enable_truncation(8)
    elif cut == "padding":
        made.enable_padding(length=5_000)
    else:
        made.post_processor = processors.TemplateProcessing(
            single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
        )
    found = kept(made).encode(Piece(TEXT.encode(), ends_document=False))
    assert found.tolist() == plain.encode(TEXT).ids


def test_merges_are_never_left_out_at_random(kept):
    """Each machine that prepares the text would have data of its own."""
    plain, made = bpe(), bpe()
    made.model.dropout = 0.9
    assert made.encode(TEXT).ids != plain.encode(TEXT).ids
    found = kept(made).encode(Piece(TEXT.encode(), ends_document=False))
    assert found.tolist() == plain.encode(TEXT).ids


def test_added_tokens_count_and_may_end_documents(kept):
    made = bpe()
    size = made.get_vocab_size()
    made.add_special_tokens([AddedToken("<stop>", special=True)])
    made.add_tokens(["fox jumps"])
    ours = kept(made, "<stop>")
    assert ours.vocab_size == size + 2
    assert ours.entry.end_token == size
    assert size + 1 in ours.encode(Piece(TEXT.encode(), ends_document=False)).tolist()


@pytest.mark.parametrize("number", [LARGEST_OF_TWO_BYTES, LARGEST_OF_TWO_BYTES + 1, 150_000])
def test_a_large_vocabulary_has_four_bytes_a_token(tmp_path, kept, number):
    text = " ".join(f"w{number - 1 - at}" for at in range(400))
    (tmp_path / "text").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "text" / name).write_text(text)
    ours = kept(words(number))
    manifest = prepare(tmp_path / "out", text_source([tmp_path / "text"]), ours, OPTIONS)
    assert manifest.vocab_size == number
    assert manifest.token_bytes == (2 if number == LARGEST_OF_TWO_BYTES else 4)
    with TokenData(tmp_path / "out", manifest) as train:
        assert train.sequences([0])[0].tolist() == [number - 1 - at for at in range(16)]


def test_text_that_a_vocabulary_cannot_write_is_refused(kept):
    for made in (
        Tokenizer(models.WordPiece({"a": 0}, unk_token="[UNK]")),
        Tokenizer(models.Unigram([("a", -1.0)])),
    ):
        ours = kept(made)
        with pytest.raises(SourceError, match=r"falls back to bytes") as caught:
            ours.encode(Piece(b"b", ends_document=True))
        assert "tokenizer.json" in caught.value.expected


def test_a_tokenizer_that_was_never_trained_is_refused(kept):
    with pytest.raises(SourceError, match=r"no token in it"):
        kept(Tokenizer(models.BPE()))


@pytest.mark.parametrize(
    "text",
    [
        '{"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}',
        "[" * 100_000,
    ],
    ids=["a table that is none", "nesting"],
)
def test_a_strangers_file_at_which_the_library_panics_is_refused(tmp_path, text):
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    with pytest.raises(SourceError, match="a tokenizer file of the `tokenizers` library"):
        FileTokenizer(path)


def test_an_expression_that_runs_without_end_is_refused(kept):
    """The library panics after so many tries of a regular expression."""
    made = words(3)
    made.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+$"), "isolated")
    with pytest.raises(SourceError, match="retry-limit"):
        kept(made).encode(Piece(b"a" * 200 + b"!", ends_document=True))
