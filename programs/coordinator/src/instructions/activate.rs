//! `activate`: checks a `post_ready` against the canonical root of its round.

use anchor_lang::prelude::*;

use crate::constants::{NONE, ROUND_CLOSED, ROUND_VOID};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Activated, Journal};
use crate::math::add;
use crate::rules::root::root_vote;
use crate::state::{Change, Phase, Roster, Round, Run, Status};

/// Accounts of `activate`.
#[derive(Accounts)]
pub struct Activate<'info> {
    /// Sender of the transaction, open to anyone.
    pub cranker: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The round of the entry's `post_ready`.
    #[account(constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun))]
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

impl Activate<'_> {
    fn validate(&self, index: u16) -> Result<()> {
        let (run, roster, round) = (self.run.load()?, self.roster.load()?, self.round.load()?);
        let is_running = run.is(Phase::Commit) || run.is(Phase::Attest) || is_between(&run);
        ensure!(is_running, CoordinatorError::WrongPhase);
        let entry = roster.entry(index)?;
        ensure!(!entry.is(Status::Active), CoordinatorError::AlreadyActive);
        ensure!(entry.is_present(), CoordinatorError::NotJoined);
        ensure!(entry.ready_round != NONE, CoordinatorError::NotReady);
        let is_short = entry.is_short(&run.params);
        ensure!(!is_short, CoordinatorError::StakeTooLow);
        ensure!(
            round.round == entry.ready_round,
            CoordinatorError::WrongRoundAccount
        );
        let has_root = round.has_flag(ROUND_CLOSED) && !round.has_flag(ROUND_VOID);
        ensure!(has_root, CoordinatorError::RoundHasNoRoot);
        let key = self.run.key().to_bytes();
        let root = &round.canonical_root;
        let vote = root_vote(&key, round.round, &entry.owner.to_bytes(), root);
        ensure!(
            entry.ready_root == vote,
            CoordinatorError::ReadyRootMismatch
        );
        Ok(())
    }

    /// Makes a joiner a member from the next open on, with a zero residual.
    pub fn handle(ctx: Context<Activate>, journal: &mut Journal, index: u16) -> Result<()> {
        let slot = Clock::get()?.slot;
        ctx.accounts.validate(index)?;
        let (mut run, mut roster) = (
            ctx.accounts.run.load_mut()?,
            ctx.accounts.roster.load_mut()?,
        );
        let entry = roster.entry_mut(index)?;
        let ready_round = entry.ready_round;
        entry.clear_ready();
        entry.last_included = NONE;
        entry.misses_in_row = 0;
        entry.deadline_misses_in_row = 0;
        entry.active_round = if is_between(&run) {
            run.round
        } else {
            add(run.round, 1)?
        };
        entry.change(Change::Activate);
        entry.invariant()?;
        let event = Activated {
            run: ctx.accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            index,
            ready_round,
            active_round: entry.active_round,
        };
        record(&mut run, journal, &event)?;
        run.invariant()
    }
}

/// Whether the run is paused between two rounds: `run.round` opens when it resumes.
fn is_between(run: &Run) -> bool {
    run.is(Phase::Paused) && run.resume_phase == Phase::Commit as u8
}
