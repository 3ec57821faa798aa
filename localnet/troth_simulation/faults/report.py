"""The report of a soak: faults, losses, recovery, traffic, memory; and which promises broke.

Owns: the figures, their JSON and their text. Never: measures; `record.py` and `evidence.py` do.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from troth_simulation.faults.record import ProcessEnd, Usage
from troth_simulation.faults.trouble import Kind

FINES_PER_HUNDRED_EARNED: Final = 1


@dataclass(frozen=True, slots=True)
class KindReport:
    """All faults of one kind: how many rounds passed from the end of each to the next included one.

    - recovery_rounds: of those after which the member was included again, ascending; 0 means the
      round that was open at the end of the fault.
    - interrupted: faults of members that had another fault before they were included again.
    - never: faults after which the member was not included again.
    - missed: rounds that closed without the member, from the start of each fault to its recovery.
    """

    kind: Kind
    count: int
    recovery_rounds: tuple[int, ...]
    interrupted: int
    never: int
    missed: int


@dataclass(frozen=True, slots=True)
class MemberReport:
    """One member: rounds without its payload, lamports, standing, and what its process used."""

    name: str
    missed: int
    earned: int
    fined: int
    stake: int
    lowest_stake: int
    is_active: bool
    started: Usage
    ended: Usage


@dataclass(frozen=True, slots=True)
class Loss:
    """Lamports that one member lost at once.

    - fault: the rule that took them, `absence` for the fee of three missed deadlines.
    - round: the round that it is about, which an audit reaches later than it closes.
    - during: the kinds of faults that the member had since, or shortly before, that round.
    """

    slot: int
    round: int
    member: str
    fault: str
    lamports: int
    during: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """The average of one member and round: what went to one kind of place."""

    place: str
    requests: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Report:
    """One soak. Lamports are whole numbers; `audits` counts the settled ones of each epoch."""

    seed: int
    num_rounds: int
    num_void: int
    num_slots: int
    keep_stake: int
    kinds: tuple[KindReport, ...]
    members: tuple[MemberReport, ...]
    losses: tuple[Loss, ...]
    ends: tuple[ProcessEnd, ...]
    audits: dict[int, int]
    diverged: tuple[int, ...]
    traffic: tuple[TrafficReport, ...]
    chain: tuple[Usage, Usage]

    @property
    def num_faults(self) -> int:
        """All faults."""
        return sum(one.count for one in self.kinds)

    @property
    def earned(self) -> int:
        """Lamports that all members earned, before fines."""
        return sum(one.earned for one in self.members)

    @property
    def fined(self) -> int:
        """Lamports that all members lost."""
        return sum(one.fined for one in self.members)

    def broken(self) -> tuple[str, ...]:
        """Return the promises that this soak broke, as sentences; none is what we promise."""
        return tuple(self._broken())

    def _broken(self) -> Iterator[str]:
        if self.num_rounds == 0:
            yield "no round closed"
        for round_ in self.diverged:
            yield f"round {round_} left members with different roots"
        for one in self.members:
            if not one.is_active:
                yield f"{one.name} is not active at the end"
            if one.lowest_stake < self.keep_stake:
                short = self.keep_stake - one.lowest_stake
                yield f"{one.name} was {short} lamports below the stake to keep"
        for kind in self.kinds:
            if kind.never:
                yield f"after {kind.never} of {kind.count} {kind.kind} faults a member stayed away"
        if self.fined * 100 > self.earned * FINES_PER_HUNDRED_EARNED:
            yield f"{self.fined} lamports of fines are more than 1 % of {self.earned} earned"
        for epoch, count in self.audits.items():
            if count == 0:
                yield f"epoch {epoch} had no audit"
        for end in self.ends:
            if end.code == 1 and Kind.DISK_FULL in end.during:
                continue  # it stopped by itself, where it could not keep what must be durable
            name = self.members[end.member].name
            during = ", ".join(end.during) or "no fault"
            yield f"{name} ended with code {end.code} in round {end.round} ({during}): {end.reason}"

    def to_json(self) -> str:
        """Return everything as one JSON object, the broken promises too."""
        fields: dict[str, Any] = asdict(self)
        return json.dumps({**fields, "broken": self.broken()}, indent=1)

    def to_text(self) -> str:
        """Return tables for people."""
        lines = [
            f"seed {self.seed}: {self.num_rounds} rounds ({self.num_void} void),"
            f" {self.num_slots} slots, {self.num_faults} faults",
            "",
            *self._kind_lines(),
            "",
            *self._member_lines(),
            "",
            f"earned {self.earned}, fined {self.fined} lamports"
            f" ({100 * self.fined / max(1, self.earned):.2f} %)",
            f"audits by epoch: {_pairs(self.audits)}; rounds with different roots:"
            f" {len(self.diverged)}",
            *(_traffic_line(one) for one in self.traffic),
            f"chain: {_usage(self.chain)}",
            *(_loss_line(one) for one in self.losses),
            *(f"BROKEN: {one}" for one in self.broken()),
        ]
        return "\n".join(lines)

    def _kind_lines(self) -> Iterator[str]:
        yield "| fault | count | rounds missed | recovery p50 | max | interrupted | never |"
        yield "|---|---:|---:|---:|---:|---:|---:|"
        for one in self.kinds:
            rounds = one.recovery_rounds
            middle = statistics.median_low(rounds) if rounds else "-"
            most = max(rounds, default="-")
            cells = (one.kind, one.count, one.missed, middle, most, one.interrupted, one.never)
            yield "| " + " | ".join(map(str, cells)) + " |"

    def _member_lines(self) -> Iterator[str]:
        yield "| member | missed | earned | fined | stake | lowest | active | memory | disk |"
        yield "|---|---:|---:|---:|---:|---:|---|---|---|"
        for one in self.members:
            standing = "yes" if one.is_active else "NO"
            money = (one.earned, one.fined, one.stake, one.lowest_stake)
            used = _usage((one.started, one.ended)).split(", ")
            cells = (one.name, one.missed, *money, standing, *used)
            yield "| " + " | ".join(map(str, cells)) + " |"


def _pairs(counts: dict[int, int]) -> str:
    return ", ".join(f"{key}: {count}" for key, count in counts.items()) or "none"


def _usage(pair: tuple[Usage, Usage]) -> str:
    rss = " → ".join(f"{one.rss_bytes / 2**20:.0f}" for one in pair)
    disk = " → ".join(f"{one.disk_bytes / 2**20:.1f}" for one in pair)
    return f"{rss} MiB, {disk} MiB"


def _traffic_line(one: TrafficReport) -> str:
    return f"{one.place}: {one.requests:.1f} requests and {one.bytes:.0f} bytes a participant-round"


def _loss_line(one: Loss) -> str:
    during = ", ".join(one.during) or "no fault of its own"
    return (
        f"loss at slot {one.slot}: {one.member}, {one.fault} of round {one.round},"
        f" {one.lamports} lamports ({during})"
    )
