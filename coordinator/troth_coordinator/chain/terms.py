"""Records for instructions that take more than a few arguments.

Owns: the records and their meaning; their fields have the names of the program's arguments.
Never: encodes them or derives an address.
Next: instructions.py, audit_instructions.py and case_instructions.py, which take them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from solders.pubkey import Pubkey

from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.ids import NO_INDEX
from troth_coordinator.rules.params_view import ParamsView

NO_SUBJECT: Final = NO_INDEX
"""A case that is not about somebody else's payload."""


@dataclass(frozen=True, slots=True)
class RunTerms:
    """The terms of a new run; all hashes and the id are 32 bytes."""

    run_id: bytes
    config_hash: bytes
    manifest_hash: bytes
    genesis_root: bytes
    council: Pubkey
    params: ParamsView


@dataclass(frozen=True, slots=True)
class JoinTerms:
    """The terms on which a participant joins. roles: 1 trainer, 2 witness, 3 both."""

    index: int
    roles: int
    session: Pubkey
    endpoint: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The announcement of a checkpoint's files: round, hash[32] of the manifest, and its URI."""

    round: int
    hash: bytes
    uri: str


@dataclass(frozen=True, slots=True)
class Reveal:
    """The reveal of a seat: verdict, evidence root[32], sketch of 64 int32, salt[32]."""

    verdict: int
    evidence: bytes
    sketch: tuple[int, ...]
    salt: bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """A challenger's accusation: `target` did `kind` in `round`.

    `subject` is the index whose payload a false possession is about, else NO_SUBJECT.
    """

    round: int
    target: int
    kind: AuditKind
    subject: int = NO_SUBJECT


@dataclass(frozen=True, slots=True)
class JurorVote:
    """A vote as the program takes it.

    To commit: verdict 0, the commitment as `hash`, a sketch and a salt of zeros. To reveal: the
    verdict, the evidence root[32] as `hash`, the sketch of 64 int32, and the salt[32].
    """

    verdict: int
    hash: bytes
    sketch: tuple[int, ...]
    salt: bytes
