"""Exact cases: what decides is bytes that anybody can fetch or replay, never an opinion."""

import hashlib
from dataclasses import replace

import pytest
from support.headers import HEADER

from troth_attestation import merkle, possession
from troth_attestation.cases import Vote, judge_payload, judge_possession, judge_root
from troth_attestation.errors import PossessionError
from troth_attestation.quorum import CaseOutcome, case_outcome
from troth_attestation.verdict import Reason, VerdictKind
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.root import root_vote

PAYLOAD = bytes(range(256)) * 8
SIGNED = replace(
    HEADER, payload_root=merkle.root([PAYLOAD[:1024], PAYLOAD[1024:]]), payload_bytes=2048
)
VOTE = Vote(b"r" * 32, 300, 7, 2, 9, VerdictKind.MISMATCH, b"e" * 32, b"k" * 32)


def test_a_vote_is_hashed_over_every_field_in_the_order_of_the_program():
    plain = hashlib.sha256(
        (10).to_bytes(4, "little")
        + b"troth:vote"
        + b"r" * 32
        + (300).to_bytes(8, "little")
        + (7).to_bytes(2, "little")
        + bytes([2])
        + (9).to_bytes(2, "little")
        + bytes([2])
        + b"e" * 32
        + b"k" * 32
        + b"s" * 32
    ).digest()
    assert VOTE.commit(b"s" * 32) == plain
    others = [
        replace(VOTE, run=b"q" * 32),
        replace(VOTE, round=301),
        replace(VOTE, target=8),
        replace(VOTE, case_kind=1),
        replace(VOTE, witness=8),
        replace(VOTE, kind=VerdictKind.OK),
        replace(VOTE, evidence=bytes(32)),
        replace(VOTE, sketch_hash=bytes(32)),
    ]
    hashes = {vote.commit(b"s" * 32) for vote in (VOTE, *others)} | {VOTE.commit(b"t" * 32)}
    assert len(hashes) == 10


def test_a_vote_with_a_short_salt_is_refused():
    with pytest.raises(RangeError):
        VOTE.commit(b"s" * 31)


def test_a_canonical_payload_is_acquitted():
    found = judge_payload(SIGNED, PAYLOAD, 2048, None)
    assert found.kind == VerdictKind.OK
    assert found.reason == Reason.PAYLOAD_WELL_FORMED


def test_a_payload_that_the_decoder_refuses_is_a_fault_and_the_verdict_says_why():
    found = judge_payload(SIGNED, PAYLOAD, 2048, "indices descend in tile 3")
    assert found.kind == VerdictKind.MISMATCH
    assert found.reason == Reason.PAYLOAD_MALFORMED
    assert "indices descend in tile 3" in found.explain()


def test_a_header_that_promises_another_length_is_a_fault_without_any_payload():
    found = judge_payload(replace(SIGNED, payload_bytes=4096), None, 2048, None)
    assert found.kind == VerdictKind.MISMATCH
    assert "4096" in found.detail


def test_bytes_under_the_signed_root_of_another_length_are_a_fault():
    short = replace(SIGNED, payload_root=merkle.root([PAYLOAD[:1024]]))
    found = judge_payload(short, PAYLOAD[:1024], 2048, None)
    assert found.kind == VerdictKind.MISMATCH
    assert "1024 bytes" in found.detail


@pytest.mark.parametrize("served", [None, b"", PAYLOAD[:-1] + b"?", PAYLOAD[:1024]])
def test_bytes_that_are_not_the_signed_ones_prove_nothing(served):
    """A holder who serves rubbish must not convict the trainer."""
    found = judge_payload(SIGNED, served, 2048, "padding is not zero")
    assert found.kind == VerdictKind.UNAVAILABLE
    assert found.reason == Reason.EVIDENCE_MISSING


def test_nothing_is_said_without_the_committed_header():
    assert judge_payload(None, PAYLOAD, 2048, None).kind == VerdictKind.UNAVAILABLE


@pytest.mark.parametrize(
    ("replayed", "kind", "reason"),
    [
        (b"w" * 32, VerdictKind.OK, Reason.ROOT_IS_REPLAYED),
        (b"x" * 32, VerdictKind.MISMATCH, Reason.ROOT_IS_FALSE),
        (None, VerdictKind.UNAVAILABLE, Reason.EVIDENCE_MISSING),
    ],
)
def test_a_root_vote_is_held_against_replay(replayed, kind, reason):
    vote = root_vote(b"r" * 32, 5, b"o" * 32, b"w" * 32)
    found = judge_root(vote, (b"r" * 32, 5, b"o" * 32), replayed)
    assert found.kind == kind
    assert found.reason == reason


def test_a_vote_copied_from_somebody_else_is_false_even_for_the_right_root():
    copied = root_vote(b"r" * 32, 5, b"o" * 32, b"w" * 32)
    found = judge_root(copied, (b"r" * 32, 5, b"p" * 32), b"w" * 32)
    assert found.kind == VerdictKind.MISMATCH


def test_possession_is_the_byte_of_the_payload():
    attester = (b"r" * 32, 5, b"o" * 32)
    claim = bytearray(possession.possession(*attester, {4: PAYLOAD}))
    assert judge_possession(bytes(claim), attester, 4, PAYLOAD).kind == VerdictKind.OK
    assert judge_possession(bytes(claim), attester, 4, None).kind == VerdictKind.UNAVAILABLE
    claim[4] ^= 1
    found = judge_possession(bytes(claim), attester, 4, PAYLOAD)
    assert found.kind == VerdictKind.MISMATCH
    assert found.reason == Reason.POSSESSION_IS_FALSE
    claim[4] ^= 1
    claim[5] ^= 1
    assert judge_possession(bytes(claim), attester, 4, PAYLOAD).kind == VerdictKind.OK


def test_a_claim_of_another_length_is_refused():
    with pytest.raises(PossessionError):
        judge_possession(bytes(63), (b"r" * 32, 5, b"o" * 32), 4, PAYLOAD)


def test_those_who_lack_the_evidence_count_for_neither_side():
    fault = judge_root(b"v" * 32, (bytes(32), 1, bytes(32)), bytes(32))
    missing = judge_root(b"v" * 32, (bytes(32), 1, bytes(32)), None)
    votes = [fault.kind] * 2 + [missing.kind]
    assert case_outcome(votes, is_work=False) == CaseOutcome.CONVICTED
    votes = [fault.kind] + [missing.kind] * 2
    assert case_outcome(votes, is_work=False) == CaseOutcome.NOT_PROVEN
