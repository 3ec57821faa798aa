"""One function per instruction of the program: typed arguments to a solders Instruction.

Owns: which accounts and arguments each instruction takes; order and flags come from the IDL.
Never: signs or sends, and checks nothing that the program checks.
Next: client.py, which sends them; ../../../programs/coordinator/src/lib.rs for what they do.

`at` says which run (RunAddresses). Keys of people are public keys; whoever must sign is named by
its role: authority, owner, session, cranker, payer. Rounds are u64, indices u16, hashes 32 bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses, round_position_address
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import ParamsView, RunView


@dataclass(frozen=True, slots=True)
class RunTerms:
    """What a run is created with; all hashes and the id are 32 bytes."""

    run_id: bytes
    config_hash: bytes
    manifest_hash: bytes
    genesis_root: bytes
    council: Pubkey
    params: ParamsView


@dataclass(frozen=True, slots=True)
class JoinTerms:
    """What a participant joins with. roles: 1 trainer, 2 witness, 3 both."""

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


# The run authority.


def create_run(at: RunAddresses, authority: Pubkey, terms: RunTerms) -> Instruction:
    """Create the run and its vault; the authority pays and becomes the funder."""
    params = {field.name: getattr(terms.params, field.name) for field in _PARAMS}
    args = {field.name: getattr(terms, field.name) for field in dataclasses.fields(terms)}
    args["params"] = {**params, "admission": int(terms.params.admission), "reserved": bytes(3)}
    return build(at, "create_run", {"args": args}, authority=authority)


def init_roster(at: RunAddresses, payer: Pubkey) -> Instruction:
    """Create the roster, or grow it by up to 10 240 bytes; repeat until it has full size."""
    return build(at, "init_roster", {}, payer=payer)


def init_round(at: RunAddresses, payer: Pubkey, position: int) -> Instruction:
    """Create one position of the round ring."""
    address = round_position_address(at.run, position, at.program)
    return build(at, "init_round", {"position": position}, payer=payer, round=address)


def admit(at: RunAddresses, authority: Pubkey, owner: Pubkey) -> Instruction:
    """Put an owner on the allowlist."""
    participant = at.participant(owner)
    return build(at, "admit", {"owner": owner}, authority=authority, participant=participant)


def fund_run(at: RunAddresses, funder: Pubkey, lamports: int) -> Instruction:
    """Pay into the reward pool."""
    return build(at, "fund_run", {"lamports": lamports}, funder=funder)


def pause_run(at: RunAddresses, authority: Pubkey) -> Instruction:
    """Ask for a pause: at the next close, or at once outside a round."""
    return build(at, "pause_run", {}, authority=authority)


def resume_run(at: RunAddresses, signer: Pubkey, round_: int) -> Instruction:
    """End a pause; `round_` is run.round. Anyone may once the pause budget is spent."""
    return build(at, "resume_run", {}, signer=signer, round=at.round(round_))


def update_params(at: RunAddresses, authority: Pubkey, params: ParamsView) -> Instruction:
    """Ask for new parameters, in force from an epoch boundary after the delay."""
    values = {field.name: getattr(params, field.name) for field in _PARAMS}
    values = {**values, "admission": int(params.admission), "reserved": bytes(3)}
    return build(at, "update_params", {"params": values}, authority=authority)


def close_run(
    at: RunAddresses,
    authority: Pubkey,
    funder: Pubkey,
    pairs: Sequence[tuple[Pubkey, Pubkey]] = (),
) -> Instruction:
    """Close accounts of a finished run; `pairs` are (account, its recorded payer)."""
    built = build(at, "close_run", {}, authority=authority, funder=funder)
    return with_accounts(built, [key for pair in pairs for key in pair])


# The owner of a participant.


def join_run(
    at: RunAddresses, owner: Pubkey, terms: JoinTerms, former_owner: Pubkey | None = None
) -> Instruction:
    """Deposit the stake and take an index; `former_owner` is who held that index before, if any."""
    args = {field.name: getattr(terms, field.name) for field in dataclasses.fields(terms)}
    return build(
        at,
        "join_run",
        {"args": args},
        owner=owner,
        participant=at.participant(owner),
        previous=None if former_owner is None else at.participant(former_owner),
    )


def top_up_stake(at: RunAddresses, owner: Pubkey, lamports: int) -> Instruction:
    """Add to the stake."""
    return _of_owner(at, "top_up_stake", owner, {"lamports": lamports})


def set_session_key(at: RunAddresses, owner: Pubkey, session: Pubkey) -> Instruction:
    """Name a new session key, in force from the next round open."""
    return _of_owner(at, "set_session_key", owner, {"session": session})


def leave_run(at: RunAddresses, owner: Pubkey) -> Instruction:
    """Leave from the next round open; the stake starts unbonding."""
    return _of_owner(at, "leave_run", owner, {})


def withdraw_stake(
    at: RunAddresses, owner: Pubkey, unbond_lamports: int, payer: Pubkey | None = None
) -> Instruction:
    """Pay matured tickets, and open one for stake above the minimum unless unbond_lamports is 0.

    payer: who paid the participant's rent, if not the owner; it returns there at the end.
    """
    args = {"unbond_lamports": unbond_lamports}
    return _of_owner(at, "withdraw_stake", owner, args, payer=payer or owner)


def claim_reward(at: RunAddresses, owner: Pubkey) -> Instruction:
    """Pay out vested rewards."""
    return _of_owner(at, "claim_reward", owner, {})


# The session key of a participant.


def ready(at: RunAddresses, session: Pubkey, index: int, round_: int, vote: bytes) -> Instruction:
    """Post root_vote(run, round, owner, root) of the weights one would train on."""
    args = {"index": index, "round": round_, "vote": vote}
    return build(at, "ready", args, session=session)


def commit_payload(
    at: RunAddresses,
    session: Pubkey,
    index: int,
    round_: int,
    header_hash: bytes,
    root_vote: bytes,
) -> Instruction:
    """Commit to a header, and vote for a root; in Cooldown the header hash is zeros."""
    args = {"index": index, "round": round_, "header_hash": header_hash, "root_vote": root_vote}
    return build(at, "commit_payload", args, session=session, round=at.round(round_))


def vote_root(
    at: RunAddresses, session: Pubkey, index: int, round_: int, root_vote: bytes
) -> Instruction:
    """Vote for the current root in Cooldown: commit_payload without a payload."""
    return commit_payload(at, session, index, round_, ZERO_DIGEST, root_vote)


def attest(
    at: RunAddresses,
    session: Pubkey,
    index: int,
    round_: int,
    bitmap: int,
    possession: bytes,
) -> Instruction:
    """Vouch for the payloads in the bitmap; possession is 64 bytes."""
    args = {"index": index, "round": round_, "bitmap": bitmap, "possession": possession}
    return build(at, "attest", args, session=session, round=at.round(round_))


def report_missing(
    at: RunAddresses,
    session: Pubkey,
    index: int,
    round_: int,
    target: int,
    open_round: int | None = None,
) -> Instruction:
    """Say that a payload included in `round_` cannot be fetched.

    `open_round` is run.round, by default the next one; it is later where a first report has
    already voided the rounds between. `round_` must be its base_round.
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
    """Announce where a checkpoint's files are."""
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


