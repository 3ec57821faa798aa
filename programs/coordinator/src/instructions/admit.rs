//! `admit`: puts an owner on the allowlist.

use anchor_lang::prelude::*;

use crate::constants::{ADMISSION_ALLOWLIST, NONE};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, ParticipantAdmitted};
use crate::instructions::join_run::create_participant;
use crate::math::add;
use crate::state::Run;

/// Accounts of `admit`.
#[derive(Accounts)]
pub struct Admit<'info> {
    /// Authority of the run; pays the rent of the participant.
    #[account(mut)]
    pub authority: Signer<'info>,
    /// The run.
    #[account(mut, has_one = authority @ refuse(CoordinatorError::WrongAuthority))]
    pub run: AccountLoader<'info, Run>,
    /// The participant to create.
    /// CHECK: created here by `pda::create` at the address derived from the seeds.
    #[account(mut)]
    pub participant: UncheckedAccount<'info>,
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

impl Admit<'_> {
    fn validate(&self) -> Result<()> {
        let run = self.run.load()?;
        run.require_unfinished()?;
        ensure!(
            run.params.admission == ADMISSION_ALLOWLIST,
            CoordinatorError::AdmissionOpen
        );
        Ok(())
    }

    /// Puts an owner on the allowlist by creating its participant account.
    pub fn handle(ctx: Context<Admit>, journal: &mut Journal, owner: Pubkey) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate()?;
        let key = accounts.run.key();
        let mut participant =
            create_participant(&accounts.authority, &accounts.participant, key, owner)?;
        participant.admitted = true;
        participant.save(&accounts.participant)?;

        let mut run = accounts.run.load_mut()?;
        run.num_participants = add(run.num_participants, 1)?;
        if run.newest_round() == NONE {
            run.expected_admitted = add(run.expected_admitted, 1)?;
        }
        let event = ParticipantAdmitted {
            run: key,
            sequence: run.event_sequence,
            slot: Clock::get()?.slot,
            owner,
        };
        record(&mut run, journal, &event)
    }
}
