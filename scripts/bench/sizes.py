"""Memory and time of a member at the sizes of the presets: `python scripts/bench/sizes.py 25m`.

Owns: one process for each preset. A trainer makes, encodes and applies payloads with the client's
own parts and files until it holds all that it keeps in memory. Then its sequences are as long as
the preset's. In each round it recomputes a gradient as a witness, too, beside its own. The numbers
are of the processor, in fp32, with one thread for each gradient and two microbatches a payload.
Never: a chain or a GPU.
Next: `memory.py` for the trainer; `scripts/gen/sizes.py`, which writes the README's table.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from pathlib import Path

import torch
from memory import Batch, Participant, drawn

from troth_client.audit.recompute import recompute
from troth_client.compression.codec import VerifiedPayload
from troth_client.participant.measuring import RandomTokens, peak_bytes
from troth_client.runtime.allocator import keep_freed_memory
from troth_client.state.kept_weights import KeptWeights
from troth_client.state.past_states import MEMORY_BYTES
from troth_coordinator.config_files import load_config

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "scripts/gen/sizes.json"
FEW = 17
"""Tokens of a sequence while memory fills, so that activations weigh nothing."""
TIMES = 2
"""Rounds with whole sequences: the peaks of trainer and judge need not meet in the first."""


def main() -> None:
    """Measure presets in processes of their own, and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("presets", nargs="*", default=["25m", "124m"], help="like 25m")
    parser.add_argument("--turns", type=int, default=3, help="of them the highest peak counts")
    parser.add_argument("--here", action="store_true", help="in this process; keep nothing")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measured(options.presets[0])))
        return
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in options.presets:
        found = [asked(name) for _ in range(options.turns)]
        print(name, [f"{one['peak_bytes'] / 1e9:.2f} GB" for one in found], flush=True)
        kept[name] = max(found, key=itemgetter("peak_bytes"))
        KEPT.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")


def asked(name: str) -> dict[str, float]:
    """Return the measurements of a preset in a process of its own."""
    command = [sys.executable, __file__, name, "--here"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measured(name: str) -> dict[str, float]:
    """Return the peaks of a preset's member, and what of them does not depend on the model."""
    keep_freed_memory()
    torch.set_num_threads(1)
    settings = load_config([ROOT / f"configs/{name}.toml"])
    config, keep = settings.config.with_manifest(bytes(32)), settings.chain.keep_rounds
    before, train = peak_bytes(), config.train
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        one = Participant.of(config, Path(folder), "trainer", keep, MEMORY_BYTES)
        layout = one.replica.layout
        other = drawn(layout.num_tiles, config.demo.k)
        num_sequences = min(train.sequences_per_payload, 2 * train.microbatch_sequences)
        words = RandomTokens(config).sequences(range(num_sequences))
        for _ in range(keep + 1):
            train_and_judge(one, other, words[:1, :FEW])
        held = peak_bytes()
        began = time.perf_counter()
        one.work(one.residual).gradient(words)
        seconds = time.perf_counter() - began
        for _ in range(TIMES):
            train_and_judge(one, other, words)
    tokens = num_sequences * config.data.sequence_tokens
    return {
        "base_bytes": before,
        "held_bytes": held,
        "peak_bytes": peak_bytes(),
        "num_parameters": layout.num_parameters,
        "tokens": tokens,
        "gflops": round(6 * layout.num_parameters * tokens / seconds / 1e9, 1),
    }


def train_and_judge(one: Participant, other: VerifiedPayload, words: Batch) -> None:
    """Play a round, and meanwhile recompute the same sequences on kept weights, as a witness."""
    round_, root = one.replica.round, one.replica.root()

    def judge() -> None:
        kept = KeptWeights(one.store, one.config.config_hash()).load(round_, root)
        recompute(one.config, kept.tensors, words)

    with ThreadPoolExecutor(1) as witness:
        judged = witness.submit(judge)
        one.round(other, "trainer", words)
        judged.result()


if __name__ == "__main__":
    main()
