//! `post_openings`: a target fixes what it shows.

use anchor_lang::prelude::*;

use crate::audit::open::{AuditId, AuditOpener};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, OpeningsPosted};
use crate::state::init::open_mut;
use crate::state::{Audit, Roster, Round, Run, Stage};

/// Accounts of `post_openings`.
#[derive(Accounts)]
pub struct PostOpenings<'info> {
    /// Session key of the target.
    pub session: Signer<'info>,
    /// Pays the rent where nobody has opened the audit; may be the session key.
    #[account(mut)]
    pub payer: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The round; read only where nobody has opened the audit.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The audit.
    /// CHECK: created here at the address derived from the seeds, or checked to be that audit.
    #[account(mut)]
    pub audit: UncheckedAccount<'info>,
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

impl PostOpenings<'_> {
    /// Fixes the root over the openings; verdicts may be committed from now on.
    pub fn handle(
        ctx: Context<PostOpenings>,
        journal: &mut Journal,
        number: u64,
        target: u16,
        root: [u8; 32],
    ) -> Result<()> {
        ensure!(root != [0; 32], CoordinatorError::OpeningsRootZero);
        let accounts = &ctx.accounts;
        let slot = Clock::get()?.slot;
        let roster = accounts.roster.load()?;
        roster.signed_entry(target, accounts.session.key)?;
        drop(roster);
        accounts.open_if_due(journal, number, target, slot)?;
        let (mut run, mut roster) = (accounts.run.load_mut()?, accounts.roster.load_mut()?);
        roster.entry_mut(target)?.act(run.clock(slot), &run.params);
        let mut audit = open_mut::<Audit>(&accounts.audit)?;
        audit.require_id(&accounts.run.key(), AuditId::work(number, target))?;
        let is_first = audit.openings_root == [0; 32];
        ensure!(is_first, CoordinatorError::OpeningsPosted);
        audit.require(Stage::Openings, run.clock(slot))?;
        audit.openings_root = root;
        let ended = audit.stage_end;
        audit.enter(Stage::Commit, ended, run.params.verdict_commit_slots)?;
        audit.invariant()?;
        let event = OpeningsPosted {
            run: accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            round: number,
            target,
            root,
            stage_end: audit.stage_end,
        };
        record(&mut run, journal, &event)?;
        run.invariant()
    }

    /// Opens the audit unless somebody has.
    fn open_if_due(
        &self,
        journal: &mut Journal,
        number: u64,
        target: u16,
        slot: u64,
    ) -> Result<()> {
        if self.audit.owner == &crate::ID && !open_mut::<Audit>(&self.audit)?.is(Stage::Requested) {
            return Ok(());
        }
        let mut opener = AuditOpener {
            payer: &self.payer,
            account: &self.audit,
            key: self.run.key(),
            slot,
            run: &mut *self.run.load_mut()?,
            roster: &mut *self.roster.load_mut()?,
            round: &mut *self.round.load_mut()?,
            journal,
        };
        opener.open(number, target)
    }
}
