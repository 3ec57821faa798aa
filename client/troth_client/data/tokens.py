"""Text to token numbers: one token a byte, or a file of the `tokenizers` library.

Owns: the vocabulary and the token that ends a document. Never: reads sources or writes shards.
Next: prepare.py runs a source through a tokenizer.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from troth_client.data.errors import SourceError
from troth_client.data.manifest import (
    MAX_TOKENIZER_BYTES,
    TOKENIZER_FILE,
    Manifest,
    TokenizerEntry,
)
from troth_client.data.sources import Piece
from troth_client.runtime.files import read_file, read_whole

Tokens = NDArray[np.uint32]

_MAX_FOUND = 300
"""Letters of the library's message that an error repeats."""
_COMMON_END_TOKENS = ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "[SEP]")


class Tokenizer(Protocol):
    """Turns pieces of text into tokens."""

    @property
    def entry(self) -> TokenizerEntry:
        """How the manifest describes it."""

    @property
    def vocab_size(self) -> int:
        """Every token is below this number."""

    @property
    def raw(self) -> bytes | None:
        """The file to keep beside the manifest, as it was when its hash was taken."""

    def encode(self, piece: Piece) -> Tokens:
        """Tokens of one piece, with the end token where a document ends."""
        ...


class ByteTokenizer:
    """Vocabulary 256: the token of a byte is its value; NUL, in no text, ends a document."""

    END_TOKEN = 0
    vocab_size = 256
    raw: bytes | None = None
    entry = TokenizerEntry(
        kind="bytes", sha256=hashlib.sha256(b"bytes").hexdigest(), end_token=END_TOKEN
    )

    def encode(self, piece: Piece) -> Tokens:
        """One token a byte."""
        text = piece.text + b"\0" if piece.ends_document else piece.text
        return np.frombuffer(text, np.uint8).astype(np.uint32)


class FileTokenizer:
    """A tokenizer.json of the `tokenizers` library.

    `end_token` names the token that ends a document; without it the usual ones are looked for, and
    a vocabulary that has none of them puts documents end to end.
    """

    def __init__(self, file: Path, end_token: str | None = None) -> None:
        """Load the file. Raises SourceError when it is no tokenizer or lacks the end token.

        Nor may it be longer than what members pass on to others.
        """
        import tokenizers  # noqa: PLC0415  only needed here, and slow to import

        try:
            raw = read_whole(file, MAX_TOKENIZER_BYTES)
        except (OSError, ValueError) as error:
            found = error.strerror if isinstance(error, OSError) else None
            raise SourceError(
                f"a tokenizer file at {file}",
                (found or str(error)).lower(),
                "Correct --tokenizer, or leave it out for one token a byte.",
            ) from error
        with _refusals() as refusal:
            self._tokenizer = tokenizers.Tokenizer.from_str(raw.decode())
        if refusal:
            raise SourceError(
                f"a tokenizer file of the `tokenizers` library at {file}",
                refusal[0] if _is_json(raw) else "text that is not JSON",
                "Name a tokenizer.json, or leave the option out for one token a byte.",
            )
        # Files for classifiers cut or pad every text to one length.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Merges that are left out at random would give other tokens each time.
        if getattr(self._tokenizer.model, "dropout", None):
            self._tokenizer.model.dropout = None
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        if not vocabulary:
            raise SourceError(
                f"a tokenizer with a vocabulary at {file}",
                "no token in it",
                "Name a tokenizer.json that was trained.",
            )
        names = (end_token,) if end_token is not None else _COMMON_END_TOKENS
        self.end_name = next((name for name in names if name in vocabulary), None)
        """The token that ends a document, None where documents run into each other."""
        if end_token is not None and self.end_name is None:
            known = ", ".join(self.special_tokens) or "no special token"
            raise SourceError(
                f"the end token {end_token!r} in {file}",
                f"no such token; it has {known}",
                "Name a token that it has with --end-token.",
            )
        self._file = file
        self.raw: bytes | None = raw
        self.vocab_size = max(vocabulary.values()) + 1
        self.entry = TokenizerEntry(
            kind="tokenizers",
            sha256=hashlib.sha256(raw).hexdigest(),
            end_token=None if self.end_name is None else vocabulary[self.end_name],
        )

    @property
    def special_tokens(self) -> list[str]:
        """The special tokens of the vocabulary, one of which may end documents."""
        added = self._tokenizer.get_added_tokens_decoder()
        return [token.content for _, token in sorted(added.items()) if token.special]

    def encode(self, piece: Piece) -> Tokens:
        """Tokens of the piece, no template tokens added; bytes that are no UTF-8 become U+FFFD.

        Raises SourceError for text that the vocabulary cannot write.
        """
        text, ids = piece.text.decode("utf-8", "replace"), list[int]()
        with _refusals() as refusal:
            ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        if refusal:
            raise SourceError(
                f"a tokenizer that can write all of the text: {self._file}",
                refusal[0],
                "Choose one with an unknown token, or one that falls back to bytes.",
            )
        if piece.ends_document and self.entry.end_token is not None:
            ids.append(self.entry.end_token)
        return np.array(ids, np.uint32)


@contextlib.contextmanager
def _refusals() -> Iterator[list[str]]:
    """Catch whatever the library raises inside, and put its words into the list.

    It raises bare Exception for malformed files and unknown letters. For tables that do not parse,
    and expressions that run too long, it panics: that is a BaseException with no class to name.
    """
    found: list[str] = []
    try:
        yield found
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        found.append(str(error)[:_MAX_FOUND])


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def kept_tokenizer(folder: Path, manifest: Manifest) -> bytes | None:
    """Return the tokenizer.json of a data set; None unless the file there is the manifest's.

    A data set of bytes has no file: its tokenizer is written here.
    """
    if manifest.tokenizer.kind == "bytes":
        return byte_tokenizer_json()
    raw = read_file(folder / TOKENIZER_FILE, MAX_TOKENIZER_BYTES)
    is_named = raw is not None and hashlib.sha256(raw).hexdigest() == manifest.tokenizer.sha256
    return raw if is_named else None


def byte_tokenizer_json() -> bytes:
    """Return ByteTokenizer as a file of the `tokenizers` library, for those who use the model.

    The library writes a byte as a letter that can be printed. Its vocabulary gives each of the 256
    letters the value of its byte, and it merges none.
    """
    from tokenizers import Tokenizer as LibraryTokenizer  # noqa: PLC0415  slow to import
    from tokenizers import decoders, models, pre_tokenizers  # noqa: PLC0415  as above

    vocabulary = {letter: byte for byte, letter in enumerate(_letters())}
    made = LibraryTokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    return made.to_str().encode()


def _letters() -> list[str]:
    """Return the letter of each byte in `tokenizers`: Latin-1 where it prints, else 256 and up."""
    prints = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = count(0x100)
    return [chr(byte if byte in prints else next(others)) for byte in range(256)]
