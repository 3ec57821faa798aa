"""The end of a demo for the cheat and for the honest, read from the chain after the run.

Owns: the claims and their checks. Never: believes an event log. Cases come from their accounts and
transactions, fees and fines from transactions that name the vault, stakes from the roster.
Next: `troth_audit.history` for how transactions add up to a case; `summary.py`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from troth_audit.cases import CaseFile
from troth_audit.history import read_case
from troth_audit.slashes import Slashes, read_slashes
from troth_cli.demo.options import DemoOptions
from troth_cli.demo.setup import DemoParticipant, DemoRun
from troth_cli.view.cases import case_values
from troth_cli.view.output import Json
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_audits import (
    AuditClosed,
    AuditSettled,
    CaseSettled,
    Penalised,
)
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import EntryView
from troth_simulation.cheats.catalogue import CHEATS

WORK = "P3"
"""The fault of work that does not match; a cheat whose fault is empty loses nothing."""
STRIKE = "P4"
"""The fault that costs the reward and a strike, and no stake."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The lamports of an honest participant at the end. `fees` is its pay for judging."""

    stake: int
    is_untouched: bool
    fees: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of the demo: for its cheat, and by name for each honest participant.

    `fined` are the lamports of small penalties, `strikes` the strikes that the cheat has left.
    """

    cheat: str = ""
    story: str = ""
    fault: str = ""
    index: int | None = None
    cases: tuple[CaseFile, ...] = ()
    fined: int = 0
    strikes: int = 0
    burned: int = 0
    honest: dict[str, Standing] = field(default_factory=dict)

    @property
    def convictions(self) -> list[CaseFile]:
        """The cases in which the cheat was convicted, oldest first."""
        return [case for case in self.cases if case.is_conviction]

    @property
    def slashed(self) -> int:
        """Lamports that its convictions took."""
        return sum(case.money.taken for case in self.convictions)

    @property
    def juror_fees(self) -> int:
        """Lamports that its jurors got out of that."""
        return sum(case.money.jurors for case in self.convictions)

    @property
    def is_paid_out(self) -> bool:
        """Whether no lamport waits in escrow any more; jurors are paid at once."""
        return not any(case.money.in_escrow for case in self.convictions)

    @property
    def is_caught(self) -> bool:
        """Whether the cheat ended as the threat model says; true where nobody cheats."""
        if not self.cheat:
            return True
        if not self.fault:
            return not self.convictions
        if self.fault == WORK:
            return self.slashed > 0 and self.is_paid_out
        if self.fault == STRIKE:
            return self.strikes > 0
        return self.fined + self.slashed > 0 and self.is_paid_out

    def moved(self, killed: Sequence[str] = ()) -> list[str]:
        """Return the honest whose stake moved, without those that were killed on purpose."""
        names = [name for name, one in self.honest.items() if not one.is_untouched]
        return [name for name in names if name not in killed]

    def to_json(self) -> dict[str, Json]:
        """Return the claims, ready for JSON."""
        return {
            "cheat": self.cheat or None,
            "story": self.story or None,
            "fault": self.fault or None,
            "index": self.index,
            "is_caught": self.is_caught,
            "is_paid_out": self.is_paid_out,
            "slashed_lamports": self.slashed,
            "juror_fees_lamports": self.juror_fees,
            "fined_lamports": self.fined,
            "burned_lamports": self.burned,
            "strikes": self.strikes,
            "cases": [case_values(case) for case in self.cases],
            "honest": {name: asdict(one) for name, one in self.honest.items()},
        }


async def read_outcome(client: CoordinatorClient, options: DemoOptions, demo: DemoRun) -> Outcome:
    """Read from the chain how the demo ended for the cheat and for the others."""
    view = await client.snapshot(demo.run)
    at = RunAddresses.of(view.run, client.program_id)
    slashes = await read_slashes(client, at)
    found = {one.plan.name: _find(one, view.entries) for one in demo.participants}
    stake = view.run.params.min_stake_lamports
    honest = {
        name: Standing(entry.stake, _is_untouched(index, entry, stake, slashes), fees)
        for name, (index, entry) in found.items()
        if name in options.names
        for fees in [fees_of(index, slashes.events)]
    }
    burned = sum(_burned(event) for event in slashes.events)
    if options.cheat not in found:
        return Outcome(honest=honest, burned=burned)
    index, entry = found[options.cheat]
    keys = sorted({case.key for case in slashes.cases if case.key[1] == index})
    cases = [(await read_case(client, at, key))[0] for key in keys]
    cheat = CHEATS[options.cheat]
    return Outcome(
        cheat=cheat.name,
        story=cheat.story,
        fault=cheat.fault,
        index=index,
        cases=tuple(case for case in cases if case is not None),
        fined=sum(fine.taken for fine in slashes.fines if fine.index == index),
        strikes=entry.strikes,
        burned=burned,
        honest=honest,
    )


def fees_of(index: int, events: Sequence[Event]) -> int:
    """Return what a participant earned as seat and juror, in lamports."""
    ends = [event for event in events if isinstance(event, AuditSettled | CaseSettled)]
    cases = [event for event in ends if isinstance(event, CaseSettled)]
    fees = sum(event.fee for event in ends if bitmap.has(event.paid, index))
    return fees + sum(one.seats_fee for one in cases if bitmap.has(one.seats_paid, index))


def _burned(event: Event) -> int:
    if isinstance(event, AuditClosed | Penalised):
        return event.burned
    return event.bond_burned if isinstance(event, CaseSettled) else 0


def _find(participant: DemoParticipant, entries: Sequence[EntryView]) -> tuple[int, EntryView]:
    owner = bytes(participant.owner.pubkey())
    return next((index, entry) for index, entry in enumerate(entries) if entry.owner == owner)


def _is_untouched(index: int, entry: EntryView, stake: int, slashes: Slashes) -> bool:
    is_fined = any(fine.index == index for fine in slashes.fines)
    is_convicted = any(case.is_conviction and case.key[1] == index for case in slashes.cases)
    return entry.stake == stake and not is_fined and not is_convicted
