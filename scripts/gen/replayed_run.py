"""Records a small run, so that tests can replay its state roots from the payloads alone.

python scripts/gen/replayed_run.py      write tests/golden/replayed_run.json.xz

The recording holds gradients of the machine that makes it: another run of this script gives other
bytes, and roots that fit them. Record again only when the protocol's bytes change.
"""

from __future__ import annotations

import asyncio
import base64
import json
import lzma
import random
import sys
import tempfile
from pathlib import Path

from troth_attestation import header as headers
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer
from troth_coordinator.config_files import load_config
from troth_coordinator.rules import bitmap
from troth_simulation.in_process import InProcessRun, run_members

OUT = Path(__file__).parents[2] / "tests/golden/replayed_run.json.xz"
ROUNDS = 20
NAMES = ("ada", "bob", "cyd")
SHAPE = {"vocab_size": 256, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 1}
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16}
WORDS = ("slot", "round", "peer", "root", "vote", "stake", "seed", "tile", "holds", "gives")
SETTINGS = {
    "model": {**SHAPE, **HEADS},
    "data": {"sequence_tokens": 16},
    "demo": {"k": 16},
    "schedule": {
        "rounds": ROUNDS,
        "lr_nano": 5_000_000,
        "warmup_rounds": 3,
        "decay_from_round": 12,
        "wd_nano": 100_000_000,
    },
    "train": {"sequences_per_payload": 2},
    "chain": {"min_members": 2, "ring": 32, "p_base_ppm": 0, "p_new_ppm": 0},
}


async def record(folder: Path) -> dict[str, object]:
    """Play the run; return its config, payloads and roots."""
    draw, texts = random.Random(7), folder / "texts"
    texts.mkdir()
    for number in range(40):
        text = " ".join(draw.choice(WORDS) for _ in range(100))
        (texts / f"text-{number:02d}.txt").write_text(text)
    shape = PrepareOptions(sequence_tokens=16, validation_ppm=100_000)
    manifest = prepare(folder / "data", text_source([texts]), ByteTokenizer(), shape)
    found = load_config([], SETTINGS)
    config = found.config.with_manifest(manifest.hash)
    settings = found.model_copy(update={"config": config})
    data = TokenData(folder / "data", manifest)
    run = await InProcessRun.create(settings, data, folder / "run")
    run.has_blob_folders = True
    await run_members(run, NAMES)
    view = await run.view()
    rounds = await run.client.read_rounds(run.at.run, range(view.run.params.ring))
    byte_of = {path.name: path.read_bytes() for path in (folder / "run").glob("*/blobs/*/*/*-*")}
    told = []
    for one in rounds[:ROUNDS]:
        if one is None:
            raise SystemExit("the ring has dropped a round: record fewer")
        payloads = []
        for index in bitmap.indices_of(one.included):
            signed = byte_of[f"header-{one.ballots[index].header_hash.hex()}"]
            root = headers.decode(signed[: headers.HEADER_BYTES]).payload_root
            payloads.append(base64.b64encode(byte_of[f"payload-{root.hex()}"]).decode())
        told.append(
            {
                "num_trainers": bitmap.count(one.trainers),
                "root": one.canonical_root.hex(),
                "payloads": payloads,
            }
        )
    return {
        "run": bytes(run.at.run).hex(),
        "config": config.model_dump(mode="json"),
        "rounds": told,
        "last_root": view.run.root.hex(),
    }


def main() -> int:
    """Record a run and write it."""
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(record(Path(folder)))
    text = json.dumps(found, sort_keys=True, separators=(",", ":")).encode()
    OUT.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    return 0


if __name__ == "__main__":
    sys.exit(main())
