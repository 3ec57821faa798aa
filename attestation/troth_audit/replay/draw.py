"""Payloads drawn to be computed again, with what the chain said of each.

Owns: the draw, in one reading of a ledger, and the facts of the drawn payloads.
Never: keeps more of a ledger than as many payloads as are drawn. Never: judges.
Next: `recompute.py`.

Payloads whose tiles are open are drawn first: only there can work be judged. Of other payloads only
the votes can be held against a gradient; they are drawn where fewer tiles are open than asked for.
The key of the draw is the auditor's own, so that no trainer knows what will be drawn.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatchmethod

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.sketch import Sketch
from troth_attestation.verdict import VerdictKind
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_life import ParamsApplied, RunCreated
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKind

MOST_SEEDS = 1_024
"""Seeds that are remembered: tiles are opened long before so many rounds have closed."""
_LEAD_TO_A_CASE = (AuditOutcome.ACCUSED, AuditOutcome.UNAVAILABLE)

Place = tuple[int, int]
"""A round and a participant."""


@dataclass(slots=True)
class Drawn:
    """One included payload and its audit, if it had one.

    `seed` and `openings_root` are empty where no tiles are open. `shown` are verdict and sketch by
    seat holder, `paid` the bitmap of those that were paid. `outcome` and `case_outcome` are None
    before the end of the audit, and of the case that followed it.
    """

    seed: bytes = b""
    openings_root: bytes = b""
    shown: dict[int, tuple[VerdictKind, Sketch]] = field(default_factory=dict)
    paid: int = 0
    outcome: int | None = None
    has_case: bool = False
    case_outcome: int | None = None
    is_convicted: bool = False
    sketch_factor: int = 0

    @property
    def is_under_way(self) -> bool:
        """Whether the protocol has yet to decide about this payload."""
        return self.outcome is None or (self.has_case and self.case_outcome is None)


class _Reservoir:
    """So many things drawn uniformly from a stream of unknown length (Vitter's algorithm R)."""

    def __init__(self, size: int, source: random.Random) -> None:
        self.kept: dict[Place, Drawn] = {}
        self._places: list[Place] = []
        self._size, self._source, self._num_seen = size, source, 0

    def offer(self, place: Place, drawn: Drawn) -> None:
        self._num_seen += 1
        if len(self._places) < self._size:
            self._places.append(place)
        else:
            chosen = self._source.randrange(self._num_seen)
            if chosen >= self._size:
                return
            self.kept.pop(self._places[chosen], None)
            self._places[chosen] = place
        self.kept[place] = drawn


class Draw:
    """Draws `num` payloads of the rounds in `span`. `take` gets every event of the ledger."""

    def __init__(self, num: int, key: str, span: range) -> None:
        self._num, self._key, self._span = num, key, span
        source = random.Random(key)
        self._open, self._closed = _Reservoir(num, source), _Reservoir(num, source)
        self._seeds: dict[int, bytes] = {}
        self._factor = 0

    def take(self, event: Event) -> None:
        """Note the next event."""
        self._take(event)

    def chosen(self) -> Mapping[Place, Drawn]:
        """Return what was drawn, at the end of the ledger."""
        others = {at: one for at, one in self._closed.kept.items() if at not in self._open.kept}
        most = max(0, self._num - len(self._open.kept))
        # The set that a reservoir keeps is uniform, but lies in order of its rounds: draw from it.
        source = random.Random(f"{self._key} again")
        taken = source.sample(sorted(others), min(most, len(others)))
        return {**self._open.kept, **{at: others[at] for at in taken}}

    @singledispatchmethod
    def _take(self, event: Event) -> None:
        """Most events say nothing of work."""

    @_take.register
    def _(self, event: RunCreated) -> None:
        self._factor = event.params.sketch_factor

    @_take.register
    def _(self, event: ParamsApplied) -> None:
        self._factor = event.params.sketch_factor

    @_take.register
    def _(self, event: of_rounds.RoundClosed) -> None:
        if event.round in self._span:
            for index in bitmap.indices_of(event.included):
                self._closed.offer((event.round, index), Drawn())

    @_take.register
    def _(self, event: of_rounds.PayloadStruck) -> None:
        self._open.kept.pop((event.round, event.target), None)
        self._closed.kept.pop((event.round, event.target), None)

    @_take.register
    def _(self, event: of_rounds.SeedFrozen) -> None:
        self._seeds[event.round] = event.seed
        if len(self._seeds) > MOST_SEEDS:
            del self._seeds[next(iter(self._seeds))]

    @_take.register
    def _(self, event: of_audits.OpeningsPosted) -> None:
        seed = self._seeds.get(event.round)
        if seed is not None and event.round in self._span:
            drawn = Drawn(seed, event.root, sketch_factor=self._factor)
            self._open.offer((event.round, event.target), drawn)

    @_take.register
    def _(self, event: of_audits.VerdictRevealed) -> None:
        drawn = self._open.kept.get((event.round, event.target))
        if drawn is not None and event.verdict in set(VerdictKind):
            drawn.shown[event.index] = VerdictKind(event.verdict), event.sketch

    @_take.register
    def _(self, event: of_audits.AuditSettled) -> None:
        drawn = self._open.kept.get((event.round, event.target))
        if drawn is not None:
            drawn.outcome, drawn.paid = event.outcome, event.paid
            drawn.has_case = event.outcome in _LEAD_TO_A_CASE

    @_take.register
    def _(self, event: of_audits.CaseOpened) -> None:
        drawn = self._open.kept.get((event.round, event.target))
        if drawn is not None and event.audit_kind == AuditKind.WORK:
            drawn.has_case = True

    @_take.register
    def _(self, event: of_audits.CaseSettled) -> None:
        drawn = self._open.kept.get((event.round, event.target))
        if drawn is not None and event.audit_kind == AuditKind.WORK:
            drawn.case_outcome = event.outcome
            drawn.is_convicted = event.outcome == CaseOutcome.CONVICTED

    @_take.register
    def _(self, event: of_audits.CaseReversed) -> None:
        drawn = self._open.kept.get((event.round, event.target))
        if drawn is not None and event.audit_kind == AuditKind.WORK:
            drawn.is_convicted = False
