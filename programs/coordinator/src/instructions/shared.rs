//! Accounts that several instructions take, in the same order and under the same conditions.
//!
//! Owns one struct per list. Never a handler: each instruction has its file. The IDL lists the
//! accounts of each instruction flat, as if it had a struct of its own.
//! Next: the files named above each struct.

use anchor_lang::prelude::*;

use crate::constants::{INCINERATOR, SLOT_HASHES};
use crate::errors::{refuse, CoordinatorError};
use crate::state::{Audit, Roster, Round, Run};

/// A participant acts in the open round: `commit_payload`, `attest`.
#[derive(Accounts)]
pub struct MemberInRound<'info> {
    /// Session key of the participant.
    pub session: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The round.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// Signs the call that shows the events.
    /// CHECK: the address is checked; it holds nothing.
    #[account(
        address = crate::events::EVENT_AUTHORITY @ refuse(CoordinatorError::WrongEventAuthority),
    )]
    pub event_authority: UncheckedAccount<'info>,
    /// This program, which that call is for.
    /// CHECK: the address is checked.
    #[account(address = crate::ID @ refuse(CoordinatorError::WrongProgram))]
    pub program: UncheckedAccount<'info>,
}

/// A seat or a juror judges: `commit_verdict`, `reveal_verdict`, `vote_case`.
#[derive(Accounts)]
pub struct JudgeInAudit<'info> {
    /// Session key of the judge.
    pub session: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The audit.
    #[account(
        mut,
        constraint = audit.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub audit: AccountLoader<'info, Audit>,
    /// Signs the call that shows the events.
    /// CHECK: the address is checked; it holds nothing.
    #[account(
        address = crate::events::EVENT_AUTHORITY @ refuse(CoordinatorError::WrongEventAuthority),
    )]
    pub event_authority: UncheckedAccount<'info>,
    /// This program, which that call is for.
    /// CHECK: the address is checked.
    #[account(address = crate::ID @ refuse(CoordinatorError::WrongProgram))]
    pub program: UncheckedAccount<'info>,
}

/// Somebody settles the seed of a closed round: `freeze_seed`, `retarget_seed`.
#[derive(Accounts)]
pub struct SeedOfRound<'info> {
    /// Sender of the transaction, open to anyone.
    pub cranker: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The round.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The `SlotHashes` sysvar.
    /// CHECK: the address is checked, the bytes are read by offset.
    #[account(address = SLOT_HASHES @ refuse(CoordinatorError::WrongSysvar))]
    pub slot_hashes: UncheckedAccount<'info>,
    /// Signs the call that shows the events.
    /// CHECK: the address is checked; it holds nothing.
    #[account(
        address = crate::events::EVENT_AUTHORITY @ refuse(CoordinatorError::WrongEventAuthority),
    )]
    pub event_authority: UncheckedAccount<'info>,
    /// This program, which that call is for.
    /// CHECK: the address is checked.
    #[account(address = crate::ID @ refuse(CoordinatorError::WrongProgram))]
    pub program: UncheckedAccount<'info>,
}

/// A challenger pays for a judgement: `request_audit`, `open_case`.
#[derive(Accounts)]
pub struct Challenge<'info> {
    /// Pays the fees in advance or posts the bond, and the rent of an account created here.
    #[account(mut)]
    pub challenger: Signer<'info>,
    /// The run.
    #[account(
        mut,
        has_one = roster @ refuse(CoordinatorError::WrongRoster),
        has_one = vault @ refuse(CoordinatorError::WrongVault),
    )]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The ring account of the round: the open one for `request_audit`.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The audit: created here, except for a case about work that an audit has judged.
    /// CHECK: created by `pda::create` at its derived address, or opened with its kind checked.
    #[account(mut)]
    pub audit: UncheckedAccount<'info>,
    /// The vault of the run.
    /// CHECK: `run.vault`; only lamports enter.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// The system program.
    pub system_program: Program<'info, System>,
    /// Signs the call that shows the events.
    /// CHECK: the address is checked; it holds nothing.
    #[account(
        address = crate::events::EVENT_AUTHORITY @ refuse(CoordinatorError::WrongEventAuthority),
    )]
    pub event_authority: UncheckedAccount<'info>,
    /// This program, which that call is for.
    /// CHECK: the address is checked.
    #[account(address = crate::ID @ refuse(CoordinatorError::WrongProgram))]
    pub program: UncheckedAccount<'info>,
}

/// Somebody ends an audit or a case: `settle_audit`, `settle_case`. Beside these accounts, the
/// writable Participants of those who are penalised.
#[derive(Accounts)]
pub struct Settlement<'info> {
    /// Sender of the transaction, open to anyone.
    pub cranker: Signer<'info>,
    /// The run.
    #[account(
        mut,
        has_one = roster @ refuse(CoordinatorError::WrongRoster),
        has_one = vault @ refuse(CoordinatorError::WrongVault),
    )]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The ring account at the position of the audit's round, whatever round it holds now.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The audit.
    #[account(
        mut,
        constraint = audit.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub audit: AccountLoader<'info, Audit>,
    /// The vault of the run.
    /// CHECK: `run.vault`; lamports leave it here.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// Where lamports are burned.
    /// CHECK: the address is checked; only lamports enter.
    #[account(mut, address = INCINERATOR @ refuse(CoordinatorError::WrongIncinerator))]
    pub incinerator: UncheckedAccount<'info>,
    /// Challenger whose bond, or whose fees paid in advance, are not used up.
    /// CHECK: `audit.challenger`; only lamports enter.
    #[account(mut)]
    pub challenger: Option<UncheckedAccount<'info>>,
    /// Signs the call that shows the events.
    /// CHECK: the address is checked; it holds nothing.
    #[account(
        address = crate::events::EVENT_AUTHORITY @ refuse(CoordinatorError::WrongEventAuthority),
    )]
    pub event_authority: UncheckedAccount<'info>,
    /// This program, which that call is for.
    /// CHECK: the address is checked.
    #[account(address = crate::ID @ refuse(CoordinatorError::WrongProgram))]
    pub program: UncheckedAccount<'info>,
}
