"""Instructions of rounds and seeds.

Generated: run scripts/gen/instructions.py instead of editing.

Owns: one function per instruction: its arguments, and where its accounts come from.
Never: signs or sends, and checks nothing that the program checks.
Next: ../instructions.py, which callers import; ../building.py for what `build` adds.

`at` names the run. A key that must sign has the name of its role: authority, owner, session, payer.
"""

from __future__ import annotations

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.building import build
from troth_coordinator.chain.terms import Manifest


def post_ready(
    at: RunAddresses, session: Pubkey, index: int, round_: int, vote: bytes
) -> Instruction:
    """Posts the root that a participant would train on.

    session: session key of the participant.
    round_: the round that the participant would train in.
    vote: root_vote(run, round, owner, root) of the weights it would train on.
    """
    return build(at, "post_ready", {"index": index, "round": round_, "vote": vote}, session=session)


def commit_payload(
    at: RunAddresses, session: Pubkey, index: int, round_: int, header_hash: bytes, root_vote: bytes
) -> Instruction:
    """Commits to a header and votes for a root.

    session: session key of the participant.
    header_hash: in Cooldown zeros.
    """
    return build(
        at,
        "commit_payload",
        {"index": index, "round": round_, "header_hash": header_hash, "root_vote": root_vote},
        session=session,
        round=at.round(round_),
    )


def attest(
    at: RunAddresses, session: Pubkey, index: int, round_: int, bitmap: int, possession: bytes
) -> Instruction:
    """Vouches for the payloads that a member holds.

    session: session key of the participant.
    possession: 64 bytes.
    """
    return build(
        at,
        "attest",
        {"index": index, "round": round_, "bitmap": bitmap, "possession": possession},
        session=session,
        round=at.round(round_),
    )


def report_missing(
    at: RunAddresses,
    session: Pubkey,
    index: int,
    round_: int,
    target: int,
    open_round: int | None = None,
) -> Instruction:
    """Reports an included payload that nobody serves.

    session: session key of the participant.
    round_: `base_round` of the open round.
    open_round: `run.round`; by default the round after `round_`.
    """
    return build(
        at,
        "report_missing",
        {"index": index, "round": round_, "target": target},
        session=session,
        round=at.round(round_),
        current_round=at.round(round_ + 1 if open_round is None else open_round),
    )


def announce_manifest(
    at: RunAddresses, session: Pubkey, owner: Pubkey, index: int, manifest: Manifest
) -> Instruction:
    """Announces where the files of a checkpoint are.

    session: session key of the participant.
    """
    return build(
        at,
        "announce_manifest",
        {
            "index": index,
            "round": manifest.round,
            "manifest_hash": manifest.hash,
            "uri": manifest.uri,
        },
        session=session,
        participant=at.participant(owner),
        checkpoint=at.checkpoint(manifest.round),
    )


def activate(at: RunAddresses, cranker: Pubkey, index: int, ready_round: int) -> Instruction:
    """Makes a ready participant a member of the next round.

    cranker: sender of the transaction, open to anyone.
    ready_round: the `ready_round` of the roster entry.
    """
    return build(at, "activate", {"index": index}, cranker=cranker, round=at.round(ready_round))


def advance_phase(at: RunAddresses, cranker: Pubkey, round_: int) -> Instruction:
    """Moves the run to its next phase once that is due.

    cranker: sender of the transaction, open to anyone.
    round_: `run.round`.
    """
    return build(at, "advance_phase", {}, cranker=cranker, round=at.round(round_))


def close_round(
    at: RunAddresses, cranker: Pubkey, round_: int, candidate_root: bytes, *, with_checkpoint: bool
) -> Instruction:
    """Closes a round under its canonical root and opens the next.

    cranker: sender of the transaction, open to anyone; pays for created accounts.
    with_checkpoint: whether a checkpoint is due at this close (`is_checkpoint_due`).
    """
    return build(
        at,
        "close_round",
        {"round": round_, "candidate_root": candidate_root},
        cranker=cranker,
        round=at.round(round_),
        next_round=at.round(round_ + 1),
        checkpoint=at.checkpoint(round_) if with_checkpoint else None,
    )


def close_void(at: RunAddresses, cranker: Pubkey, round_: int) -> Instruction:
    """Closes a round without a result and opens the next.

    cranker: sender of the transaction, open to anyone; pays for created accounts.
    """
    return build(
        at,
        "close_void",
        {"round": round_},
        cranker=cranker,
        round=at.round(round_),
        next_round=at.round(round_ + 1),
    )


def freeze_seed(at: RunAddresses, cranker: Pubkey, round_: int) -> Instruction:
    """Fixes the seed of a closed round's audits.

    cranker: sender of the transaction, open to anyone.
    """
    return build(at, "freeze_seed", {"round": round_}, cranker=cranker, round=at.round(round_))


def retarget_seed(at: RunAddresses, cranker: Pubkey, round_: int) -> Instruction:
    """Names another seed slot where the first one is no longer listed.

    cranker: sender of the transaction, open to anyone.
    """
    return build(at, "retarget_seed", {"round": round_}, cranker=cranker, round=at.round(round_))
