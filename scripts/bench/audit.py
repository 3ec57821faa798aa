"""How fast a run is audited: `python scripts/bench/audit.py [--rounds 40 200 400 1000]`.

Owns: runs of the demo's model on the real program, with payloads of random signs, and their audits
in processes of their own. Processor seconds of a round are those of the longest run less those of
the one before it: starting costs the same, and an audit of 300 rounds or more compiles its kernels.
Each audit is made twice, and the second one counts. Beside them stand forward and backward passes
of all trainers on as many tokens, in this process with one thread.
Never: a gradient in the runs; an auditor cannot tell. Next: `tests/support/played_runs.py`.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.played_runs import NUM_TRAINERS, PlayedRun  # noqa: E402

from troth_client.data.prepare import PrepareOptions, prepare  # noqa: E402
from troth_client.data.sources import text_source  # noqa: E402
from troth_client.data.tokens import ByteTokenizer  # noqa: E402
from troth_client.model.init import initial_weights  # noqa: E402
from troth_client.model.weights import build  # noqa: E402
from troth_client.train.step import gradient  # noqa: E402
from troth_coordinator.config_files import load_config  # noqa: E402
from troth_coordinator.rules.config import RunConfig  # noqa: E402

CONFIG = ROOT / "client/troth_cli/demo/demo.toml"
TOKENS = 8_192
PASSES = 5


@dataclass(frozen=True)
class Audited:
    """One audit: seconds of the clock and of the processor, and the peak of its memory."""

    rounds: int
    seconds: float
    cpu_seconds: float
    peak_mib: float


def main() -> None:
    """Play and audit runs of each length, and print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, nargs="+", default=[40, 200, 400, 1_000])
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = [audited(rounds) for rounds in sorted(options.rounds)]
    for one in found:
        print(json.dumps(asdict(one)), flush=True)
    if len(found) == 1:
        return
    shorter, longest = found[-2:]
    more = longest.rounds - shorter.rounds
    audit = (longest.cpu_seconds - shorter.cpu_seconds) / more
    training = training_seconds()
    print(
        json.dumps(
            {
                "audit_cpu_seconds_a_round": audit,
                "training_cpu_seconds_a_round": training,
                "ratio": training / audit,
            }
        )
    )


def audited(rounds: int) -> Audited:
    """Play a run of so many rounds and audit it in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "archive"
        play(rounds, Path(scratch), folder)
        command = [sys.executable, "-c", CHILD, str(folder)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        for _ in range(2):
            start = time.monotonic()
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            seconds = time.monotonic() - start
    cpu, peak = json.loads(done.stdout.splitlines()[-1])
    return Audited(rounds, seconds, cpu, peak)


# A process inherits the peak of whoever forked it in its resource usage, but not in its status.
CHILD = """
import json, re, resource, sys
from pathlib import Path
from troth_cli.main import run
code = run(["audit", "--archive", sys.argv[1], "--json"])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(json.dumps([used.ru_utime + used.ru_stime, int(peak[1]) / 1024]))
sys.exit(code)
"""


def play(rounds: int, scratch: Path, folder: Path) -> None:
    """Play a run of the demo's model into an archive."""
    source, options = text_source([ROOT / "docs"]), PrepareOptions(sequence_tokens=128)
    manifest = prepare(scratch / "data", source, ByteTokenizer(), options)
    folder.mkdir()
    changes = {"schedule": {"rounds": rounds, "decay_from_round": rounds}}
    run = PlayedRun(load_config([CONFIG], changes).config, manifest, rounds, folder)
    run.play_all()
    asyncio.run(run.archive())


def training_seconds() -> float:
    """Return the processor seconds of forward and backward pass of all trainers in one round."""
    config: RunConfig = load_config([CONFIG]).config
    model = build(config.model, initial_weights(bytes(32), config.model))
    sequences = TOKENS // config.data.sequence_tokens // NUM_TRAINERS
    drawn = np.random.default_rng(0)
    shape = (sequences, config.data.sequence_tokens + 1)
    batch = drawn.integers(0, config.model.vocab_size, shape)
    train = config.train

    def one_pass() -> None:
        for _ in range(NUM_TRAINERS):
            gradient(model, batch, train.microbatch_sequences, train.clip_micro)

    one_pass()
    before = cpu_seconds()
    for _ in range(PASSES):
        one_pass()
    return (cpu_seconds() - before) / PASSES


def cpu_seconds() -> float:
    """Return what this process has used of processors."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
