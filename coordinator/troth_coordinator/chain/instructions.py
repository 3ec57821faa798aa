"""Instructions of a run's life and rounds: what callers import to make them.

Owns: two names for common cases (`vote_root`, `is_checkpoint_due`), and the list of all others.
Never: signs or sends, and checks nothing that the program checks.
Next: builders/ for the functions, generated from the program's IDL; terms.py for the records;
client.py, which sends what is made here.
"""

from __future__ import annotations

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.builders.life import (
    admit,
    claim_reward,
    close_run,
    create_run,
    fund_run,
    init_roster,
    init_round,
    join_run,
    leave_run,
    pause_run,
    resume_run,
    set_endpoint,
    set_session_key,
    top_up_stake,
    update_params,
    withdraw_stake,
)
from troth_coordinator.chain.builders.rounds import (
    activate,
    advance_phase,
    announce_manifest,
    attest,
    close_round,
    close_void,
    commit_payload,
    freeze_seed,
    post_ready,
    report_missing,
    retarget_seed,
)
from troth_coordinator.chain.building import (
    build,
    with_accounts,
)
from troth_coordinator.chain.terms import (
    JoinTerms,
    Manifest,
    RunTerms,
)
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RunView

__all__ = [
    "JoinTerms",
    "Manifest",
    "RunTerms",
    "activate",
    "admit",
    "advance_phase",
    "announce_manifest",
    "attest",
    "build",
    "claim_reward",
    "close_round",
    "close_run",
    "close_void",
    "commit_payload",
    "create_run",
    "freeze_seed",
    "fund_run",
    "init_roster",
    "init_round",
    "is_checkpoint_due",
    "join_run",
    "leave_run",
    "pause_run",
    "post_ready",
    "report_missing",
    "resume_run",
    "retarget_seed",
    "set_endpoint",
    "set_session_key",
    "top_up_stake",
    "update_params",
    "vote_root",
    "with_accounts",
    "withdraw_stake",
]


def vote_root(
    at: RunAddresses, session: Pubkey, index: int, round_: int, root_vote: bytes
) -> Instruction:
    """Vote for the current root in Cooldown: commit_payload without a payload."""
    return commit_payload(at, session, index, round_, ZERO_DIGEST, root_vote)


def is_checkpoint_due(run: RunView) -> bool:
    """Tell whether closing the open round of `run` stores a checkpoint."""
    return run.phase == Phase.COOLDOWN or run.round >= run.next_checkpoint_round
