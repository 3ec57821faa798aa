"""The report of a soak from its record, the chain's events and the members' logs.

Owns: who lost what and why, recovery, roots, audits by epoch, traffic a round.
Never: looks at a process. Next: `report.py` for the meaning of each figure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth_client.telemetry.event_log import EventTail
from troth_client.telemetry.events import int_of
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_audits import AuditSettled, CaseSettled, Penalised
from troth_coordinator.chain.event_types_rounds import RoundSettled
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import NOT_AUDITED
from troth_coordinator.rules.params import epoch_of
from troth_coordinator.rules.view import EntryView, NetworkView, Status
from troth_simulation.faults.ground import Ground
from troth_simulation.faults.proxy import Traffic
from troth_simulation.faults.record import PlayedFault, Record, Usage
from troth_simulation.faults.report import KindReport, Loss, MemberReport, Report, TrafficReport
from troth_simulation.faults.trouble import Kind

_ROUNDS_BEFORE: Final = 2


@dataclass(frozen=True, slots=True)
class Seen:
    """The chain at both ends of a soak, all its events, the usage of members and chain, traffic."""

    first: NetworkView
    last: NetworkView
    events: Sequence[Event]
    usage: Sequence[tuple[Usage, Usage]]
    traffic: tuple[TrafficReport, ...]


def report(ground: Ground, record: Record, seen: Seen) -> Report:
    """Return the report of a soak. Nobody claimed, topped up or left during it."""
    names = [one.name for one in ground.stations]
    lost = losses(seen.events, record, names)
    run = seen.last.run
    return Report(
        seed=ground.seed,
        num_rounds=len(record.rounds),
        num_void=sum(one.is_void for one in record.rounds.values()),
        num_slots=seen.last.slot - record.first_slot,
        keep_stake=run.params.keep_stake_lamports,
        kinds=tuple(kinds(record)),
        members=tuple(
            _member(number, name, record, seen, lost) for number, name in enumerate(names)
        ),
        losses=tuple(lost),
        ends=tuple(record.ends),
        audits=audits_by_epoch(
            seen.events, record.first_round, run.round, run.params.rounds_per_epoch
        ),
        diverged=tuple(diverged(one.log for one in ground.stations)),
        traffic=seen.traffic,
        chain=seen.usage[-1],
    )


def _member(
    number: int, name: str, record: Record, seen: Seen, lost: Iterable[Loss]
) -> MemberReport:
    index = record.indices[number]
    entry = seen.last.entries[index]
    fined = sum(one.lamports for one in lost if one.member == name)
    started, ended = seen.usage[number]
    return MemberReport(
        name=name,
        missed=missed_rounds(record, number),
        earned=_wealth(entry) - _wealth(seen.first.entries[index]) + fined,
        fined=fined,
        stake=entry.stake,
        lowest_stake=record.lowest_stake[index],
        is_active=entry.status is Status.ACTIVE,
        started=started,
        ended=ended,
    )


def _wealth(entry: EntryView) -> int:
    """Return the lamports that a fine may take: what was earned is what this grew by."""
    return entry.stake + entry.unbonding + entry.claimable + sum(entry.bucket_amount)


def losses(events: Iterable[Event], record: Record, names: Sequence[str]) -> list[Loss]:
    """Return everything that was taken from members while the record was made, in order."""
    found: list[Loss] = []
    for slot, round_, index, fault, lamports in _taken(events):
        is_within = record.first_slot <= slot <= record.last_slot
        if lamports and is_within and index in record.indices:
            member = record.indices.index(index)
            during = _since(record, member, round_)
            found.append(Loss(slot, round_, names[member], fault, lamports, during))
    return found


def _taken(events: Iterable[Event]) -> Iterator[tuple[int, int, int, str, int]]:
    """Yield slot, round, index, rule and lamports of each loss."""
    for event in events:
        if isinstance(event, Penalised):
            taken = event.claimable + event.stake + event.unbonding + event.unvested
            yield event.slot, event.round, event.index, f"P{event.fault}", taken
        elif isinstance(event, CaseSettled):
            taken = event.stake + event.unbonding + event.unvested
            yield event.slot, event.round, event.target, "conviction", taken
        elif isinstance(event, RoundSettled) and event.fees:
            absent = list(bitmap.indices_of(event.inactivated))
            for index in absent:
                yield event.slot, event.round, index, "absence", event.fees // len(absent)


def _since(record: Record, member: int, round_: int) -> tuple[Kind, ...]:
    """Return the kinds of faults that a member had from shortly before a round on."""
    near = (
        one.fault.kind
        for one in record.played
        if one.fault.member == member
        and (one.last_round is None or one.last_round >= round_ - _ROUNDS_BEFORE)
    )
    return tuple(dict.fromkeys(near))


def kinds(record: Record) -> list[KindReport]:
    """Return what each kind of fault cost in rounds."""
    by_kind: defaultdict[Kind, list[PlayedFault]] = defaultdict(list)
    for one in record.played:
        by_kind[one.fault.kind].append(one)
    return [_kind(kind, by_kind[kind], record) for kind in sorted(by_kind)]


def _kind(kind: Kind, played: Sequence[PlayedFault], record: Record) -> KindReport:
    recovered: list[int] = []
    interrupted = never = missed = 0
    for one in played:
        back = _round_back(one, record)
        later = _next_fault(one, record)
        until = min(back, later)
        first = one.first_round
        missed += sum(1 for r in range(first, until) if _is_missed(record, r, one.fault.member))
        if until == later and later < back:
            interrupted += 1
        elif back > max(record.rounds, default=0):
            never += 1
        else:
            recovered.append(back - (one.last_round or 0))
    return KindReport(kind, len(played), tuple(sorted(recovered)), interrupted, never, missed)


def _round_back(one: PlayedFault, record: Record) -> int:
    """Return the first round from the fault's end on with the member's payload."""
    newest = max(record.rounds, default=0)
    first = newest + 1 if one.last_round is None else one.last_round
    for round_ in range(first, newest + 1):
        closed = record.rounds.get(round_)
        if closed is not None and bitmap.has(closed.included, record.indices[one.fault.member]):
            return round_
    return newest + 1


def _next_fault(one: PlayedFault, record: Record) -> int:
    """Return the round in which the same member's next fault began; beyond all without one."""
    later = (
        other.first_round
        for other in record.played
        if other.fault.member == one.fault.member and other.fault.slot > one.fault.slot
    )
    return min(later, default=max(record.rounds, default=0) + 2)


