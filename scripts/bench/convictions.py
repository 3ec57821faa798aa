"""Rounds until a cheat is convicted: `python scripts/bench/convictions.py [--seeds N] [KIND …]`.

Owns: whole runs in one process with one cheat among honest members, a seed each, until it is
convicted; the measured rounds beside the closed formula of `rules/economics.py`; the table.
Never: chooses when a cheat is sampled; the seeds of the chain do.
Next: `localnet/troth_localnet/faults/catalogue.py` for the cheats; docs/results.md for the table.

Every run is a line of JSON in --out; a run that is there already is not played again.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import torch
from solders.pubkey import Pubkey

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.state import Float32
from troth_client.assembly import Doors
from troth_client.audit.judgement import Evidence, Judgement, make_verdict
from troth_client.audit.recompute import recompute, recompute_reference
from troth_client.cli.demo.cheats import cheating
from troth_client.cli.inprocess import InProcessRun, Member
from troth_client.clock import Clock, Work
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.event_types_audits import AuditSettled, CaseSettled
from troth_coordinator.chain.events import EventLog
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.economics import detection, rounds_to_capture
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.view import NetworkView, Role
from troth_localnet.faults.catalogue import CHEATS
from troth_localnet.faults.cheat import Hidden
from troth_localnet.faults.work import Batch
from troth_localnet.history import LandedTransaction

P = ParamSpec("P")
T = TypeVar("T")
PPM = 10**6
WORDS = ("slot", "round", "peer", "root", "vote", "stake", "seed", "tile", "holds", "gives", "not")
TOKENS = 16
MODEL = {
    "vocab_size": 256,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": TOKENS,
}
WINDOWS = {
    "commit_slots": 40,
    "attest_slots": 30,
    "close_grace_slots": 5,
    "warmup_slots": 20,
    "openings_slots": 10,
    "verdict_commit_slots": 12,
    "verdict_reveal_slots": 10,
    "committee_commit_slots": 12,
    "committee_reveal_slots": 10,
    "case_slots": 40,
}
PATIENT = {"verdict_commit_slots": 36}
"""Where nothing is served, seats wait for two thirds of it, and then speak one by one."""
BOTH = Role.TRAINER | Role.WITNESS
HONEST = {"ada": BOTH, "bob": Role.WITNESS, "cyd": Role.WITNESS, "dan": Role.WITNESS}
"""Four may judge, one of them trains too; more would only take longer. The cheat trains only."""
SAMPLING = {"new": 500_000, "base": 100_000}
"""p_new and p_base of the localnet preset: the first 20 included rounds, and all later ones."""
MOST_ROUNDS = {"new": 80, "base": 120}
ENOUGH_ROUNDS = 24
"""For those that nothing catches."""
GUILTY = ("CONVICTED", AuditOutcome.NO_OPENINGS.name)


@dataclass(frozen=True)
class Trial:
    """One run. Rounds count from the first payload of the cheat, which is 1.

    `convicted` is the round whose payload it was convicted for, `slashed` the round under way when
    its stake was taken; 0 where that did not happen. `outcomes` of the audits of its payloads up to
    the convicted one: of later ones only the quick would be known.
    """

    kind: str
    sampling: str
    seed: int
    convicted: int
    slashed: int
    outcomes: dict[str, int]


def make_data(folder: Path) -> TokenData:
    """Write some thousand sequences of words and return them as tokens."""
    draw = random.Random(7)
    folder.mkdir()
    for number in range(40):
        text = " ".join(draw.choice(WORDS) for _ in range(1_000))
        (folder / f"text-{number:02d}.txt").write_text(text)
    shape = PrepareOptions(sequence_tokens=TOKENS, validation_ppm=100_000)
    manifest = prepare(folder / "out", text_source([folder]), ByteTokenizer(), shape)
    return TokenData(folder / "out", manifest)


def settings_of(data: TokenData, kind: str, sampling: str) -> RunSettings:
    """Return a run that is sampled as newcomers or as long-standing members are."""
    patience = PATIENT if CHEATS[kind].hides is Hidden.OPENINGS else {}
    chain = {"min_members": 4, "p_new_ppm": SAMPLING[sampling], **WINDOWS, **patience}
    found = load_config(
        [],
        {
            "model": MODEL,
            "data": {"sequence_tokens": TOKENS},
            "demo": {"k": 8},
            "schedule": {"rounds": 1_000, "lr_nano": 3_000_000},
            "train": {"sequences_per_payload": 8, "microbatch_sequences": 8},
            "chain": chain,
        },
    )
    bound = found.config.with_manifest(data.manifest.hash)
    return found.model_copy(update={"config": bound})


class Shared:
    """What honest judges of one audit compute is the same: it is computed once for all of them."""

    def __init__(self) -> None:
        self._known: dict[object, object] = {}

    def clock(self, doors: Doors) -> Clock:
        """Return a member's clock that looks here first."""
        return SharingClock(doors.clock, self)

    def find(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a function, computed now or, of the judge's, before."""

        def compute() -> T:
            return function(*args, **kwargs)

        if function in (recompute, recompute_reference):
            return self._once((function, cast(Batch, args[2]).tobytes()), compute)
        if function is make_verdict:
            evidence, gradient = cast(Evidence, args[0]), cast(Float32, args[1])
            of = (evidence.header.round, evidence.header.index, evidence.openings)
            found = cast(Judgement, self._once((*of, gradient.tobytes()), compute))
            statement = replace(found.statement, witness=cast(int, args[3]))
            return cast(T, replace(found, statement=statement))
        return compute()

    def _once(self, key: object, compute: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = compute()
        return cast(T, self._known[key])


class SharingClock:
    """A clock whose member computes what no other has computed before."""

    def __init__(self, clock: Clock, shared: Shared) -> None:
        self._clock = clock
        self._shared = shared

    async def wait(self, work: Work[T] = ()) -> None:
        """Wait as the clock does."""
        await self._clock.wait(work)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Compute a function unless its result is known."""
        return self._shared.find(function, *args, **kwargs)

    async def beside(self, work: Awaitable[T]) -> T:
        """Work beside the waiting as the clock does."""
        return await self._clock.beside(work)

    def seconds(self) -> float | None:
        """Return what the clock does."""
        return self._clock.seconds()


async def play(data: TokenData, kind: str, sampling: str, seed: int) -> Trial:
    """Play one run until the cheat is convicted, or for as many rounds as there are."""
    with tempfile.TemporaryDirectory() as folder:
        return await _play(data, Path(folder), Trial(kind, sampling, seed, 0, 0, {}))


async def _play(data: TokenData, folder: Path, unknown: Trial) -> Trial:
    kind, seed = unknown.kind, unknown.seed
    run = await InProcessRun.create(
        settings_of(data, kind, unknown.sampling), data, folder, seed=seed
    )
    cheat = CHEATS[kind]
    shared = Shared()
    run.wrap = lambda one, doors: (
        cheating(cheat, doors) if one.name == kind else replace(doors, clock=shared.clock(doors))
    )
    for name, roles in HONEST.items():
        await run.add(name, roles)
    culprit = await run.add(kind, Role.TRAINER)
    for member in run.members:
        await run.start(member)
    try:
        return await follow(run, culprit, unknown)
    finally:
        await run.close()


async def follow(run: InProcessRun, culprit: Member, unknown: Trial) -> Trial:
    """Let slots pass until it is over; return what happened to the cheat."""
    cheat = CHEATS[unknown.kind]
    most = MOST_ROUNDS[unknown.sampling] if cheat.fault else ENOUGH_ROUNDS
    honest = [one for one in run.members if one is not culprit]
    record = Record(culprit.index)
    run.chain.observers.append(record)
    run.clock.join()
    try:
        while True:
            await run.clock.wait()
            for task in [one.task for one in honest]:
                raise_failure(task)
            now = (await run.client.read_run(run.at.run)).round
            found = record.trial(unknown, now)
            if found.convicted or now - cheat.honest_rounds >= most:
                return found
    finally:
        run.clock.leave()


def raise_failure(task: "asyncio.Task[NetworkView] | None") -> None:
    """Raise what ended somebody honest."""
    if task is not None and task.done():
        task.result()


class Record:
    """What the program said about the audits of one participant, as transactions land."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._log = EventLog(program_codec())
        self.settled: dict[int, int] = {}
        self.decided: dict[int, int] = {}

    def slot_opened(self, slot: int, parent: int) -> None:
        """Nothing is decided by time alone."""

    def transaction_landed(self, landed: LandedTransaction, changed: Sequence[Pubkey]) -> None:
        """Take down the outcomes of audits and cases."""
        for event in self._log.read(landed.outcome.logs).events:
            if isinstance(event, AuditSettled) and event.target == self._target:
                self.settled[event.round] = event.outcome
            elif isinstance(event, CaseSettled) and event.target == self._target:
                self.decided[event.round] = event.outcome

    def trial(self, unknown: Trial, now: int) -> Trial:
        """Return the run as far as it has come, in round `now`."""
        first = CHEATS[unknown.kind].honest_rounds
        outcomes = {
            round_: "CONVICTED"
            if self.decided.get(round_) == CaseOutcome.CONVICTED
            else AuditOutcome(outcome).name
            for round_, outcome in self.settled.items()
            if round_ >= first and (outcome != AuditOutcome.ACCUSED or round_ in self.decided)
        }
        guilty = [round_ for round_, outcome in outcomes.items() if outcome in GUILTY]
        last = min(guilty, default=now)
        return replace(
            unknown,
            convicted=last - first + 1 if guilty else 0,
            slashed=now - first + 1 if guilty else 0,
            outcomes=dict(Counter(what for round_, what in outcomes.items() if round_ <= last)),
        )


def row(trials: Sequence[Trial]) -> str:
    """Return one line of the table."""
    kind, sampling = trials[0].kind, trials[0].sampling
    p_ppm = SAMPLING[sampling]
    audits: Counter[str] = Counter()
    for trial in trials:
        audits.update(trial.outcomes)
    guilty = audits["CONVICTED"] + audits["NO_OPENINGS"]
    power_ppm = PPM * guilty // max(1, audits.total())
    caught = sorted(trial.convicted for trial in trials if trial.convicted)
    fault = CHEATS[kind].fault or "none"
    head = f"| {kind} | {p_ppm / PPM:.2f} | {fault} | {len(caught)} of {len(trials)} "
    head += f"| {guilty} of {audits.total()}"
    d = detection(p_ppm, power_ppm, 0)
    if not caught or not d:
        return f"{head} | - | - | - | - | - |"
    late = statistics.mean(trial.slashed - trial.convicted for trial in trials if trial.convicted)
    return (
        f"{head} | {float(1 / d):.1f} | {statistics.mean(caught):.1f} | {rounds_to_capture(d)} | "
        f"{caught[-1 - len(caught) // 20]} | {late:.1f} |"
    )


HEAD = """\
| cheat | p | fault | caught | audits lost | mean: formula | measured | 95 %: formula | measured \
| to the slash |
|---|---|---|---|---|---|---|---|---|---|"""


def main() -> int:
    """Play what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(CHEATS), metavar="KIND")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sampling", choices=SAMPLING, default="new")
    parser.add_argument("--out", type=Path, default=Path("runs/convictions.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.touch()
    wanted = [(k, arguments.sampling, s) for k in arguments.kinds for s in range(arguments.seeds)]
    known = read(arguments.out)
    with tempfile.TemporaryDirectory() as folder:
        data = make_data(Path(folder) / "data")
        for number, key in enumerate(wanted):
            if key in known:
                continue
            known[key] = asyncio.run(play(data, *key))
            with arguments.out.open("a") as out:
                out.write(json.dumps(asdict(known[key])) + "\n")
            print(f"{number + 1} of {len(wanted)}: {known[key]}", file=sys.stderr, flush=True)
    print(HEAD)
    for kind in arguments.kinds:
        print(row([known[key] for key in wanted if key[0] == kind]))
    return 0


def read(path: Path) -> dict[tuple[str, str, int], Trial]:
    """Return the runs that were played before."""
    trials = [Trial(**json.loads(line)) for line in path.read_text().splitlines()]
    return {(trial.kind, trial.sampling, trial.seed): trial for trial in trials}


if __name__ == "__main__":
    sys.exit(main())