# Anyone.


def activate(at: RunAddresses, cranker: Pubkey, index: int, ready_round: int) -> Instruction:
    """Make a ready participant active; ready_round is its entry's."""
    return build(at, "activate", {"index": index}, cranker=cranker, round=at.round(ready_round))


def tick(at: RunAddresses, cranker: Pubkey, round_: int) -> Instruction:
    """Move to the next phase where one is due; round_ is run.round."""
    return build(at, "tick", {}, cranker=cranker, round=at.round(round_))


def close_round(
    at: RunAddresses,
    cranker: Pubkey,
    round_: int,
    candidate_root: bytes,
    *,
    with_checkpoint: bool,
) -> Instruction:
    """Close a round (or Cooldown's root-only step) on a candidate root and open the next.

    with_checkpoint: pass the Checkpoint account, needed when one is due at this close.
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


def is_checkpoint_due(run: RunView) -> bool:
    """Tell whether closing the open round of `run` stores a checkpoint."""
    return run.phase == Phase.COOLDOWN or run.round >= run.next_checkpoint_round


def close_void(at: RunAddresses, cranker: Pubkey, round_: int) -> Instruction:
    """Close a round as void, after its grace, or at once where it is forced."""
    return build(
        at,
        "close_void",
        {"round": round_},
        cranker=cranker,
        round=at.round(round_),
        next_round=at.round(round_ + 1),
    )


def freeze_seed(at: RunAddresses, cranker: Pubkey, round_: int) -> Instruction:
    """Fix the audit seed of a closed round."""
    args = {"round": round_}
    return build(at, "freeze_seed", args, cranker=cranker, round=at.round(round_))


def retarget(at: RunAddresses, cranker: Pubkey, round_: int) -> Instruction:
    """Choose a new seed slot where the old one has left the listed 512; twice: the seed is lost."""
    args = {"round": round_}
    return build(at, "retarget", args, cranker=cranker, round=at.round(round_))


_PARAMS = dataclasses.fields(ParamsView)


def _of_owner(
    at: RunAddresses, name: str, owner: Pubkey, args: Mapping[str, object], **keys: Pubkey
) -> Instruction:
    return build(at, name, args, owner=owner, participant=at.participant(owner), **keys)


def with_accounts(built: Instruction, writable: Sequence[Pubkey]) -> Instruction:
    """Return the instruction with writable accounts behind those that the IDL names."""
    rest = [AccountMeta(key, is_signer=False, is_writable=True) for key in writable]
    return Instruction(built.program_id, built.data, [*built.accounts, *rest])


def build(
    at: RunAddresses, name: str, args: Mapping[str, object], **keys: Pubkey | None
) -> Instruction:
    """Encode, and lay the accounts out as the IDL says.

    Run, roster, vault and constant addresses fill in by themselves. An optional account that is
    absent is the program id, which is how Anchor spells None.
    """
    codec = program_codec()
    spec = codec.instructions[name]
    known: dict[str, Pubkey | None] = {"run": at.run, **keys}
    metas = []
    for slot in spec.accounts:
        key = slot.address or known.get(slot.name)
        if key is None and slot.name in ("roster", "vault"):
            key = at.roster if slot.name == "roster" else at.vault
        if key is None and not slot.optional:
            raise ArtifactError(
                f"instruction {name}",
                f"an address for the account {slot.name}",
                "none: the IDL names an account that this package does not know",
                "reinstall troth",
            )
        absent = key is None
        metas.append(
            AccountMeta(
                at.program if key is None else key,
                is_signer=slot.signer and not absent,
                is_writable=slot.writable and not absent,
            )
        )
    return Instruction(at.program, codec.instruction_data(name, args), metas)
