"""The bytes that a closed round rests on: headers, signatures, payloads, possession.

Owns: fetching them by their address and every check that needs no other round; threads do it.
Never: knows the rounds before: `submissions.py` compares a header with them.
Next: `submissions.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic

from troth_attestation.errors import HeaderError
from troth_attestation.header import (
    HEADER_BYTES,
    SIGNATURE_BYTES,
    Header,
    decode,
    verify_signature,
)
from troth_attestation.possession import possession_byte
from troth_attestation.state import data_root
from troth_audit.replay.findings import Finding, Grade, Rule, discrepancy, missing, note
from troth_audit.replay.ports import Decoded, Sources, Terms, Weights
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.assignment import SequenceOrder, rank_start
from troth_coordinator.rules.ids import ParticipantIndex

SIGNED_HEADER_BYTES = HEADER_BYTES + SIGNATURE_BYTES
_ANOTHER = "name an archive with the true one"


@dataclass(frozen=True, slots=True)
class Claim:
    """One commit of a closed round, and all that vouched for it: their owners and bytes."""

    round: int
    cursor: int
    trainers: int
    index: int
    header_hash: bytes
    is_included: bool
    vouchers: Mapping[int, tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class Evidence(Generic[Decoded]):
    """The bytes and faults found for a claim. `header` is None where it could not be had.

    `payload` is None for one that is not included, malformed, or missing; `is_whole` tells the
    last from the others. `findings` may hold possession that a case already punished.
    """

    claim: Claim
    header: Header | None = None
    data_root: bytes = b""
    payload: Decoded | None = None
    is_whole: bool = True
    findings: tuple[Finding, ...] = ()
    false_possession: tuple[int, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Collector(Generic[Decoded]):
    """Collects the evidence for claims; any thread may call it."""

    terms: Terms
    sources: Sources
    weights: Weights[Decoded]

    def collect(self, claim: Claim) -> Evidence[Decoded]:
        """Return the evidence for one claim."""
        signed = self.sources.get("header", claim.header_hash, SIGNED_HEADER_BYTES)
        if signed is None or len(signed) != SIGNED_HEADER_BYTES:
            return Evidence(claim, is_whole=False, findings=tuple(self._no_header(claim)))
        header = decode(signed[:HEADER_BYTES])
        found = list(_signature(header, signed[HEADER_BYTES:], claim))
        positions = data_root(assigned(self.terms, claim))
        if not claim.is_included:
            return Evidence(claim, header, positions, findings=tuple(found))
        root = header.payload_root
        data = self.sources.get("payload", root, self.terms.payload_bytes)
        if data is None:
            found += self._absent("payload", root, claim)
            return Evidence(claim, header, positions, is_whole=False, findings=tuple(found))
        payload = self.weights.decode(data, root)
        liars = tuple(self._liars(claim, data))
        if isinstance(payload, str):
            place = claim.round, claim.index
            found.append(note(Rule.PAYLOAD, "canonical form (section 5.4)", payload, *place))
            return Evidence(claim, header, positions, None, True, tuple(found), liars)
        return Evidence(claim, header, positions, payload, True, tuple(found), liars)

    def _no_header(self, claim: Claim) -> Iterator[Finding]:
        key = claim.header_hash
        if claim.is_included or self.sources.instead("header", key, SIGNED_HEADER_BYTES):
            yield from self._absent("header", key, claim)

    def _absent(self, kind: str, key: bytes, claim: Claim) -> Iterator[Finding]:
        rule, most = Rule.PAYLOAD, self.terms.payload_bytes
        if kind == "header":
            rule, most = Rule.HEADER, SIGNED_HEADER_BYTES
        instead, place = self.sources.instead(kind, key, most), (claim.round, claim.index)
        if instead:
            yield discrepancy(rule, f"{kind} {key.hex()}", instead, *place)
        else:
            yield missing(rule, f"{kind} {key.hex()}", *place)

    def _liars(self, claim: Claim, payload: bytes) -> Iterator[ParticipantIndex]:
        for index, (owner, claimed) in claim.vouchers.items():
            wanted = possession_byte(self.terms.run, claim.round, owner, claim.index, payload)
            if claimed != wanted:
                yield ParticipantIndex(index)


def assigned(terms: Terms, claim: Claim) -> tuple[int, ...]:
    """Return the ids of the sequences that the chain assigned to the maker of a claim."""
    count = terms.config.train.sequences_per_payload
    order = SequenceOrder(terms.num_sequences, terms.config.manifest_digest())
    rank = bitmap.rank(claim.trainers, claim.index)
    return order.sequences(rank_start(claim.cursor, rank, count), count)


def _signature(header: Header, signature: bytes, claim: Claim) -> Iterator[Finding]:
    try:
        verify_signature(header, signature)
    except HeaderError as error:
        # The address of a header says nothing of its signature: any holder may have spoilt it.
        grade = Grade.MISSING if claim.is_included else Grade.NOTE
        expected = f"{error.expected}, on header {claim.header_hash.hex()}"
        found = f"{signature.hex()[:32]}… in every source that has it: {_ANOTHER}"
        yield Finding(grade, Rule.SIGNATURE, expected, found, claim.round, claim.index)
