"""Why an audit ends before its ledger does, as a finding.

Owns: the difference between a ledger that contradicts the rules and one of another version.
Never: reads a ledger. Next: `auditor.py`.
"""

from troth_audit.replay.findings import Finding, Grade, Rule, discrepancy
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.event_types import EVENT_TYPES
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.rules.errors import RulesError

INSTALL = "install the version of troth that plays this run"


def reason(entry: Entry | None, error: LedgerError | RulesError, round_: int | None) -> Finding:
    """Return what it means that an audit cannot go on after `entry`.

    An event that this version cannot read proves nothing: another version of the program may have
    recorded it. Everything else is proven.
    """
    expected = f"{error.subject}: {error.expected}"
    names = () if entry is None else tuple(name for name, _ in entry.events)
    is_unreadable = isinstance(error.__cause__, ArtifactError)
    if is_unreadable or not EVENT_TYPES.keys() >= set(names):
        found = f"{error.found}: {INSTALL}, or get another copy of the ledger"
        return Finding(Grade.MISSING, Rule.CHAIN_HASH, expected, found, round_)
    # A rule is broken by an event that the program refuses: a forged ledger has it.
    return discrepancy(Rule.CHAIN_HASH, expected, error.found, round_)
