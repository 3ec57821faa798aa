"""The form in which the recount states an event before it looks at it.

Owns: the expected event, the script of an instruction, and the comparison with what was told.
Never: knows a rule. Next: `recount.py`, which plays the scripts.

A script reads like the instruction of the program. Where that records an event, the script yields
the event as it must be, and goes on with the one that was told.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from solders.pubkey import Pubkey

from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Finding, Rule, discrepancy
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.ids import NONE

Told = TypeVar("Told", bound=Event)
Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Expected:
    """An event as it must be.

    `fields` are known exactly. Of `either` one must hold in full: the program chose, for a reason
    that no event tells. `between` are the least and the most of a field. `rules` names the rule of
    a field where it is not `rule`.
    """

    type: type[Event]
    rule: Rule
    fields: Fields
    either: tuple[Fields, ...] = ()
    between: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rules: Mapping[str, Rule] = field(default_factory=dict)

    def compare(self, event: Event) -> Iterator[Finding]:
        """Yield a finding for each field that is not as it must be."""
        where = place_of(event)
        for name, value in {**self.fields, **self._nearest(event)}.items():
            found = _plain(getattr(event, name))
            if found != _plain(value):
                rule = self.rules.get(name, self.rule)
                yield discrepancy(rule, _named(name, value), _named(name, found), *where)
        for name, (least, most) in self.between.items():
            found = getattr(event, name)
            if not least <= found <= most:
                span = f"{least} or more" if most == NONE else f"{least} to {most}"
                rule, told = self.rules.get(name, self.rule), f"{name} {span}"
                yield discrepancy(rule, told, _named(name, found), *where)

    def _nearest(self, event: Event) -> Fields:
        if not self.either:
            return {}
        return min(self.either, key=lambda way: sum(getattr(event, n) != way[n] for n in way))


Script = Generator[Expected, Event, None]


def place_of(event: Event) -> tuple[int | None, int | None]:
    """Return the round and the participant that an event is about."""
    index = getattr(event, "index", None)
    target = getattr(event, "target", None)
    return getattr(event, "round", None), target if index is None else index


def told(event: Event, kind: type[Told]) -> Told:
    """Return the event as one of its kind; the player of the scripts has compared that."""
    if not isinstance(event, kind):
        raise MisfitError(Rule.CHAIN_HASH, kind.__name__, event.name)
    return event


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, Pubkey) else value


def _named(name: str, value: object) -> str:
    plain = _plain(value)
    return f"{name} {plain.hex() if isinstance(plain, bytes) else plain}"