def _is_missed(record: Record, round_: int, member: int) -> bool:
    closed = record.rounds.get(round_)
    return closed is not None and not bitmap.has(closed.included, record.indices[member])


def missed_rounds(record: Record, member: int) -> int:
    """Return how many rounds that were not void closed without a member's payload."""
    return sum(
        not one.is_void and _is_missed(record, one.round, member) for one in record.rounds.values()
    )


def diverged(logs: Iterable[Path]) -> list[int]:
    """Return the rounds after which two members held different roots, as they last said."""
    roots: defaultdict[int, set[str]] = defaultdict(set)
    for log in logs:
        last: dict[int, str] = {}
        for event in EventTail(log).read():
            if event["event"] == "round_closed":
                last[int_of(event, "round")] = str(event.get("root"))
        for round_, root in last.items():
            roots[round_].add(root)
    return sorted(round_ for round_, found in roots.items() if len(found) > 1)


def audits_by_epoch(
    events: Iterable[Event], first: int, last: int, rounds_per_epoch: int
) -> dict[int, int]:
    """Return how many audits of each whole epoch from round `first` to `last` were settled."""
    counts = Counter(
        epoch_of(event.round, rounds_per_epoch)
        for event in events
        if isinstance(event, AuditSettled) and event.outcome != NOT_AUDITED
    )
    epochs = range(-(-first // rounds_per_epoch), epoch_of(last, rounds_per_epoch))
    return {epoch: counts[epoch] for epoch in epochs}


def all_traffic(ground: Ground, num_rounds: int) -> tuple[TrafficReport, ...]:
    """Return the averages of so many rounds now, to the RPC nodes and to the endpoints."""
    lines = [one.lines for one in ground.stations]
    rounds = num_rounds * len(lines)
    return (
        traffic("RPC", (one.answers.traffic for one in lines), rounds),
        traffic("endpoints", (one.to_us.traffic for one in lines), rounds),
    )


def traffic(place: str, lines: Iterable[Traffic], participant_rounds: int) -> TrafficReport:
    """Return the average of all lines to one kind of place."""
    found = list(lines)
    rounds = max(1, participant_rounds)
    requests = sum(one.requests.total() for one in found)
    return TrafficReport(place, requests / rounds, sum(one.num_bytes for one in found) / rounds)
