"""Things left undone in a run: drawn audits, seeds, and audits that nobody ended.

Owns: their counts, and a note for each kind of them.
Never: accuses anybody: no event proves why somebody sent nothing.
Next: `tally.py` for what was done; `recount_audits.py` for when an audit may be opened.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from troth_audit.replay.findings import Finding, Rule, note
from troth_audit.replay.recount_state import AuditBook, Books
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_audits import AuditOpened
from troth_coordinator.chain.event_types_rounds import PayloadStruck, SeedFrozen, SeedLost
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import BEFORE_SETTLED, WITH_JURY, AuditStage
from troth_coordinator.rules.view import RunView

LATE_SLOTS: Final = 64
"""A step of an audit may come so long after it is due: members take turns to send it."""
_UNOPENED: Final = (
    "nobody opened them in time. Members short of SOL, an outage, or rounds that left the ring may"
    " explain it; so may members who spare each other"
)
_LOST: Final = "had none: its slots were lost twice, as in an outage, and nobody was audited"


@dataclass(slots=True)
class Undone:
    """Follows what the seeds drew. `books` are those of the recount, which takes events first.

    A target without three witnesses, or whose payload was struck, counts for nothing: the program
    opens no audit of it.
    """

    books: Books
    num_drawn: int = 0
    num_opened: int = 0
    num_unopened: int = 0
    num_lost: int = 0
    _waiting: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Targets and the last moment to open their audits, by round: of rounds in the ring alone."""

    def check(self, event: Event) -> Iterator[Finding]:
        """Note the event; see `end`."""
        match event:
            case SeedFrozen():
                self._expire(event.slot)
                self._draw(event)
            case SeedLost():
                self.num_lost += 1
            case AuditOpened():
                self.num_opened += self._take(event.round, event.target)
            case PayloadStruck():
                self.num_drawn -= self._take(event.round, event.target)
        yield from ()

    def end(self, _: RunView | None) -> Iterator[Finding]:
        """Yield what was not done by the end of the ledger; see `Ending`."""
        slot = self.books.told.slot
        self._expire(slot)
        if self.num_unopened:
            found = f"{self.num_unopened:,} did not: {_UNOPENED}"
            yield note(Rule.SAMPLE, f"{self.num_drawn:,} drawn audits that take place", found)
        if self.num_lost:
            yield note(Rule.SEED, "a seed of each round", f"{self.num_lost:,} {_LOST}")
        for audit in self.books.audits.values():
            since = _due_since(audit, slot, self.books.clock(slot))
            if since > LATE_SLOTS:
                yield _stuck(audit, since)

    def counts(self) -> Mapping[str, int]:
        """Return the audits that the seeds drew, those that were opened, and the lost seeds."""
        return {
            "drawn_audits": self.num_drawn,
            "drawn_opened": self.num_opened,
            "lost_seeds": self.num_lost,
        }

    def _draw(self, event: SeedFrozen) -> None:
        targets = event.sampled & ~event.unseated
        is_begun = self.books.told.params is not None
        if targets and is_begun and self.books.held(event.round) is not None:
            self.num_drawn += bitmap.count(targets)
            ends = self.books.clock(event.slot) + self.books.params.openings_slots
            self._waiting[event.round] = targets, ends

    def _take(self, round_: int, target: int) -> bool:
        """Wait no longer for the audit of a target; tell whether somebody waited for it."""
        targets, ends = self._waiting.get(round_, (0, 0))
        if not bitmap.has(targets, target):
            return False
        self._waiting[round_] = targets & ~(1 << target), ends
        return True

    def _expire(self, slot: int) -> None:
        clock = self.books.clock(slot)
        for number, (targets, ends) in list(self._waiting.items()):
            if clock > ends or self.books.held(number) is None:
                self.num_unopened += bitmap.count(targets)
                del self._waiting[number]


def _due_since(audit: AuditBook, slot: int, clock: int) -> int:
    """Return for how many slots anybody could have moved an audit on."""
    if audit.stage == AuditStage.ACCUSED:
        return slot - audit.case_seed_slot
    is_timed = audit.stage in BEFORE_SETTLED or audit.stage in WITH_JURY
    return clock - audit.stage_end if is_timed else 0


def _stuck(audit: AuditBook, since: int) -> Finding:
    is_case = audit.stage not in BEFORE_SETTLED
    rule, expected = Rule.OUTCOME, "the end of an audit"
    if is_case:
        rule, expected = Rule.CASE, "the end of a case"
    stage = audit.stage.name.lower().replace("_", " ")
    found = f"none: its stage, {stage}, was over {since:,} slots before the ledger ends"
    return note(rule, expected, found, audit.round, audit.target)
