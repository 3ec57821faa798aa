//! `claim_reward`: pays vested rewards.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, RewardClaimed};
use crate::math::{add, sub};
use crate::pda;
use crate::state::{Participant, Roster, Run};

/// Accounts of `claim_reward`.
#[derive(Accounts)]
pub struct ClaimReward<'info> {
    /// Owner of the participant; receives the rewards.
    #[account(mut)]
    pub owner: Signer<'info>,
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
    /// The participant.
    #[account(
        mut,
        dup,
        has_one = run @ refuse(CoordinatorError::WrongRun),
        has_one = owner @ refuse(CoordinatorError::WrongOwner),
    )]
    pub participant: Box<Account<'info, Participant>>,
    /// The vault of the run.
    /// CHECK: `run.vault`; lamports leave it here.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
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

impl ClaimReward<'_> {
    /// Releases the buckets that have vested and pays everything claimable.
    pub fn handle(ctx: Context<ClaimReward>, journal: &mut Journal) -> Result<()> {
        let accounts = ctx.accounts;
        let slot = Clock::get()?.slot;
        let (mut run, mut roster) = (accounts.run.load_mut()?, accounts.roster.load_mut()?);
        roster.require_unfrozen(accounts.owner.key())?;
        let participant = &mut accounts.participant;
        let mut lamports = std::mem::take(&mut participant.claimable);
        let mut vested = 0;
        let entries = roster.entries.iter_mut();
        for entry in entries.filter(|entry| entry.owner == participant.owner) {
            vested = add(vested, run.release_vested(entry, slot)?)?;
            lamports = add(lamports, std::mem::take(&mut entry.claimable))?;
            entry.invariant()?;
        }
        ensure!(lamports > 0, CoordinatorError::NothingToClaim);
        run.total_claimable = sub(run.total_claimable, lamports)?;
        participant.claimed_total = add(participant.claimed_total, lamports)?;
        pda::pay(&accounts.vault, &accounts.owner, lamports)?;
        let event = RewardClaimed {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            owner: accounts.owner.key(),
            vested,
            lamports,
        };
        record(&mut run, journal, &event)?;
        run.invariant()?;
        run.check_vault(&accounts.vault)
    }
}
