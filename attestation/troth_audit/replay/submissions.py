"""Headers held against what the chain says, and against the rounds before them.

Owns: the fields of each header, the residual that it carries on, root votes, false possession.
Never: fetches; `evidence.py` did.
Next: `troth_attestation/expected.py` for the fields.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from troth_attestation.expected import ExpectedHeader, field_errors
from troth_attestation.header import Header
from troth_attestation.state import zero_residual_root
from troth_audit.replay.evidence import Claim, Evidence
from troth_audit.replay.findings import Finding, Grade, Rule, discrepancy
from troth_audit.replay.ports import Decoded, Terms
from troth_audit.replay.saved import Saved
from troth_coordinator.rules.ids import NONE, Address, Digest, ParticipantIndex, RoundIndex
from troth_coordinator.rules.root import root_vote

KEPT_RESIDUALS = 8
"""Included headers of a participant that are remembered: a strike leads back over a few."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The chain's word about the maker of a header at the open of its round."""

    claim: Claim
    epoch: int
    owner: bytes
    session: bytes
    previous_included: int
    root_vote: bytes
    canonical_root: bytes


@dataclass(slots=True)
class Submissions:
    """Checks the headers of a run in order of their rounds.

    It remembers the residuals of a few included headers of each participant.
    """

    terms: Terms
    num_headers: int = 0
    num_payloads: int = 0
    _config_hash: Digest = field(init=False)
    _zero: Digest = field(init=False)
    _after: dict[int, deque[tuple[int, Digest]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compute what all headers share."""
        self._config_hash = self.terms.config.config_hash()
        self._zero = zero_residual_root(self.terms.num_tiles)

    def check(self, committed: Committed, found: Evidence[Decoded]) -> Iterator[Finding]:
        """Yield what is wrong with one submission.

        A wrong header that nobody included is a note: its payload counts for nothing.
        """
        claim, header = committed.claim, found.header
        yield from found.findings
        if header is None:
            return
        self.num_headers += 1
        grade = Grade.DISCREPANCY if claim.is_included else Grade.NOTE
        for rule, expected, value in self._wrong(committed, header, found.data_root):
            yield Finding(grade, rule, expected, value, claim.round, claim.index)
        if claim.is_included:
            self.num_payloads += 1
            kept = self._after.setdefault(claim.index, deque(maxlen=KEPT_RESIDUALS))
            kept.append((claim.round, header.residual_after))
        for voucher in found.false_possession:
            expected = f"its byte for the payload of participant {claim.index}"
            yield discrepancy(Rule.POSSESSION, expected, "another byte", claim.round, voucher)

    def strike(self, round_: int, index: int) -> None:
        """Forget a payload that was taken back: its residual is that of no included round."""
        kept = self._after.get(index, deque())
        for one in [one for one in kept if one[0] == round_]:
            kept.remove(one)

    def residuals(self) -> dict[int, list[tuple[int, str]]]:
        """Return what is remembered: rounds and residual roots by participant."""
        return {
            index: [(round_, after.hex()) for round_, after in kept]
            for index, kept in self._after.items()
        }

    def restore(self, saved: Saved) -> None:
        """Go on from an earlier process."""
        self.num_headers, self.num_payloads = saved.headers, saved.payloads
        for index, kept in saved.residuals.items():
            found = ((round_, Digest(bytes.fromhex(after))) for round_, after in kept)
            self._after[index] = deque(found, maxlen=KEPT_RESIDUALS)

    def counts(self) -> Mapping[str, int]:
        """Return how many headers and included payloads were checked."""
        return {"headers": self.num_headers, "payloads": self.num_payloads}

    def _wrong(
        self, committed: Committed, header: Header, data_root: bytes
    ) -> Iterator[tuple[Rule, str, str]]:
        claim = committed.claim
        for error in field_errors(header, self._expected(committed, data_root)):
            yield Rule.HEADER, f"{error.subject} {error.expected}", error.found
        vote = root_vote(self.terms.run, claim.round, committed.owner, header.state_root)
        if vote != committed.root_vote:
            expected = f"a vote for the root {header.state_root.hex()} in its header"
            yield Rule.ROOT_VOTE, expected, f"the vote {committed.root_vote.hex()}"

    def _expected(self, committed: Committed, data_root: bytes) -> ExpectedHeader:
        claim = committed.claim
        return ExpectedHeader(
            genesis_hash=Digest(self.terms.genesis_hash),
            program_id=Address(self.terms.program),
            run=Address(self.terms.run),
            epoch=committed.epoch,
            round=RoundIndex(claim.round),
            index=ParticipantIndex(claim.index),
            owner=Address(committed.owner),
            session=Address(committed.session),
            config_hash=self._config_hash,
            state_root=Digest(committed.canonical_root),
            data_root=Digest(data_root),
            payload_bytes=self.terms.payload_bytes,
            previous_included=RoundIndex(committed.previous_included),
            residual_before=self._residual(claim.index, committed.previous_included),
            zero_residual_root=self._zero,
        )

    def _residual(self, index: int, round_: int) -> Digest | None:
        """Return the residual after an included round; None where its header was not seen."""
        if round_ == NONE:
            return None
        kept = self._after.get(index, ())
        return next((after for number, after in reversed(kept) if number == round_), None)
