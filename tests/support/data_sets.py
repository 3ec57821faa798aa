"""Data sets that a creator made wrongly, and whose hashes are right all the same.

Owns: the change of a shard under a manifest that names it. Next: `data/shards.py`, which reads it.
"""

import json
from pathlib import Path

import numpy as np

from troth_attestation.pieces import piece_hash
from troth_client.data.manifest import FILE_NAME, PIECE_BYTES, Manifest


def with_token(folder: Path, manifest: Manifest, place: int, token: int) -> tuple[Manifest, bytes]:
    """Put a token into the first training shard; return its manifest, and the shard's bytes.

    The manifest in the folder becomes the new one: its hash is as good as any.
    """
    entry = manifest.train[0]
    tokens = np.fromfile(folder / entry.file, f"<u{manifest.token_bytes}")
    tokens[place] = token
    raw = tokens.tobytes()
    (folder / entry.file).write_bytes(raw)
    starts = range(0, len(raw), PIECE_BYTES)
    pieces = [piece_hash(raw[start : start + PIECE_BYTES]).hex() for start in starts]
    fields = json.loads(manifest.canonical)
    fields["train"][0]["pieces"] = pieces
    made = Manifest.model_validate_json(json.dumps(fields))
    (folder / FILE_NAME).write_bytes(made.canonical)
    return made, raw
