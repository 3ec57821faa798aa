"""The exact cases of a jury, about a payload, a root or a possession, and the votes of its jurors.

Owns: the decision about these faults from bytes that anybody can fetch or replay, and the hash that
hides a vote until its reveal. Never: fetches, decodes or replays; work is judged in `work.py`.
Next: `quorum.py`, which counts the votes. As there, MISMATCH stands for "the fault is there".

A juror without the deciding evidence says UNAVAILABLE, which counts for neither side.
"""

from dataclasses import dataclass
from typing import Final

from troth_attestation import merkle, possession
from troth_attestation.header import Header
from troth_attestation.sizes import PAYLOAD_LEAF_BYTES
from troth_attestation.sketch import NUM_BUCKETS, sketch_hash
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_coordinator.rules import bitmap as bitmaps
from troth_coordinator.rules.hashing import H, b32, u8, u16, u64
from troth_coordinator.rules.ids import Digest
from troth_coordinator.rules.root import root_vote

NO_SKETCH: Final = (0,) * NUM_BUCKETS
"""The sketch of a judge that recomputed nothing."""
NO_SKETCH_HASH: Final = sketch_hash(NO_SKETCH)


@dataclass(frozen=True, slots=True)
class Vote:
    """The statement that a juror commits to.

    `case_kind` is that of the audit account; `evidence` the openings root of a case about work,
    zeros in the exact cases. `sketch_hash` is that of the juror's own gradient under the seed of
    the case; in the exact cases that of 64 zeros.
    """

    run: bytes
    round: int
    target: int
    case_kind: int
    witness: int
    kind: VerdictKind
    evidence: bytes
    sketch_hash: bytes = NO_SKETCH_HASH

    def commit(self, salt: bytes) -> Digest:
        """Return the H("troth:vote", ...) of the fields in order, sketch hash and salt last.

        Indices are u16, kind and verdict u8, the salt 32 bytes. Raises RangeError for a field that
        does not fit.
        """
        return H(
            "troth:vote",
            b32(self.run, "run"),
            u64(self.round),
            u16(self.target),
            u8(self.case_kind),
            u16(self.witness),
            u8(self.kind),
            b32(self.evidence, "evidence root"),
            b32(self.sketch_hash, "sketch hash"),
            b32(salt, "salt"),
        )


def judge_payload(
    header: Header | None, payload: bytes | None, length: int, malformed: str | None
) -> Verdict:
    """Return the verdict on a payload case: MISMATCH if the included payload fails section 5.4.

    `header` is the header whose hash is on chain. `payload` are the bytes served for it, None if
    nobody serves them. `length` is the length of every payload of the model. `malformed` is the
    strict decoder's error, None if the payload is well formed.
    """
    if header is None:
        return _unavailable("the committed header")
    if header.payload_bytes != length:
        found = f"the header promises {header.payload_bytes} bytes, not {length}"
        return Verdict(VerdictKind.MISMATCH, Reason.PAYLOAD_MALFORMED, detail=found)
    if not payload or _payload_root(payload) != header.payload_root:
        return _unavailable(f"a payload under the root {header.payload_root.hex()}")
    if len(payload) != length:
        found = f"{len(payload)} bytes, not {length}"
        return Verdict(VerdictKind.MISMATCH, Reason.PAYLOAD_MALFORMED, detail=found)
    if malformed is not None:
        return Verdict(VerdictKind.MISMATCH, Reason.PAYLOAD_MALFORMED, detail=malformed)
    return Verdict(VerdictKind.OK, Reason.PAYLOAD_WELL_FORMED)


def judge_root(vote: bytes, voter: tuple[bytes, int, bytes], replayed: bytes | None) -> Verdict:
    """Return the verdict on a root case: MISMATCH if exact replay contradicts the root vote.

    `voter` is (run, round, owner of the vote). `replayed` is the state root that replay gives for
    that round, None if it cannot be replayed. Votes of a round that was forced void are exempt:
    the program opens no case about them.
    """
    if replayed is None:
        return _unavailable("a replay up to the round")
    if root_vote(*voter, replayed) == vote:
        return Verdict(VerdictKind.OK, Reason.ROOT_IS_REPLAYED)
    detail = f"replay gives {replayed.hex()}"
    return Verdict(VerdictKind.MISMATCH, Reason.ROOT_IS_FALSE, detail=detail)


def judge_possession(
    claim: bytes, attester: tuple[bytes, int, bytes], subject: int, payload: bytes | None
) -> Verdict:
    """Return the verdict on a possession case: MISMATCH if the byte for `subject` is wrong.

    `claim` are the 64 attested bytes. `attester` is (run, round, owner) of the attestation.
    `payload` are the bytes of the subject, None if nobody serves them. The program opens a case
    only about an included payload that was vouched for. PossessionError unless the claim has 64
    bytes.
    """
    if payload is None:
        return _unavailable(f"payload {subject}")
    bit = bitmaps.from_indices([subject])
    if possession.false_claims(claim, bit, attester, {subject: payload}):
        return Verdict(VerdictKind.MISMATCH, Reason.POSSESSION_IS_FALSE)
    return Verdict(VerdictKind.OK, Reason.POSSESSION_HOLDS)


def _payload_root(payload: bytes) -> Digest:
    return merkle.root(merkle.cut(payload, PAYLOAD_LEAF_BYTES))


def _unavailable(what: str) -> Verdict:
    return Verdict(VerdictKind.UNAVAILABLE, Reason.EVIDENCE_MISSING, detail=f"not here: {what}")
