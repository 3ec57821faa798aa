"""How fast a run is audited: `python scripts/bench/audit.py [--demo runs/demo-.../archive]`.

Owns: runs of the demo's model on the real program, with payloads of random signs, and their audits
in processes of their own. Processor seconds of a round are the difference of two runs on the same
path, by the rounds between them: starting costs the same. Short runs take numpy and torch, long
ones compiled kernels. Audits of all runs take turns; the first turn only fills caches, and the
least figure of the others counts. The archive of a demo is audited with its opening sets and
without: the difference is their cost. Beside them stand forward and backward passes of all
trainers, with one thread.
Never: a gradient in the played runs; an auditor cannot tell. Next: `tests/support/played_runs.py`.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
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
from troth_client.state.audited import MANY_ROUNDS, SOME_ROUNDS  # noqa: E402
from troth_client.train.step import gradient  # noqa: E402
from troth_coordinator.config_files import load_config  # noqa: E402
from troth_coordinator.rules.config import RunConfig  # noqa: E402

CONFIG = ROOT / "client/troth_cli/demo/demo.toml"
TOKENS = (8_192, 2_048)
"""Of a round of training: a larger one, and the demo's own, whose payloads are audited."""
PASSES = 5
USUAL_SETS = 0.4
"""Opening sets in a round of four trainers with the default rate, once they are not new."""


@dataclass(frozen=True)
class Audited:
    """Audits of one archive: seconds of the clock and of the processor, and the peak of memory."""

    seconds: float
    cpu_seconds: float
    peak_mib: float
    num_rounds: int
    num_opened: int


def main() -> None:
    """Play and audit runs of each length, and print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, nargs="+", default=[40, SOME_ROUNDS - 5, 400, 1_000])
    parser.add_argument("--demo", type=Path, help="the archive of a demo, with opening sets")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folders = {str(rounds): Path(scratch) / str(rounds) for rounds in sorted(options.rounds)}
        for rounds, folder in folders.items():
            play(int(rounds), folder)
        if options.demo is not None:
            folders |= {"demo": options.demo, "demo, no sets": Path(scratch) / "bare"}
            left_out = shutil.ignore_patterns("openings")
            shutil.copytree(options.demo, folders["demo, no sets"], ignore=left_out)
        found = audited(folders, options.turns)
    for name, one in found.items():
        show(archive=name, **asdict(one))
    training = {tokens: training_seconds(tokens) for tokens in TOKENS}
    for tokens, seconds in training.items():
        show(tokens=tokens, training_cpu_seconds_a_round=seconds)
    played = [found[str(rounds)] for rounds in sorted(options.rounds)]
    short = marginal([one for one in played if one.num_rounds < SOME_ROUNDS])
    long = marginal([one for one in played if one.num_rounds >= MANY_ROUNDS])
    opened, a_set = 0.0, 0.0
    if options.demo is not None:
        demo, bare = found["demo"], found["demo, no sets"]
        opened = demo.num_opened / demo.num_rounds
        a_set = (demo.cpu_seconds - bare.cpu_seconds) / demo.num_opened
        show(sets_a_round=opened, cpu_seconds_a_set=a_set)
    for path, a_round in (("numpy and torch", short), ("kernels", long)):
        for sets in [0.0, USUAL_SETS, opened] if a_round and a_set else [0.0] if a_round else []:
            cost = a_round + sets * a_set
            ratios = {f"ratio_at_{n}_tokens": seconds / cost for n, seconds in training.items()}
            show(path=path, sets=sets, audit_cpu_seconds_a_round=cost, **ratios)


def show(**values: object) -> None:
    """Print one line of JSON."""
    print(json.dumps(values), flush=True)


def marginal(found: list[Audited]) -> float:
    """Return the processor seconds of a round between the two longest runs; 0 for fewer."""
    if len(found) < 2:
        return 0.0
    shorter, longest = found[-2:]
    more = longest.num_rounds - shorter.num_rounds
    return (longest.cpu_seconds - shorter.cpu_seconds) / more


def audited(folders: dict[str, Path], num_turns: int) -> dict[str, Audited]:
    """Audit archives in turns, each in a process of its own."""
    command = [sys.executable, "-c", CHILD]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    taken: dict[str, list[list[float]]] = {name: [] for name in folders}
    for _ in range(num_turns + 1):
        for name, folder in folders.items():
            start = time.monotonic()
            done = subprocess.run(
                [*command, str(folder)], env=environment, check=True, stdout=subprocess.PIPE
            )
            seconds = time.monotonic() - start
            taken[name].append([seconds, *json.loads(done.stdout.splitlines()[-1])])
    # Other work of the machine can only add to these.
    least = {name: np.min(turns[1:], axis=0).tolist() for name, turns in taken.items()}
    return {name: Audited(*one[:3], int(one[3]), int(one[4])) for name, one in least.items()}


# A process inherits the peak of whoever forked it in its resource usage, but not in its status.
CHILD = """
import contextlib, io, json, re, resource, sys
from pathlib import Path
from troth_cli.main import run
told = io.StringIO()
with contextlib.redirect_stdout(told):
    code = run(["audit", "--archive", sys.argv[1], "--json"])
counts = json.loads(told.getvalue())["counts"]
used = resource.getrusage(resource.RUSAGE_SELF)
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
cpu = used.ru_utime + used.ru_stime
print(json.dumps([cpu, int(peak[1]) / 1024, counts["applied_rounds"], counts["exact_tests"]]))
sys.exit(code)
"""


def play(rounds: int, folder: Path) -> None:
    """Play a run of the demo's model into an archive."""
    source, options = text_source([ROOT / "docs"]), PrepareOptions(sequence_tokens=128)
    folder.mkdir()
    manifest = prepare(folder / "data", source, ByteTokenizer(), options)
    changes = {"schedule": {"rounds": rounds, "decay_from_round": rounds}}
    run = PlayedRun(load_config([CONFIG], changes).config, manifest, rounds, folder)
    run.play_all()
    asyncio.run(run.archive())


def training_seconds(tokens: int) -> float:
    """Return the processor seconds of forward and backward pass of all trainers in one round."""
    config: RunConfig = load_config([CONFIG]).config
    model = build(config.model, initial_weights(bytes(32), config.model))
    sequences = tokens // config.data.sequence_tokens // NUM_TRAINERS
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
