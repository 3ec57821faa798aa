"""The manifest of a checkpoint on disk: what lies in the folder, and under which root.

Owns: the fields of `manifest.json`, its canonical bytes, and every check of it that needs no
weights. Never: proves anything: the root counts only where the chain names it (`committed.py`).
Next: `shards.py`; `troth_client/checkpoint/folder.py`, which reads and writes the files.
"""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError

from troth_attestation.errors import CheckpointManifestError
from troth_attestation.pieces import PieceList, Shape, StateName, TensorPieces, in_order, num_pieces
from troth_attestation.shards import shards_of
from troth_coordinator.rules.base import FrozenModel
from troth_coordinator.rules.config import ModelSection, RunConfig
from troth_coordinator.rules.errors import ConfigError
from troth_coordinator.rules.hashing import H
from troth_coordinator.rules.ids import Digest

Count = Annotated[int, Field(ge=0, lt=2**64)]
HexDigest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Address58 = Annotated[str, Field(pattern=r"^[1-9A-HJ-NP-Za-km-z]{32,44}$")]
MAX_MANIFEST_BYTES = 256 * 2**20
"""No manifest is longer: one of 256 MiB describes weights of about 15 TB."""


class TensorEntry(FrozenModel):
    """One tensor: the shard that it lies in, and the hashes of its pieces."""

    name: str
    shape: tuple[Count, ...]
    shard: str
    pieces: tuple[HexDigest, ...]


class CheckpointManifest(FrozenModel):
    """The weights on which `round` trains, in files beside this one.

    `program` and `run` are base58 addresses. `cursor` is the cursor before the round; `config` is
    the whole hashed config of the run, the hash of its data set included.
    """

    format: Literal["troth checkpoint 1"] = "troth checkpoint 1"
    program: Address58
    run: Address58
    round: Count
    cursor: Count
    root: HexDigest
    config: RunConfig
    tensors: tuple[TensorEntry, ...]

    @classmethod
    def of(cls, program: str, run: str, config: RunConfig, pieces: PieceList) -> Self:
        """Return the manifest of a state, for the shards that `shards_of` lays out."""
        entries = (
            TensorEntry(
                name=tensor.name,
                shape=tensor.shape,
                shard=shard,
                pieces=tuple(hash_.hex() for hash_ in tensor.hashes),
            )
            for tensor, shard in zip(pieces.tensors, _shard_names(pieces.shapes), strict=True)
        )
        return cls(
            program=program,
            run=run,
            round=pieces.state.round,
            cursor=pieces.state.cursor,
            root=pieces.root.hex(),
            config=config,
            tensors=tuple(entries),
        )

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Return the manifest in these bytes. Raises CheckpointManifestError for any other."""
        if len(data) > MAX_MANIFEST_BYTES:
            raise _wrong(f"at most {MAX_MANIFEST_BYTES} bytes", len(data))
        try:
            found = cls.model_validate_json(data)
            found.config.manifest_digest()
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            raise _wrong(f"{where}: {first['msg']}", repr(first["input"])[:80]) from error
        except ConfigError as error:  # keys that contradict each other, or no data set
            raise _wrong("the config of a run", str(error)) from error
        return found

    def encode(self) -> bytes:
        """Return the canonical JSON: equal states give equal bytes."""
        values = self.model_dump(mode="json")
        return json.dumps(values, separators=(",", ":"), sort_keys=True).encode("ascii") + b"\n"

    def digest(self) -> Digest:
        """Return H("troth:manifest", bytes), which participants announce."""
        return H("troth:manifest", self.encode())

    @property
    def state(self) -> StateName:
        """The round, the cursor and the config hash that the root binds."""
        return StateName(self.round, self.cursor, self.config.config_hash())

    def pieces(self, shapes_of: Callable[[ModelSection], Mapping[str, Shape]]) -> PieceList:
        """Return the piece list, after every check that needs no weights.

        `shapes_of` gives the tensors of a model config. Raises CheckpointManifestError unless
        names, shapes, shards and numbers of pieces are those of the config, and the pieces have
        the root.
        """
        # Before the names of all layers are written out: the config is a stranger's.
        if self.config.model.num_hidden_layers > len(self.tensors):
            raise _wrong(
                f"tensors of {self.config.model.num_hidden_layers} layers", len(self.tensors)
            )
        shapes = shapes_of(self.config.model)
        self._check_tensors(shapes)
        tensors = (
            TensorPieces(one.name, one.shape, tuple(Digest(bytes.fromhex(h)) for h in one.pieces))
            for one in self.tensors
        )
        found = PieceList(self.state, tuple(tensors))
        if found.root.hex() != self.root:
            raise _wrong(f"pieces with the root {self.root}", found.root.hex())
        return found

    def _check_tensors(self, shapes: Mapping[str, Shape]) -> None:
        found, wanted = [one.name for one in self.tensors], in_order(shapes)
        if found != wanted:
            different = (
                sorted(set(found) ^ set(wanted))[:3] or "the same ones, not once or unsorted"
            )
            raise _wrong(f"the {len(wanted)} tensors of the model config, sorted", different)
        for one, shard in zip(self.tensors, _shard_names(shapes), strict=True):
            shape = shapes[one.name]
            for what, expected, value in (
                ("shape", list(shape), list(one.shape)),
                ("shard", shard, one.shard),
                ("number of pieces", num_pieces(shape), len(one.pieces)),
            ):
                if expected != value:
                    raise _wrong(f"{one.name} with the {what} {expected}", str(value)[:80])


def _shard_names(shapes: Mapping[str, Shape]) -> list[str]:
    """Return the shard of each tensor, in canonical order of the tensors."""
    return [shard.file for shard in shards_of(shapes) for _ in shard.offsets]


def _wrong(expected: str, found: object) -> CheckpointManifestError:
    return CheckpointManifestError(
        "manifest", expected, found, "fetch the checkpoint again; nothing of it was used"
    )
