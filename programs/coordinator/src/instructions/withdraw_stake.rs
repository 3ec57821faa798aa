//! `withdraw_stake`: pays matured stake, and unbonds stake above the minimum.

use anchor_lang::prelude::*;

use crate::constants::MAX_PARTIAL_TICKETS;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, ParticipantClosed, StakeUnbonding, StakeWithdrawn};
use crate::math::{add, sub};
use crate::pda;
use crate::state::{Participant, Roster, Run, Ticket};

/// Accounts of `withdraw_stake`.
#[derive(Accounts)]
pub struct WithdrawStake<'info> {
    /// Owner of the participant; receives the stake.
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
    /// The participant; closed once nothing is left.
    #[account(
        mut,
        dup,
        has_one = run @ refuse(CoordinatorError::WrongRun),
        has_one = owner @ refuse(CoordinatorError::WrongOwner),
        has_one = payer @ refuse(CoordinatorError::WrongPayer),
    )]
    pub participant: Box<Account<'info, Participant>>,
    /// The vault of the run.
    /// CHECK: `run.vault`; lamports leave it here.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// Payer of the participant's rent.
    /// CHECK: `participant.payer`; only lamports enter.
    #[account(mut)]
    pub payer: UncheckedAccount<'info>,
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

impl WithdrawStake<'_> {
    /// Pays matured tickets; opens one for `unbond_lamports` if that is not zero; closes the
    /// participant once it has left and nothing is owed to it.
    pub fn handle(
        ctx: Context<WithdrawStake>,
        journal: &mut Journal,
        unbond_lamports: u64,
    ) -> Result<()> {
        let accounts = ctx.accounts;
        let slot = Clock::get()?.slot;
        let owner = accounts.owner.key();
        accounts.roster.load()?.require_unfrozen(owner)?;
        let paid = accounts.pay_matured(journal, slot)?;
        if unbond_lamports > 0 {
            accounts.unbond(journal, unbond_lamports, slot)?;
        }
        let closes = {
            let (run, roster) = (accounts.run.load()?, accounts.roster.load()?);
            accounts.participant.is_closable(&run, &roster, slot)?
        };
        ensure!(
            paid > 0 || unbond_lamports > 0 || closes,
            CoordinatorError::NothingToWithdraw
        );
        accounts.participant.invariant()?;
        if closes {
            accounts.close(journal, slot)?;
        }
        let run = accounts.run.load()?;
        run.invariant()?;
        run.check_vault(&accounts.vault)
    }

    fn pay_matured(&mut self, journal: &mut Journal, slot: u64) -> Result<u64> {
        let clock = self.run.load()?.clock(slot);
        let lamports = self.participant.take_matured(clock)?;
        if lamports == 0 {
            return Ok(0);
        }
        let participant = &mut self.participant;
        participant.withdrawn_total = add(participant.withdrawn_total, lamports)?;
        let (mut run, mut roster) = (self.run.load_mut()?, self.roster.load_mut()?);
        run.total_unbonding = sub(run.total_unbonding, lamports)?;
        if let Some(entry) = participant.entry_mut_of(&mut roster) {
            entry.unbonding = sub(entry.unbonding, lamports)?;
        }
        pda::pay(&self.vault, &self.owner, lamports)?;
        let event = StakeWithdrawn {
            run: self.run.key(),
            sequence: run.event_sequence,
            slot,
            owner: self.owner.key(),
            lamports,
        };
        record(&mut run, journal, &event)?;
        Ok(lamports)
    }

    fn unbond(&mut self, journal: &mut Journal, lamports: u64, slot: u64) -> Result<()> {
        let (mut run, mut roster) = (self.run.load_mut()?, self.roster.load_mut()?);
        let index = self.participant.index;
        let entry = self
            .participant
            .entry_mut_of(&mut roster)
            .ok_or_else(|| refuse(CoordinatorError::NotJoined))?;
        let spare = entry.stake.saturating_sub(run.params.min_stake_lamports);
        ensure!(lamports <= spare, CoordinatorError::StakeBelowMinimum);
        let ticket = Ticket {
            lamports,
            matures_clock: add(run.clock(slot), run.params.unbond_slots)?,
        };
        self.participant.open_ticket(ticket, MAX_PARTIAL_TICKETS)?;
        run.unbond_stake(entry, lamports)?;
        entry.invariant()?;
        let event = StakeUnbonding {
            run: self.run.key(),
            sequence: run.event_sequence,
            slot,
            index,
            lamports,
            matures_clock: ticket.matures_clock,
        };
        record(&mut run, journal, &event)
    }

    fn close(&self, journal: &mut Journal, slot: u64) -> Result<()> {
        let mut run = self.run.load_mut()?;
        run.num_participants = sub(run.num_participants, 1)?;
        let event = ParticipantClosed {
            run: self.run.key(),
            sequence: run.event_sequence,
            slot,
            owner: self.owner.key(),
            payer: self.payer.key(),
        };
        record(&mut run, journal, &event)?;
        pda::close(self.participant.as_ref().as_ref(), &self.payer)
    }
}
