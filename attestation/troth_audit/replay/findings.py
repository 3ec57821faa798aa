"""The findings of an auditor: proven discrepancies, and data that it could not get.

Owns: the record of a finding, and the rules by name. Never: prints, or ends the audit.
Next: `told.py` for what the rules are checked against.
"""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How much a finding says. A discrepancy is proven; missing data prove nothing.

    A note is a fault of a participant that the protocol foresees: the run is as it should be. Or it
    is about what was left undone, or is not decided yet: that proves nothing.
    """

    DISCREPANCY = "discrepancy"
    MISSING = "missing"
    NOTE = "note"


class Rule(StrEnum):
    """The rules that an auditor checks, each under one name."""

    CHAIN_HASH = "chain hash"
    RUN_ACCOUNT = "run account"
    CONFIG = "config"
    MANIFEST = "manifest"
    PHASE = "phases of a run"
    ROUND_SETS = "sets of a round"
    CLOSE = "close of a round"
    HEADER = "header"
    SIGNATURE = "signature of a header"
    PAYLOAD = "payload"
    POSSESSION = "possession"
    STATE_ROOT = "state root"
    ROOT_VOTE = "root vote"
    CHECKPOINT = "checkpoint"
    SEED = "seed"
    SAMPLE = "sample"
    SEATS = "seats"
    OPENINGS = "openings"
    VERDICT = "verdict"
    OUTCOME = "outcome of an audit"
    JURY = "jury"
    CASE = "outcome of a case"
    PENALTY = "penalty"
    REWARD = "reward"
    VAULT = "vault"
    WORK = "recomputed work"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit, or that is not there.

    `round` and `participant` are None where the finding is about neither.
    """

    grade: Grade
    rule: Rule
    expected: str
    found: str
    round: int | None = None
    participant: int | None = None

    @property
    def place(self) -> str:
        """Where it was found, for a person: `round 3, participant 2`."""
        parts = [("round", self.round), ("participant", self.participant)]
        return ", ".join(f"{name} {value}" for name, value in parts if value is not None)


def discrepancy(
    rule: Rule,
    expected: object,
    found: object,
    round_: int | None = None,
    participant: int | None = None,
) -> Finding:
    """Return a finding that proves something wrong; bytes are shown in hex."""
    return _finding(Grade.DISCREPANCY, rule, (expected, found), (round_, participant))


def missing(
    rule: Rule, what: str, round_: int | None = None, participant: int | None = None
) -> Finding:
    """Return a finding about data that no source has."""
    return Finding(Grade.MISSING, rule, what, "not in any source", round_, participant)


def note(
    rule: Rule,
    expected: object,
    found: object,
    round_: int | None = None,
    participant: int | None = None,
) -> Finding:
    """Return a finding about a fault of a participant that the protocol deals with."""
    return _finding(Grade.NOTE, rule, (expected, found), (round_, participant))


def _finding(
    grade: Grade,
    rule: Rule,
    what: tuple[object, object],
    place: tuple[int | None, int | None],
) -> Finding:
    expected, found = (one.hex() if isinstance(one, bytes) else str(one) for one in what)
    return Finding(grade, rule, expected, found, *place)
