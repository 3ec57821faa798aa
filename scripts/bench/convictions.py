"""Rounds until a cheat is convicted: `python scripts/bench/convictions.py [--seeds N] [KIND …]`.

Owns: whole runs in one process with one cheat among honest members, a seed each, until it is
convicted; the measured rounds beside the closed formula of `rules/economics.py`; the table.
Never: chooses when a cheat is sampled; the seeds of the chain do.
Next: `localnet/troth_simulation/cheats/catalogue.py` for the cheats; docs/results.md for the table.

Every run is a line of JSON in --out; a run that is there already is not played again.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch
from solders.pubkey import Pubkey
from whole_runs import Journal, model_of, prepared, settings_on

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_client.data.prepare import PrepareOptions
from troth_client.data.shards import TokenData
from troth_client.data.sources import text_source
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.event_types_audits import AuditSettled, CaseSettled, Penalised
from troth_coordinator.chain.event_types_rounds import RoundSettled
from troth_coordinator.chain.events import EventReader
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.economics import detection, rounds_to_capture
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.view import NetworkView, Role
from troth_localnet.direct import record_of
from troth_localnet.history import LandedTransaction
from troth_simulation.cheats.catalogue import CHEATS
from troth_simulation.cheats.ports import cheating
from troth_simulation.in_process import InProcessRun, SimulatedMember

PPM = 10**6
WORDS = ("slot", "round", "peer", "root", "vote", "stake", "seed", "tile", "holds", "gives", "not")
TOKENS = 16
WINDOWS = {
    "commit_slots": 40,
    "attest_slots": 30,
    "close_grace_slots": 5,
    "warmup_slots": 20,
    "openings_slots": 10,
    "verdict_commit_slots": 12,
    "verdict_reveal_slots": 10,
    "jury_commit_slots": 12,
    "jury_reveal_slots": 10,
    "case_slots": 40,
}
BOTH = Role.TRAINER | Role.WITNESS
HONEST = {"ada": BOTH, "bob": Role.WITNESS, "cyd": Role.WITNESS, "dan": Role.WITNESS}
"""Four may judge, one of them trains too; more would only take longer. The cheat trains; it
judges only to lie on juries."""
SAMPLING = {"new": 500_000, "base": 100_000}
"""p_new and p_base of the localnet preset: the first 20 included rounds, and all later ones."""
MOST_ROUNDS = {"new": 80, "base": 120}
ENOUGH_ROUNDS = 24
"""For those that nothing catches."""
STRIKES = 3
"""P4: so many payloads that nobody could fetch, and their sender is jailed."""
GUILTY = ("CONVICTED", "NO_OPENINGS", "JAILED")


@dataclass(frozen=True)
class Trial:
    """One run. Rounds count from the first payload of the cheat, which is 1.

    `convicted` is the round whose payload cost it its stake, or its place (P4); `slashed` the round
    under way when that was decided; 0 where that did not happen. `outcomes` of the audits of its
    payloads, or of payloads that nobody got, up to that round: of later ones only the quick would
    be known. `fines` were taken from honest members, by penalties small or large.
    """

    kind: str
    sampling: str
    seed: int
    convicted: int = 0
    slashed: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    fines: int = 0
    seconds: float = 0.0


def make_data(folder: Path) -> TokenData:
    """Write some thousand sequences of words and return them as tokens."""
    draw = random.Random(7)
    folder.mkdir()
    for number in range(40):
        text = " ".join(draw.choice(WORDS) for _ in range(1_000))
        (folder / f"text-{number:02d}.txt").write_text(text)
    shape = PrepareOptions(sequence_tokens=TOKENS, validation_ppm=100_000)
    return prepared(folder / "out", text_source([folder]), shape)


def settings_of(data: TokenData, sampling: str) -> RunSettings:
    """Return a run that is sampled as newcomers or as long-standing members are."""
    changes = {
        "model": model_of(width=16, layers=2, tokens=TOKENS),
        "data": {"sequence_tokens": TOKENS},
        "demo": {"k": 8},
        "schedule": {"rounds": 1_000, "lr_nano": 3_000_000},
        "train": {"sequences_per_payload": 8, "microbatch_sequences": 8},
        "chain": {"min_members": 4, "p_new_ppm": SAMPLING[sampling], **WINDOWS},
    }
    return settings_on(data, changes)


async def play(data: TokenData, kind: str, sampling: str, seed: int) -> Trial:
    """Play one run until the cheat is convicted, or for as many rounds as there are."""
    begun, cheat = time.monotonic(), CHEATS[kind]
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_of(data, sampling)
        run = await InProcessRun.create(settings, data, Path(folder), seed=seed)
        run.wrap = lambda one, ports: cheating(cheat, ports) if one.name == kind else ports
        for name, roles in HONEST.items():
            await run.add(name, roles)
        culprit = await run.add(kind, cheat.role)
        for member in run.members:
            await run.start(member)
        try:
            found = await follow(run, culprit, Trial(kind, sampling, seed))
        finally:
            await run.close()
    return replace(found, seconds=round(time.monotonic() - begun, 1))


async def follow(run: InProcessRun, culprit: SimulatedMember, unknown: Trial) -> Trial:
    """Let slots pass until it is over; return what happened to the cheat."""
    cheat = CHEATS[unknown.kind]
    most = MOST_ROUNDS[unknown.sampling] if cheat.fault else ENOUGH_ROUNDS
    honest = [one for one in run.members if one is not culprit]
    record = Record(culprit.index)
    run.chain.observers.append(record)
    run.runtime.join()
    try:
        while True:
            await run.runtime.wait()
            for task in [one.task for one in honest]:
                raise_failure(task)
            now = (await run.client.read_run(run.at.run)).round
            found = record.trial(unknown, now)
            if found.convicted or now - cheat.honest_rounds >= most:
                return found
    finally:
        run.runtime.leave()


def raise_failure(task: "asyncio.Task[NetworkView] | None") -> None:
    """Raise what ended somebody honest."""
    if task is not None and task.done():
        task.result()


class Record:
    """The program's decisions about the payloads of one participant, as transactions land."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._reader = EventReader(program_codec())
        self._judged: dict[int, str] = {}
        self._fines = 0

    def slot_opened(self, slot: int, parent: int) -> None:
        """Nothing is decided by time alone."""

    def transaction_landed(self, landed: LandedTransaction, changed: Sequence[Pubkey]) -> None:
        """Take down how audits and cases ended, what nobody could fetch, and others' fines."""
        for event in self._reader.read(record_of(landed)).events:
            if isinstance(event, RoundSettled) and bitmap.has(event.struck, self._target):
                is_last = bitmap.has(event.jailed, self._target)
                self._judged[event.round] = "JAILED" if is_last else "STRUCK"
            elif isinstance(event, Penalised):
                self._fines += event.index != self._target
            elif isinstance(event, AuditSettled) and event.target == self._target:
                if event.outcome != AuditOutcome.ACCUSED:
                    self._judged[event.round] = AuditOutcome(event.outcome).name
            elif isinstance(event, CaseSettled) and event.target == self._target:
                self._judged[event.round] = CaseOutcome(event.outcome).name
            elif isinstance(event, CaseSettled):
                self._fines += event.outcome == CaseOutcome.CONVICTED

    def trial(self, unknown: Trial, now: int) -> Trial:
        """Return the run as far as it has come, in round `now`."""
        first = CHEATS[unknown.kind].honest_rounds
        judged = {round_: what for round_, what in self._judged.items() if round_ >= first}
        guilty = [round_ for round_, what in judged.items() if what in GUILTY]
        last = min(guilty, default=now)
        return replace(
            unknown,
            convicted=last - first + 1 if guilty else 0,
            slashed=now - first + 1 if guilty else 0,
            outcomes=dict(Counter(what for round_, what in judged.items() if round_ <= last)),
            fines=self._fines,
        )


