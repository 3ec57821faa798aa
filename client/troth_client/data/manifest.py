"""The manifest: a small JSON file that names every byte of a token data set.

Owns: its fields, its canonical form and its hash, which the run account holds and which seeds the
order of the sequences. Never: opens a shard (shards.py) or makes one (prepare.py).
Next: shards.py reads sequences that a manifest vouches for; ../run_files/ moves them.

A data set has two splits, `train` and `validation`. A sequence is a row of `sequence_tokens` + 1
tokens, so that it yields `sequence_tokens` predictions; rows lie end to end in the shards and never
straddle two of them. Sequence ids count the rows of a split in shard order. Tokens are unsigned
little-endian integers of `token_bytes` (2 or 4) bytes. A shard travels in pieces of 1 MiB, each of
which has its hash here: so a piece from a stranger is judged by itself.
"""

import json
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from troth_attestation.pieces import piece_hash
from troth_client.data.errors import ManifestError
from troth_client.runtime.files import read_whole
from troth_coordinator.rules.hashing import H, var

FILE_NAME = "manifest.json"
TOKENIZER_FILE: Final = "tokenizer.json"
"""The name of the file in a data set and in an export."""
VERSION: Final = 3
SHARD_SUFFIX: Final = ".bin"
PIECE_BYTES: Final = 2**20
"""The last piece of a shard may be shorter."""
MAX_BYTES: Final = 32 * 2**20
"""A longer manifest is none: this one names half a terabyte."""
MAX_TOKENIZER_BYTES: Final = 64 * 2**20
"""A longer tokenizer.json is none: nobody would pass it on."""
MAX_SHARD_BYTES: Final = 2**40
MAX_SEQUENCE_TOKENS: Final = 2**24 - 1

Split = Literal["train", "validation"]
Sha256Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# A plain name: a manifest from a stranger must not lead out of its folder.
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Count = Annotated[int, Field(gt=0, lt=2**62)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ShardEntry(_Frozen):
    """One file of tokens, and the hashes of its pieces as `troth_attestation.pieces` has them."""

    file: FileName
    pieces: Annotated[tuple[Sha256Hex, ...], Field(min_length=1)]
    tokens: Count


def piece_hashes(raw: bytes) -> tuple[str, ...]:
    """Return the hash of each piece of a shard, as its entry has them."""
    starts = range(0, len(raw), PIECE_BYTES)
    return tuple(piece_hash(raw[start : start + PIECE_BYTES]).hex() for start in starts)


class TokenizerEntry(_Frozen):
    """How text became tokens.

    kind `bytes`: token = byte, 0 ends a document. kind `tokenizers`: a file of that library, kept
    beside the manifest as tokenizer.json. `sha256` is that file's, or that of the word `bytes`.
    """

    kind: Literal["bytes", "tokenizers"]
    sha256: Sha256Hex
    end_token: Annotated[int, Field(ge=0, lt=2**32)] | None


class Manifest(_Frozen):
    """Everything that decides which tokens a sequence id stands for."""

    version: Literal[3] = 3
    vocab_size: Annotated[int, Field(gt=0, le=2**32)]
    token_bytes: Literal[2, 4]
    sequence_tokens: Annotated[int, Field(gt=0, le=MAX_SEQUENCE_TOKENS)]
    num_sequences: Count
    num_validation_sequences: Count
    tokenizer: TokenizerEntry
    train: Annotated[tuple[ShardEntry, ...], Field(min_length=1)]
    validation: Annotated[tuple[ShardEntry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        for split in ("train", "validation"):
            rows = 0
            for shard in self.shards(split):
                if shard.tokens % self.row_tokens:
                    raise ValueError(f"{shard.file}: {shard.tokens} tokens are no whole sequences")
                rows += shard.tokens // self.row_tokens
                self._check_pieces(shard)
            if rows != self.count(split):
                raise ValueError(f"{split} shards hold {rows} sequences, not {self.count(split)}")
        if self.vocab_size > 1 << (8 * self.token_bytes):
            raise ValueError(f"{self.token_bytes} bytes cannot hold {self.vocab_size} tokens")
        _check_names([shard.file for shard in (*self.train, *self.validation)])
        return self

    def _check_pieces(self, shard: ShardEntry) -> None:
        num_bytes = self.num_bytes(shard)
        if num_bytes > MAX_SHARD_BYTES:
            raise ValueError(f"{shard.file}: {num_bytes} bytes are too many for one file")
        wanted = -(-num_bytes // PIECE_BYTES)
        if len(shard.pieces) != wanted:
            raise ValueError(f"{shard.file}: {len(shard.pieces)} pieces, not {wanted}")

    @property
    def row_tokens(self) -> int:
        """Tokens stored per sequence: one more than predictions."""
        return self.sequence_tokens + 1

    def num_bytes(self, shard: ShardEntry) -> int:
        """Return the size of a shard's file."""
        return shard.tokens * self.token_bytes

    def shards(self, split: Split) -> tuple[ShardEntry, ...]:
        """Return the shards of a split, in id order."""
        return self.train if split == "train" else self.validation

    def count(self, split: Split) -> int:
        """Return the number of sequences in a split."""
        return self.num_sequences if split == "train" else self.num_validation_sequences

    @property
    def canonical(self) -> bytes:
        """The JSON that is hashed: sorted keys, no spaces, ASCII."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return text.encode("ascii")

    @property
    def hash(self) -> bytes:
        """H("troth:manifest", var(canonical JSON)), 32 bytes: the data set's name on chain."""
        return H("troth:manifest", var(self.canonical))


def parse_manifest(raw: bytes, where: str) -> Manifest:
    """Return the manifest in these bytes, canonical or not.

    Raises ManifestError, which names `where`: malformed, unknown field, contradictory counts.
    """
    try:
        return Manifest.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ManifestError(
            f"{where} to be a manifest of version {VERSION}",
            f"{place}: {first['msg']}",
            "Prepare the data anew or fetch the run's data folder again.",
        ) from error


def load_manifest(folder: Path, expected_hash: bytes | None = None) -> Manifest:
    """Read a data folder's manifest; with `expected_hash`, insist that it is the run's.

    Raises ManifestError: missing, malformed, unknown field, contradictory counts, other hash.
    """
    path = folder / FILE_NAME
    try:
        raw = read_whole(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        found = error.strerror if isinstance(error, OSError) else str(error)
        raise ManifestError(
            f"a manifest at {path}",
            (found or "an unreadable file").lower(),
            "Name a folder made by `troth data prepare`.",
        ) from error
    manifest = parse_manifest(raw, str(path))
    if expected_hash is not None and manifest.hash != expected_hash:
        raise ManifestError(
            f"the run's data set, manifest hash {expected_hash.hex()}",
            f"{manifest.hash.hex()} in {path}",
            "Use the data folder that the run was created with; other data would be refused work.",
        )
    return manifest


def _check_names(names: list[str]) -> None:
    """Raise ValueError unless each name can be a file of its own in the folder of the set."""
    # Some file systems take names that differ only in case for one file.
    lower = [name.lower() for name in names]
    if len(set(lower)) != len(lower):
        raise ValueError("a shard is named twice")
    for name in lower:
        if not name.endswith(SHARD_SUFFIX):
            raise ValueError(f"{name}: the name of a shard ends with {SHARD_SUFFIX}")
