//! `init_round`: creates one position of the ring of rounds.

use anchor_lang::prelude::*;

use crate::constants::{NONE, VERSION};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, RoundInitialized};
use crate::math::add;
use crate::pda;
use crate::pda::SEED_ROUND;
use crate::state::{init::initialise, Round, Run};

/// Accounts of `init_round`.
#[derive(Accounts)]
pub struct InitRound<'info> {
    /// Pays the rent, and gets it back when the run closes.
    #[account(mut)]
    pub payer: Signer<'info>,
    /// The run.
    #[account(mut)]
    pub run: AccountLoader<'info, Run>,
    /// The round account.
    /// CHECK: created here by `pda::create` at the address derived from the seeds.
    #[account(mut)]
    pub round: UncheckedAccount<'info>,
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

impl InitRound<'_> {
    fn validate(&self, position: u16) -> Result<u8> {
        let run = self.run.load()?;
        run.require_unfinished()?;
        let ring = run.params.ring;
        ensure!(position < ring, CoordinatorError::PositionOutOfRange);
        let key = self.run.key();
        let (address, bump) = pda::find(&[SEED_ROUND, key.as_ref(), &position.to_le_bytes()]);
        ensure!(self.round.key() == address, CoordinatorError::WrongAddress);
        Ok(bump)
    }

    /// Creates one position of the ring of rounds.
    pub fn handle(ctx: Context<InitRound>, journal: &mut Journal, position: u16) -> Result<()> {
        let accounts = ctx.accounts;
        let bump = accounts.validate(position)?;
        let (key, payer) = (accounts.run.key(), accounts.payer.key());
        let place = position.to_le_bytes();
        let seeds: [&[u8]; 4] = [SEED_ROUND, key.as_ref(), &place, &[bump]];
        pda::create(&accounts.payer, &accounts.round, &seeds, Round::SIZE)?;
        initialise::<Round>(&accounts.round, |round| {
            round.version = VERSION;
            round.bump = bump;
            round.position = position;
            round.run = key;
            round.payer = payer;
            round.round = NONE;
            round.base_round = NONE;
            round.commit_end_slot = NONE;
            round.close_slot = NONE;
            round.seed_slot = NONE;
            round.invariant()
        })?;
        let mut run = accounts.run.load_mut()?;
        run.num_rounds = add(run.num_rounds, 1)?;
        let event = RoundInitialized {
            run: key,
            sequence: run.event_sequence,
            slot: Clock::get()?.slot,
            position,
            payer,
        };
        record(&mut run, journal, &event)
    }
}