def row(trials: Sequence[Trial]) -> str:
    """Return one line of the table."""
    kind, fault = trials[0].kind, CHEATS[trials[0].kind].fault
    is_seen = fault == "P4"
    p_ppm = PPM if is_seen else SAMPLING[trials[0].sampling]
    judged: Counter[str] = Counter()
    for trial in trials:
        judged.update(trial.outcomes)
    lost = sum(judged[what] for what in GUILTY)
    caught = sorted(trial.convicted for trial in trials if trial.convicted)
    cells = [kind, f"{p_ppm / PPM:.2f}", fault or "none", f"{len(caught)} of {len(trials)}"]
    cells += [f"{lost} of {judged.total()}", f"{sum(trial.fines for trial in trials)}"]
    if caught:
        d = detection(p_ppm, PPM * lost // judged.total(), 0)
        mean, most = (STRIKES, STRIKES) if is_seen else (float(1 / d), rounds_to_capture(d))
        cells += [f"{mean:.1f}", f"{statistics.mean(caught):.1f}"]
        cells += [f"{most}", f"{caught[-1 - len(caught) // 20]}"]
        late = statistics.mean(one.slashed - one.convicted for one in trials if one.convicted)
        cells.append(f"{late:.1f}")
    else:
        cells += ["-"] * 5
    return "| " + " | ".join(cells) + " |"


HEAD = """\
| cheat | p | fault | caught | lost of judged | honest fined | mean: formula | measured \
| 95 %: formula | measured | to the penalty |
|---|---|---|---|---|---|---|---|---|---|---|"""


def main() -> int:
    """Play what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(CHEATS), metavar="KIND")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sampling", choices=SAMPLING, default="new")
    parser.add_argument("--out", type=Path, default=Path("runs/convictions.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    journal = Journal(arguments.out)
    with tempfile.TemporaryDirectory() as folder:
        data = make_data(Path(folder) / "data")
        rows = [row(play_all(data, journal, kind, arguments)) for kind in arguments.kinds]
    print(HEAD, *rows, sep="\n")
    return 0


def play_all(
    data: TokenData, journal: Journal, kind: str, arguments: argparse.Namespace
) -> list[Trial]:
    """Return the runs of one kind of cheat; those that are not in the journal are played now."""
    settings = settings_of(data, arguments.sampling)
    known, found = journal.read(settings), []
    for seed in range(arguments.seeds):
        if (name := f"{kind} {seed}") in known:
            found.append(Trial(**known[name]))
            continue
        found.append(asyncio.run(play(data, kind, arguments.sampling, seed)))
        journal.add(settings, name, asdict(found[-1]))
        print(found[-1], file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
