"""What this participant knows of the audits of its run: the open accounts, and rounds to look at.

Owns: when the chain is asked again (only after an event was absorbed), which rounds may still have
audits to open, and telling what changed. Never: acts on anything.
Next: `target.py`, `seat.py`, `juror.py`, `steps.py`, which do.
"""

from collections.abc import Iterator

from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, AuditView
from troth_coordinator.rules.audits import now, run_clock
from troth_coordinator.rules.view import NetworkView, RoundView, SeedStatus

Key = tuple[int, int, int]
"""Round, target, kind."""
WAITING = (SeedStatus.PENDING, SeedStatus.RETARGETED)


class Docket:
    """The audits of one run as last read, and the frozen rounds whose samples are not done with."""

    def __init__(self, chain: CoordinatorClient, at: RunAddresses, events: EventSink) -> None:
        self._chain = chain
        self._at = at
        self._events = events
        self._sequence = -1
        self._audits: dict[Key, AuditView] = {}
        self._rounds: dict[int, RoundView] = {}
        self._refused: set[Key] = set()
        self._closed: set[Key] = set()

    async def refresh(self, view: NetworkView) -> None:
        """Read what is new since the last call.

        Every change of an audit or a seed absorbs an event: a look at the run's event sequence
        tells whether there is any.
        """
        if view.run.event_sequence == self._sequence:
            return
        await self._read_rounds(view)
        found = await self._chain.find_audits(self._at.run) if view.run.num_audits else []
        self._tell({audit.key: audit for audit in found})
        self._sequence = view.run.event_sequence

    def audits(self, view: NetworkView) -> Iterator[AuditView]:
        """Yield the open audits as they stand at the slot of the view."""
        clock = run_clock(view.run, view.slot)
        for audit in list(self._audits.values()):
            yield now(audit, view.run.params, clock)

    def find(self, round_: int, target: int, kind: int = 0) -> AuditView | None:
        """Return an open audit as last read."""
        return self._audits.get((round_, target, kind))

    def round(self, round_: int) -> RoundView | None:
        """Return a round of the ring once it is closed and its seed frozen, lost or never due."""
        return self._rounds.get(round_)

    def to_open(self, view: NetworkView) -> list[Key]:
        """Return the audits that the seeds ask for and nobody has opened, while that may be."""
        clock, params = run_clock(view.run, view.slot), view.run.params
        wanted = [
            (round_.round, target, int(AuditKind.WORK))
            for round_ in self._rounds.values()
            if round_.seed_status == SeedStatus.FROZEN
            and clock <= round_.freeze_clock + params.openings_slots
            for target in asked_for(round_)
        ]
        return [key for key in wanted if key not in self._refused and not self._is_open(key)]

    def refuse(self, key: Key) -> None:
        """Remember that an audit cannot be opened, so that it is not tried at every slot."""
        self._refused.add(key)

    def take_closed(self) -> set[Key]:
        """Return the audits that were closed since the last call."""
        closed, self._closed = self._closed, set()
        return closed

    @property
    def held_rounds(self) -> frozenset[int]:
        """The rounds of open audits: somebody may have to judge them."""
        return frozenset(round_ for round_, _target, _kind in self._audits)

    async def _read_rounds(self, view: NetworkView) -> None:
        oldest = max(0, view.run.round - view.run.params.ring + 1)
        self._rounds = {r: round_ for r, round_ in self._rounds.items() if r >= oldest}
        self._refused = {key for key in self._refused if key[0] >= oldest}
        unread = [r for r in range(oldest, view.run.round) if r not in self._rounds]
        for round_ in await self._chain.read_rounds(self._at.run, unread) if unread else []:
            if round_ is not None and round_.seed_status not in WAITING:
                self._rounds[round_.round] = round_

    def _is_open(self, key: Key) -> bool:
        known = self._audits.get(key)
        return known is not None and known.stage != AuditStage.REQUESTED

    def _tell(self, found: dict[Key, AuditView]) -> None:
        for key, audit in found.items():
            before = self._audits.get(key)
            if before is None or _state(before) != _state(audit):
                self._events.emit("audit_changed", **_described(audit))
        for key in self._audits.keys() - found.keys():
            self._closed.add(key)
            self._events.emit("audit_closed", round=key[0], target=key[1], kind=int(key[2]))
        self._audits = found


def asked_for(round_: RoundView) -> tuple[int, ...]:
    """Return the included targets of a round that were sampled, or asked for in advance."""
    return tuple(bitmap.indices_of((round_.sampled | round_.requested) & round_.included))


def _state(audit: AuditView) -> tuple[int, ...]:
    return audit.stage, audit.outcome, audit.case_outcome, int(audit.flags), audit.num_jurors


def _described(audit: AuditView) -> dict[str, int | str]:
    return {
        "round": audit.round,
        "target": audit.target,
        "kind": audit.kind.name,
        "stage": audit.stage.name,
        "outcome": audit.outcome,
        "case_outcome": audit.case_outcome,
        "taken": audit.escrow,
    }
