"""Honest runs, members in fp32 and bf16 mixed: `python scripts/bench/honest.py [--rounds N] …`.

Owns: whole runs in one process in which everybody is honest and two targets of each round are
audited, and the count of everything that would hurt somebody.
Never: a cheat. Next: `client/troth_client/cli/inprocess.py`; `verification.py` for the time.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import torch

from troth_attestation.quorum import AuditOutcome
from troth_client.cli.inprocess import InProcessRun
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.model.device import CPU, Device
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.settings import RunSettings

MIXED = Device(torch.device("cpu"), is_mixed=True)
WORDS = ("slot", "round", "peer", "root", "vote", "stake", "seed", "tile", "holds", "gives", "not")
TOKENS = 32
MODEL = {
    "vocab_size": 256,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": TOKENS,
}
CHAIN = {
    "commit_slots": 40,
    "attest_slots": 30,
    "close_grace_slots": 5,
    "warmup_slots": 20,
    "openings_slots": 20,
    "verdict_commit_slots": 30,
    "verdict_reveal_slots": 20,
    "case_slots": 60,
    "p_base_ppm": 250_000,
    "p_new_ppm": 1_000_000,
    "audit_cap": 2,
    "capacity": 8,
}


@dataclass
class Tally:
    """What happened in honest runs; everything after `verdicts` must stay 0."""

    participant_rounds: int = 0
    audits: int = 0
    extended: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    not_cleared: int = 0
    cases: int = 0
    strikes: int = 0
    faults: int = 0
    lost_lamports: int = 0

    @property
    def harm(self) -> int:
        """How often an honest participant was hurt in any way."""
        return self.not_cleared + self.cases + self.strikes + self.faults + self.lost_lamports

    def add(self, other: "Tally") -> None:
        """Count another run in."""
        for name, value in vars(other).items():
            getattr(self, name).update(value) if name == "verdicts" else setattr(
                self, name, getattr(self, name) + value
            )

    def row(self) -> str:
        """Return one line of the table."""
        spoken = ", ".join(f"{n} {kind}" for kind, n in sorted(self.verdicts.items()))
        return (
            f"{self.participant_rounds} participant-rounds, {self.audits} audits "
            f"({self.extended} extended), verdicts {spoken}; not cleared {self.not_cleared}, "
            f"cases {self.cases}, strikes {self.strikes}, faults of seats {self.faults}, "
            f"lamports lost {self.lost_lamports}"
        )


def make_data(folder: Path, seed: int) -> TokenData:
    """Write some thousand sequences of words and return them as tokens."""
    draw = random.Random(seed)
    for number in range(40):
        text = " ".join(draw.choice(WORDS) for _ in range(1_000))
        (folder / f"text-{number:02d}.txt").write_text(text)
    shape = PrepareOptions(sequence_tokens=TOKENS, validation_ppm=100_000)
    manifest = prepare(folder / "out", text_source([folder]), ByteTokenizer(), shape)
    return TokenData(folder / "out", manifest)


def settings_of(data: TokenData, rounds: int) -> RunSettings:
    """Return a run of so many rounds on the data, every round audited."""
    found = load_config(
        [],
        {
            "model": MODEL,
            "data": {"sequence_tokens": TOKENS},
            "demo": {"k": 8},
            "schedule": {"rounds": rounds, "lr_nano": 3_000_000},
            "train": {"sequences_per_payload": 2, "microbatch_sequences": 2},
            "chain": {"min_members": 2, **CHAIN},
        },
    )
    bound = found.config.with_manifest(data.manifest.hash)
    return found.model_copy(update={"config": bound})


async def play(members: int, rounds: int, seed: int) -> Tally:
    """Play one run to its end; every second member computes in bf16."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").mkdir()
        data = make_data(folder / "data", seed)
        run = await InProcessRun.create(settings_of(data, rounds), data, folder, seed=seed)
        for number in range(members):
            member = await run.add(f"member-{number}")
            member.device = MIXED if number % 2 else CPU
        for member in run.members:
            await run.start(member)
        await run.finish()
        return await count(run)


async def count(run: InProcessRun) -> Tally:
    """Count what a finished run shows, on chain and in the events of its members."""
    view, found = await run.view(), Tally()
    first = run.members[0].events
    for closed in first.named("round_closed"):
        found.participant_rounds += len(closed["included"])
    for one in run.members:
        found.verdicts.update(event["verdict"] for event in one.events.named("judged"))
    changes = first.named("audit_changed")
    settled = [event for event in changes if event["stage"] == AuditStage.SETTLED.name]
    audited = {(event["round"], event["target"]) for event in changes}
    found.audits = len(audited)
    found.extended = sum(
        len(one.events.named("audit_heard")) for one in run.members
    ) - len(audited)
    cleared = {
        (event["round"], event["target"])
        for event in settled
        if event["outcome"] == AuditOutcome.CLEARED
    }
    found.not_cleared = len(audited - cleared)
    found.cases = sum(event["stage"] == AuditStage.ACCUSED.name for event in changes)
    present = view.entries[: len(run.members)]
    found.strikes = sum(entry.strikes for entry in present)
    found.strikes += sum(r != NONE for entry in present for r in entry.unproven_rounds)
    found.faults = sum(entry.seat_faults + entry.work_faults for entry in present)
    stake = run.settings.chain.stake_lamports
    found.lost_lamports = sum(stake - entry.stake for entry in present)
    return found


def main() -> int:
    """Play run after run until there are enough participant-rounds; 1 if anybody was hurt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--participant-rounds", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    total, seed, begun = Tally(), arguments.seed, time.monotonic()
    while total.participant_rounds < arguments.participant_rounds:
        total.add(asyncio.run(play(arguments.members, arguments.rounds, seed)))
        seed += 1
        print(f"{time.monotonic() - begun:.0f} s, seeds to {seed - 1}: {total.row()}", flush=True)
    return 1 if total.harm else 0


if __name__ == "__main__":
    sys.exit(main())
