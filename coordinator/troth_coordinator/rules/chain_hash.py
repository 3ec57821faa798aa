"""The chain hash (protocol section 11): one digest that commits to a run's whole history.

Owns: how a closed round and an absorbed event are folded into the chain hash.
Never: reads the chain; an auditor passes what the chain recorded.
Next: `seeds.py` for the seeds of audits, `root.py` for the decision that a close records.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.errors import ChainOrderError
from troth_coordinator.rules.hashing import H, b32, exactly, u8, u16, u64, var
from troth_coordinator.rules.ids import MAX_PARTICIPANTS, Digest
from troth_coordinator.rules.view import RoundView


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a round; the header hash is zeros in a root-only step."""

    index: int
    header_hash: bytes
    root_vote: bytes


@dataclass(frozen=True, slots=True)
class Attestation:
    """One attestation of a round; `possession` is 64 bytes."""

    index: int
    bitmap: int
    possession: bytes


@dataclass(frozen=True, slots=True)
class ClosedRound:
    """Everything about a closed round that the chain hash covers.

    Commits and attestations are in ascending index; `canonical_root` is zeros if void.
    """

    round: int
    members: int
    trainers: int
    commits: tuple[Commit, ...]
    attestations: tuple[Attestation, ...]
    included: int
    canonical_root: bytes


def commits_digest(commits: Iterable[Commit]) -> Digest:
    """Return H("troth:commits", index u16, header hash, root vote, for ascending index)."""
    return H(
        "troth:commits",
        *(u16(c.index) + b32(c.header_hash) + b32(c.root_vote) for c in _ascending(commits)),
    )


def attests_digest(attestations: Iterable[Attestation]) -> Digest:
    """Return H("troth:attests", index u16, bitmap u64, possession[64], for ascending index)."""
    return H(
        "troth:attests",
        *(
            u16(a.index) + u64(a.bitmap) + exactly(a.possession, MAX_PARTICIPANTS, "possession")
            for a in _ascending(attestations)
        ),
    )


def after_close(previous: bytes, closed: ClosedRound) -> Digest:
    """Return the chain hash after a round (or root-only step) closed."""
    return H(
        "troth:chain",
        b32(previous, "previous chain hash"),
        u64(closed.round),
        u64(closed.members),
        u64(closed.trainers),
        commits_digest(closed.commits),
        attests_digest(closed.attestations),
        u64(closed.included),
        b32(closed.canonical_root, "canonical root"),
    )


def after_event(previous: bytes, sequence: int, kind: int, body: bytes) -> Digest:
    """Return the chain hash after an absorbed event; `body` is its borsh encoding."""
    fields = (b32(previous, "previous chain hash"), u64(sequence), u8(kind), var(body))
    return H("troth:event", *fields)


def closed_round(round_: RoundView) -> ClosedRound:
    """Return what the chain hash covers of a round account that has closed."""
    ballots = round_.ballots
    return ClosedRound(
        round=round_.round,
        members=round_.members,
        trainers=round_.trainers,
        commits=tuple(
            Commit(i, ballots[i].header_hash, ballots[i].root_vote)
            for i in bitmap.indices_of(round_.committed)
        ),
        attestations=tuple(
            Attestation(i, ballots[i].attest_bitmap, ballots[i].possession)
            for i in bitmap.indices_of(round_.attested)
        ),
        included=round_.included,
        canonical_root=round_.canonical_root,
    )


Item = TypeVar("Item", Commit, Attestation)


def _ascending(items: Iterable[Item]) -> Iterable[Item]:
    last = -1
    for item in items:
        if item.index <= last:
            raise ChainOrderError(
                "participants of a round",
                f"an index above {last}",
                item.index,
                "list each participant once, in ascending index",
            )
        last = item.index
        yield item
