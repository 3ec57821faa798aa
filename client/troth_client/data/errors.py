"""Errors of token data, as one tree.

    DataError
    ├── ManifestError            the manifest is missing, malformed or not the one on chain
    ├── ShardError               a shard cannot be used; `.path` names the file
    │   ├── ShardMissingError
    │   ├── ShardSizeError       truncated or extended
    │   ├── ShardContentError    altered
    │   └── ShardTokenError      as its creator made it, with tokens outside the vocabulary
    ├── SequenceIdError          an id outside the data set
    ├── PieceMissingError        a piece of a shard that nobody has
    └── PrepareError             a data set cannot be prepared
        ├── SourceError          a source that is missing, empty or too small
        └── DatasetsMissingError the optional package is not installed

Owns: the classes. Next: manifest.py, shards.py and prepare.py raise them.
"""

from pathlib import Path

from troth_client.errors import ClientError


class DataError(ClientError):
    """Root of the data errors."""


class ManifestError(DataError):
    """The manifest is missing, malformed, or another one than the run's."""


class ShardError(DataError):
    """A shard that must not be trained on."""

    advice = "Copy this file again from a good source, or run `troth data prepare` anew."

    def __init__(self, path: Path, expected: str, found: str) -> None:
        super().__init__(f"{path} with {expected}", found, self.advice)
        self.path = path


class ShardMissingError(ShardError):
    """The file is not there, or cannot be opened."""


class ShardSizeError(ShardError):
    """The file is shorter or longer than the manifest says."""


class ShardContentError(ShardError):
    """A piece of the file has another hash than in the manifest."""


class ShardTokenError(ShardError):
    """Tokens outside the vocabulary, in bytes that the manifest names: no other copy is better."""

    advice = "The creator of the run prepared this data set wrongly; nobody can train on it."


class SequenceIdError(DataError):
    """A sequence id outside the data set."""


class PieceMissingError(DataError):
    """A piece of a shard that nobody has."""


class PrepareError(DataError):
    """A data set cannot be prepared."""


class SourceError(PrepareError):
    """A source of text is missing, empty, or too small for the requested split."""


class DatasetsMissingError(PrepareError):
    """The source is a Hugging Face data set, and `datasets` is not installed."""
