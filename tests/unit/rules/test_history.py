"""The chain hash and the seeds of audits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.views import key, round_view

from troth_coordinator.rules import chain_hash, seeds
from troth_coordinator.rules.chain_hash import Attestation, ClosedRound, Commit
from troth_coordinator.rules.errors import ChainOrderError, RangeError
from troth_coordinator.rules.seeds import Lookup

CLOSED = ClosedRound(
    round=7,
    members=0b11,
    trainers=0b11,
    commits=(Commit(0, key(1), key(2)), Commit(1, key(3), key(4))),
    attestations=(Attestation(0, 3, bytes(64)),),
    included=0b11,
    canonical_root=key(5),
)
CHANGES = {
    "round": 8,
    "members": 1,
    "trainers": 1,
    "commits": (Commit(0, key(1), key(2)), Commit(1, key(3), key(5))),
    "attestations": (Attestation(0, 2, bytes(64)),),
    "included": 1,
    "canonical_root": bytes(32),
}


@pytest.mark.parametrize("field", sorted(CHANGES))
def test_the_chain_hash_covers_every_field(field):
    before = chain_hash.after_close(bytes(32), CLOSED)
    changed = replace(CLOSED, **{field: CHANGES[field]})
    assert chain_hash.after_close(bytes(32), changed) != before
    assert chain_hash.after_close(key(1), CLOSED) != before


def test_a_round_account_gives_what_was_folded():
    view = round_view(committed=0b101, attested=0b10, included=0b1, canonical_root=key(5))
    closed = chain_hash.closed_round(view)
    assert [commit.index for commit in closed.commits] == [0, 2]
    assert [attestation.index for attestation in closed.attestations] == [1]
    assert closed.round == 7
    assert closed.included == 1
    assert closed.canonical_root == key(5)


@pytest.mark.parametrize("indices", [(1, 0), (0, 0)])
def test_participants_are_listed_once_in_ascending_index(indices):
    with pytest.raises(ChainOrderError, match="ascending index"):
        chain_hash.commits_digest(Commit(i, key(1), key(2)) for i in indices)
    with pytest.raises(ChainOrderError, match="ascending index"):
        chain_hash.attests_digest(Attestation(i, 0, bytes(64)) for i in indices)


def test_possession_has_64_bytes():
    with pytest.raises(RangeError, match="possession: expected 64 bytes"):
        chain_hash.attests_digest([Attestation(0, 0, bytes(63))])


def sysvar(entries):
    data = b"".join(slot.to_bytes(8, "little") + key(slot) for slot in entries)
    return len(entries).to_bytes(8, "little") + data


@given(st.sets(st.integers(1, 60), min_size=1), st.integers(1, 60), st.integers(1, 59))
def test_the_seed_depends_on_neither_caller_nor_moment(slots, wanted, length):
    """For any listed part of the history, the answer is the same or none."""
    newest_first = sorted(slots, reverse=True)
    answers = set()
    for at in range(len(newest_first)):
        found = seeds.first_at_or_after(sysvar(newest_first[at : at + length]), wanted)
        if found.lookup is Lookup.FOUND:
            answers.add((found.slot, found.hash))
    expected = min((slot for slot in slots if slot >= wanted), default=None)
    assert all(slot == expected and hash_ == key(expected or 0) for slot, hash_ in answers)


def test_bytes_after_the_counted_entries_are_ignored():
    listed = sysvar([9, 8]) + bytes(400)
    assert seeds.first_at_or_after(listed, 9).lookup is Lookup.FOUND
    assert seeds.first_at_or_after(listed, 8).lookup is Lookup.LOST
    assert seeds.first_at_or_after(listed[:87], 9).lookup is Lookup.MALFORMED
