"""Checks: each finds one thing out and says what was found, what is needed, what to do.

Owns: the result of a check, running a list of them in order, and what a list of results means.
Never: knows what is checked. A check that fails hides no other.
Next: `join_checks.py` and `doctor.py` for the lists; `../view/checks.py` for the table.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NewType, TypeVar

from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.errors import TrothError

Number = int | float | str | bool | None
"""A value of a result, for scripts."""
Kind = NewType("Kind", str)
"""The name of an error that exists: only `kind_of` makes it."""
NO_KIND: Final = Kind("")


class Level(StrEnum):
    """How a check ended: a refusal where something is asked for, else a problem."""

    OK = "ok"
    WARNING = "warning"
    REFUSED = "refused"
    UNTESTED = "not tested"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer of a check. `advice` is "" where there is nothing to do.

    `kind` names the error behind a refusal, and `can_go_on` tells whether --anyway
    overrides it. `values` are for scripts.
    """

    level: Level
    found: str
    needed: str = ""
    advice: str = ""
    kind: Kind = NO_KIND
    can_go_on: bool = False
    values: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """A check's name with its result."""

    name: str
    result: CheckResult


Subject = TypeVar("Subject")
Check = Callable[[Subject], Awaitable[CheckResult]]
Registry = Sequence[tuple[str, Check[Subject]]]
FORESEEN: Final = (TrothError, OSError)
"""The errors that become a refusal in their own words."""


async def run_checks(checks: Registry[Subject], subject: Subject) -> list[Row]:
    """Run all checks in order; an error of one is its result."""
    rows = []
    for name, check in checks:
        try:
            result = await check(subject)
        except FORESEEN as error:
            result = refusal(error)
        rows.append(Row(name, result))
    return rows


def refusal(error: Exception, *, can_go_on: bool = False) -> CheckResult:
    """Return the result that an error stands for."""
    kind = kind_of(error)
    if isinstance(error, TrothError):
        subject = f"{error.subject}: " if error.subject else ""
        found = subject + error.found
        return CheckResult(
            Level.REFUSED, found, error.expected, error.next_step, kind, can_go_on=can_go_on
        )
    return CheckResult(
        Level.REFUSED, str(error), "a file or folder that can be used", "Check it.", kind
    )


def kind_of(error: Exception | type[TrothError]) -> Kind:
    """Return the name of an error's class; what the program refuses has the program's own name."""
    if isinstance(error, ProgramRefusedError):
        return Kind(error.name)
    return Kind((error if isinstance(error, type) else type(error)).__name__)


def untested(why: str) -> CheckResult:
    """Return the result of a check that could not be made."""
    return CheckResult(Level.UNTESTED, why)


def refusals(rows: Iterable[Row], *, anyway: bool = False) -> list[Row]:
    """Return the refusals, without those that --anyway overrides where it is given."""
    refused = [row for row in rows if row.result.level is Level.REFUSED]
    return [row for row in refused if not (anyway and row.result.can_go_on)]


def rows_json(rows: Iterable[Row]) -> list[dict[str, object]]:
    """Return the results as --json prints them."""
    return [
        {
            "check": row.name,
            "level": row.result.level.value,
            "found": row.result.found,
            "needed": row.result.needed,
            "advice": row.result.advice,
            "kind": row.result.kind,
            "can_go_on": row.result.can_go_on,
            "values": dict(row.result.values),
        }
        for row in rows
    ]
