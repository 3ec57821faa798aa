"""Instructions of the authority and of owners.

Generated: run scripts/gen/instructions.py instead of editing.

Owns: one function per instruction: its arguments, and where its accounts come from.
Never: signs or sends, and checks nothing that the program checks.
Next: ../instructions.py, which callers import; ../building.py for what `build` adds.

`at` names the run. A key that must sign has the name of its role: authority, owner, session, payer.
"""

from __future__ import annotations

from collections.abc import Sequence

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.building import build, with_accounts
from troth_coordinator.chain.terms import JoinTerms, RunTerms
from troth_coordinator.rules.params_view import ParamsView


def create_run(at: RunAddresses, authority: Pubkey, terms: RunTerms) -> Instruction:
    """Creates a run and its vault.

    authority: authority and funder of the run; pays the rent.
    """
    return build(at, "create_run", {"args": terms}, authority=authority)


def init_roster(at: RunAddresses, payer: Pubkey) -> Instruction:
    """Creates the roster, and grows it by 10 240 bytes per call until it is full size.

    payer: the authority of the run: a stranger could otherwise start the roster and never end it.
    """
    return build(at, "init_roster", {}, payer=payer)


def init_round(at: RunAddresses, payer: Pubkey, position: int) -> Instruction:
    """Creates one position of the ring of rounds.

    payer: pays the rent, and gets it back when the run closes.
    """
    return build(at, "init_round", {"position": position}, payer=payer, round=at.position(position))


def admit(at: RunAddresses, authority: Pubkey, owner: Pubkey) -> Instruction:
    """Puts an owner on the allowlist.

    authority: authority of the run; pays the rent of the participant.
    """
    return build(
        at, "admit", {"owner": owner}, authority=authority, participant=at.participant(owner)
    )


def fund_run(at: RunAddresses, funder: Pubkey, lamports: int) -> Instruction:
    """Adds lamports to the reward pool.

    funder: funder recorded in the run: leftovers return to this key.
    """
    return build(at, "fund_run", {"lamports": lamports}, funder=funder)


def pause_run(at: RunAddresses, authority: Pubkey) -> Instruction:
    """Stops the clock: at once between rounds, else at the next close.

    authority: authority of the run.
    """
    return build(at, "pause_run", {}, authority=authority)


def resume_run(at: RunAddresses, signer: Pubkey, round_: int) -> Instruction:
    """Restarts the clock, or cancels a requested pause.

    signer: authority of the run; anyone once the pause budget is spent.
    round_: `run.round`.
    """
    return build(at, "resume_run", {}, signer=signer, round=at.round(round_))


def update_params(at: RunAddresses, authority: Pubkey, params: ParamsView) -> Instruction:
    """Requests new parameters, in force from an epoch boundary after the delay.

    authority: authority of the run.
    """
    return build(at, "update_params", {"params": params}, authority=authority)


def close_run(
    at: RunAddresses,
    closer: Pubkey,
    authority: Pubkey,
    funder: Pubkey,
    pairs: Sequence[tuple[Pubkey, Pubkey]] = (),
) -> Instruction:
    """Closes the accounts of a finished run, batch by batch.

    closer: sender of the transaction, open to anyone; the authority where the run is unused.
    authority: authority of the run; gets back the rent of run, vault and roster.
    funder: funder of the run; receives all that is not owed to anybody.
    pairs: accounts to close, each with its recorded payer.
    """
    return with_accounts(
        build(at, "close_run", {}, closer=closer, authority=authority, funder=funder),
        [key for pair in pairs for key in pair],
    )


def join_run(
    at: RunAddresses, owner: Pubkey, terms: JoinTerms, former_owner: Pubkey | None = None
) -> Instruction:
    """Deposits the stake and takes an index.

    owner: owner of the participant; pays the stake and the rent.
    former_owner: the owner that held the index before, if any.
    """
    return build(
        at,
        "join_run",
        {"args": terms},
        owner=owner,
        participant=at.participant(owner),
        previous=None if former_owner is None else at.participant(former_owner),
    )


def top_up_stake(at: RunAddresses, owner: Pubkey, lamports: int) -> Instruction:
    """Adds to a stake.

    owner: owner of the participant.
    """
    return build(
        at, "top_up_stake", {"lamports": lamports}, owner=owner, participant=at.participant(owner)
    )


def set_session_key(at: RunAddresses, owner: Pubkey, session: Pubkey) -> Instruction:
    """Names a new session key, in force from the next round open.

    owner: owner of the participant.
    """
    return build(
        at, "set_session_key", {"session": session}, owner=owner, participant=at.participant(owner)
    )


def set_endpoint(at: RunAddresses, owner: Pubkey, endpoint: str) -> Instruction:
    """Changes where a participant serves what it holds, at once.

    owner: owner of the participant.
    """
    return build(
        at, "set_endpoint", {"endpoint": endpoint}, owner=owner, participant=at.participant(owner)
    )


def leave_run(at: RunAddresses, owner: Pubkey) -> Instruction:
    """Starts leaving: the whole stake unbonds.

    owner: owner of the participant.
    """
    return build(at, "leave_run", {}, owner=owner, participant=at.participant(owner))


def withdraw_stake(
    at: RunAddresses, owner: Pubkey, unbond_lamports: int, payer: Pubkey | None = None
) -> Instruction:
    """Pays matured stake, and unbonds stake above the minimum.

    owner: owner of the participant; receives the stake.
    payer: the key that paid the participant's rent, if not the owner.
    """
    return build(
        at,
        "withdraw_stake",
        {"unbond_lamports": unbond_lamports},
        owner=owner,
        participant=at.participant(owner),
        payer=payer or owner,
    )


def claim_reward(at: RunAddresses, owner: Pubkey) -> Instruction:
    """Pays vested rewards.

    owner: owner of the participant; receives the rewards.
    """
    return build(at, "claim_reward", {}, owner=owner, participant=at.participant(owner))
