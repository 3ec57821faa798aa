"""Make a token data set: text in, shards and a manifest out.

Owns: the split, the shard files, the order of writes. Never: prints (progress goes to a callback),
or leaves a folder that looks finished and is not. Next: shards.py reads what this wrote.

Work happens in `<folder>.partial`, which becomes `<folder>` by one rename at the end. A killed
preparation that is started again with the same source and options goes on after its last whole
shard. Where a shard is missing or damaged, or another preparation was there, it starts anew.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from troth_client.data.errors import PrepareError, SourceError
from troth_client.data.manifest import (
    FILE_NAME,
    MAX_BYTES,
    MAX_SEQUENCE_TOKENS,
    TOKENIZER_FILE,
    Manifest,
    ShardEntry,
    Split,
    load_manifest,
    piece_hashes,
)
from troth_client.data.partial import (
    LOCK_FILE,
    ORIGIN_FILE,
    RESUME_FILE,
    is_whole,
    partial_folder,
)
from troth_client.data.sources import Piece, Source
from troth_client.data.tokens import Tokenizer, Tokens
from troth_client.runtime.files import FolderLock, atomic_write, explain_full_disk, flush
from troth_client.storage.sealed import Array, DamagedFileError, Record, read_record, write_record

_REPORT_BYTES = 1 << 20
_PIECE_BYTES = 67
"""A piece in a manifest: 64 digits, two quotes and a comma."""
_ENTRY_BYTES = 120
"""The rest of a shard in a manifest, at most."""
_REST_BYTES = 1_000
"""The rest of a manifest, at most."""


@dataclass(frozen=True)
class PrepareOptions:
    """Shape of a data set. Pieces of text are held out until they make `validation_ppm` of it."""

    sequence_tokens: int = 128
    shard_tokens: int = 1 << 24
    validation_ppm: int = 20_000
    limit_bytes: int | None = None


@dataclass(frozen=True)
class PrepareProgress:
    """How far a preparation is; `total_bytes` is None while a streamed source has not ended."""

    done_bytes: int
    total_bytes: int | None
    num_sequences: int


def prepare(
    folder: Path,
    source: Source,
    tokenizer: Tokenizer,
    options: PrepareOptions | None = None,
    report: Callable[[PrepareProgress], None] | None = None,
) -> Manifest:
    """Write a data set to `folder` and return its manifest.

    A folder that already holds exactly this data set is left as it is. Raises PrepareError (the
    folder holds something else, options that make no sense), SourceError (no text, too little, or
    less than a killed preparation has read), DiskFullError, FolderInUseError.
    """
    options, folder = options or PrepareOptions(), folder.resolve()
    _check_options(options)
    origin = _origin(source, tokenizer, options)
    partial = partial_folder(folder)
    _already_there(folder, origin)  # a refusal leaves nothing behind
    with FolderLock(partial, LOCK_FILE), explain_full_disk(partial):
        ready = _already_there(folder, origin)
        if ready is None:
            work = _Work(partial, tokenizer, options, origin)
            work.run(source, report or (lambda _: None))
            ready = work.finish()
            partial.rename(folder)
            flush(folder.parent)
            (folder / LOCK_FILE).unlink()
        else:
            shutil.rmtree(partial)
    return ready


@dataclass
class _Split:
    """The rows of one split that wait for a shard, and the shards written so far."""

    name: Split
    entries: list[ShardEntry] = field(default_factory=list)
    waiting: list[Tokens] = field(default_factory=list)
    num_waiting: int = 0
    num_bytes: int = 0

    def add(self, tokens: Tokens) -> None:
        self.waiting.append(tokens)
        self.num_waiting += len(tokens)

    def take(self, count: int) -> Tokens:
        """Remove and return the oldest `count` waiting tokens."""
        everything = np.concatenate(self.waiting)
        self.waiting = [everything[count:]]
        self.num_waiting -= count
        return everything[:count]


class _SavedSplit(BaseModel):
    """The state of a split in the resume file, beside its waiting tokens."""

    entries: list[ShardEntry]
    num_bytes: int


class _Work:
    """One preparation inside a locked partial folder."""

    def __init__(
        self, folder: Path, tokenizer: Tokenizer, options: PrepareOptions, origin: str
    ) -> None:
        self._folder = folder
        self._tokenizer = tokenizer
        self._options = options
        self._origin = origin
        self._token_bytes = 2 if tokenizer.vocab_size <= 1 << 16 else 4
        self._row = options.sequence_tokens + 1
        self._shard_tokens = max(1, options.shard_tokens // self._row) * self._row
        self._splits = _Split("train"), _Split("validation")
        self._train, self._validation = self._splits
        self._num_pieces = 0
        self._resume()

    def run(self, source: Source, report: Callable[[PrepareProgress], None]) -> None:
        """Tokenise what is left of the source and write every whole shard."""
        total = source.num_bytes
        if total is not None and self._options.limit_bytes is not None:
            total = min(total, self._options.limit_bytes)
        reported = -_REPORT_BYTES
        for piece in self._rest(source.pieces()):
            if self._is_at_limit():
                break
            self._add(piece)
            if self._num_bytes - reported >= _REPORT_BYTES:
                reported = self._num_bytes
                report(self._progress(total))
        report(self._progress(self._num_bytes))

    def _rest(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield the pieces that a killed preparation has not read. Raises SourceError."""
        iterator = iter(pieces)
        for done in range(self._num_pieces):
            if next(iterator, None) is None:
                raise SourceError(
                    f"a source that still has the pieces that were read before: {self._num_pieces}",
                    f"one of {done} pieces: it has changed",
                    f"Remove {self._folder} and repeat the command. --hf-revision pins a data set"
                    " of the hub.",
                )
        return iterator

    def finish(self) -> Manifest:
        """Write the last shards and the manifest; leave nothing else but the lock."""
        for split in self._splits:
            rows = split.num_waiting // self._row
            if rows:
                self._write_shard(split, rows * self._row)
            if not split.entries:
                raise SourceError(
                    f"text for at least one {split.name} sequence of {self._row} tokens",
                    f"too little text: bytes {self._num_bytes}, pieces {self._num_pieces}",
                    "Add more text, or choose shorter sequences with --sequence-tokens.",
                )
        manifest = Manifest(
            vocab_size=self._tokenizer.vocab_size,
            token_bytes=2 if self._token_bytes == 2 else 4,
            sequence_tokens=self._options.sequence_tokens,
            num_sequences=sum(entry.tokens for entry in self._train.entries) // self._row,
            num_validation_sequences=sum(e.tokens for e in self._validation.entries) // self._row,
            tokenizer=self._tokenizer.entry,
            train=tuple(self._train.entries),
            validation=tuple(self._validation.entries),
        )
        if self._tokenizer.raw is not None:
            atomic_write(self._folder / TOKENIZER_FILE, [self._tokenizer.raw])
        atomic_write(self._folder / ORIGIN_FILE, [self._origin.encode()])
        atomic_write(self._folder / FILE_NAME, [manifest.canonical])
        (self._folder / RESUME_FILE).unlink(missing_ok=True)
        return manifest

    @property
    def _num_bytes(self) -> int:
        return self._train.num_bytes + self._validation.num_bytes

    def _is_at_limit(self) -> bool:
        limit = self._options.limit_bytes
        return limit is not None and self._num_bytes >= limit

    def _add(self, piece: Piece) -> None:
        # Hold the next piece out while the share held out is too small: no random draw, and any
        # text of two pieces has both splits.
        due = self._options.validation_ppm * self._num_bytes
        split = self._validation if self._validation.num_bytes * 10**6 < due else self._train
        split.num_bytes += len(piece.text)
        split.add(self._tokenizer.encode(piece))
        self._num_pieces += 1
        if split.num_waiting >= self._shard_tokens:
            while split.num_waiting >= self._shard_tokens:
                self._write_shard(split, self._shard_tokens)
            self._save()

    def _write_shard(self, split: _Split, num_tokens: int) -> None:
        tokens = split.take(num_tokens)
        raw = tokens.astype(f"<u{self._token_bytes}").tobytes()
        name = f"{split.name}-{len(split.entries):05d}.bin"
        atomic_write(self._folder / name, [raw])
        split.entries.append(ShardEntry(file=name, pieces=piece_hashes(raw), tokens=num_tokens))
        self._check_length()

    def _check_length(self) -> None:
        """Refuse a data set whose manifest nobody would take, before more of it is made."""
        entries = [entry for split in self._splits for entry in split.entries]
        num_bytes = sum(_ENTRY_BYTES + _PIECE_BYTES * len(entry.pieces) for entry in entries)
        if num_bytes > MAX_BYTES - _REST_BYTES:
            raise PrepareError(
                f"shards that a manifest of {MAX_BYTES} bytes can name",
                f"more than that after {self._num_bytes} bytes of text",
                "Prepare less text: --limit-bytes ends it.",
            )

    def _progress(self, total: int | None) -> PrepareProgress:
        tokens = sum(entry.tokens for split in self._splits for entry in split.entries)
        tokens += self._train.num_waiting + self._validation.num_waiting
        return PrepareProgress(self._num_bytes, total, tokens // self._row)

    def _save(self) -> None:
        """Record where to go on: everything that the shards on disk do not show."""
        fields: dict[str, str | int] = {"origin": self._origin, "num_pieces": self._num_pieces}
        arrays: dict[str, Array] = {}
        for split in self._splits:
            saved = _SavedSplit(entries=split.entries, num_bytes=split.num_bytes)
            fields[split.name] = saved.model_dump_json()
            arrays[split.name] = np.concatenate([*split.waiting, np.empty(0, np.uint32)])
        write_record(self._folder / RESUME_FILE, Record(fields, arrays))

    def _resume(self) -> None:
        """Take up a killed preparation of the same origin, or start from an empty folder."""
        record, keep = self._saved(), {LOCK_FILE}
        splits = {} if record is None else {s.name: _saved_split(record, s) for s in self._splits}
        shards = [entry for saved in splits.values() for entry in saved.entries]
        if record is not None and all(is_whole(self._folder, entry) for entry in shards):
            self._num_pieces = int(record.fields["num_pieces"])
            for split in self._splits:
                saved = splits[split.name]
                split.entries, split.num_bytes = list(saved.entries), saved.num_bytes
                split.add(record.arrays[split.name].astype(np.uint32))
            keep |= {RESUME_FILE, *(entry.file for entry in shards)}
        for path in self._folder.iterdir():
            if path.name not in keep:
                path.unlink()

    def _saved(self) -> Record | None:
        try:
            record = read_record(self._folder / RESUME_FILE)
        except (FileNotFoundError, DamagedFileError):
            return None
        return record if record.fields["origin"] == self._origin else None


def _saved_split(record: Record, split: _Split) -> _SavedSplit:
    return _SavedSplit.model_validate_json(str(record.fields[split.name]))


def _check_options(options: PrepareOptions) -> None:
    if options.sequence_tokens < 1 or options.shard_tokens < 1:
        raise PrepareError(
            "sequences and shards of at least one token",
            f"{options.sequence_tokens} and {options.shard_tokens} tokens",
            "Leave --sequence-tokens out for the usual length, or raise it.",
        )
    if options.sequence_tokens > MAX_SEQUENCE_TOKENS:
        raise PrepareError(
            f"sequences of at most {MAX_SEQUENCE_TOKENS} tokens",
            str(options.sequence_tokens),
            "Choose shorter sequences with --sequence-tokens.",
        )
    if options.limit_bytes is not None and options.limit_bytes < 1:
        raise PrepareError(
            "a number of bytes as the limit",
            str(options.limit_bytes),
            "Leave --limit-bytes out to take all of the text.",
        )
    if not 0 < options.validation_ppm < 10**6:
        raise PrepareError(
            "a part of the text that is held out: above 0 and below 1000000 millionths",
            str(options.validation_ppm),
            "Write for example --validation-ppm 20000, which holds two per cent out.",
        )


def _origin(source: Source, tokenizer: Tokenizer, options: PrepareOptions) -> str:
    """Describe what a data set is made of, as JSON: the same origin gives the same bytes."""
    return json.dumps(
        {
            "source": source.fingerprint,
            "tokenizer": tokenizer.entry.model_dump(),
            "options": asdict(options),
        },
        sort_keys=True,
    )


def _already_there(folder: Path, origin: str) -> Manifest | None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    origin_file = folder / ORIGIN_FILE
    if origin_file.is_file() and origin_file.read_text() == origin:
        return load_manifest(folder)
    raise PrepareError(
        f"{folder} to be absent, empty or this very data set",
        "something else in it",
        "Choose another folder; this one is left as it is.",
    )
