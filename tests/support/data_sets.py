"""Data sets that nobody should meet: made wrongly under right hashes, or never finished.

Owns: the change of a shard under a manifest that names it; a preparation that is killed.
Next: `data/shards.py`, which reads shards; `data/prepare.py`, which goes on.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from troth_client.data.manifest import FILE_NAME, Manifest, piece_hashes
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import Piece, Source
from troth_client.data.tokens import ByteTokenizer, Tokens


def with_token(folder: Path, manifest: Manifest, place: int, token: int) -> tuple[Manifest, bytes]:
    """Put a token into the first training shard; return its manifest, and the shard's bytes.

    The manifest in the folder becomes the new one: its hash is as good as any.
    """
    entry = manifest.train[0]
    tokens = np.fromfile(folder / entry.file, f"<u{manifest.token_bytes}")
    tokens[place] = token
    raw = tokens.tobytes()
    (folder / entry.file).write_bytes(raw)
    fields = json.loads(manifest.canonical)
    fields["train"][0]["pieces"] = piece_hashes(raw)
    made = Manifest.model_validate_json(json.dumps(fields))
    (folder / FILE_NAME).write_bytes(made.canonical)
    return made, raw


def kill_preparation(
    out: Path, source: Source, num_pieces: int, options: PrepareOptions | None = None
) -> Path:
    """Prepare a data set until so many pieces are read; return the folder that is left."""

    class Killed(ByteTokenizer):
        left = num_pieces

        def encode(self, piece: Piece) -> Tokens:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().encode(piece)

    with pytest.raises(KeyboardInterrupt):
        prepare(out, source, Killed(), options)
    return out.with_name(out.name + ".partial")
