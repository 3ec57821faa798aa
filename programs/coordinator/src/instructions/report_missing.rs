//! `report_missing`: a member reports an included payload that nobody serves.

use anchor_lang::prelude::*;

use crate::constants::NONE;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, MissingReported};
use crate::math::mul;
use crate::round::RoundContext;
use crate::rules::bitmap::{bit, contains, count};
use crate::state::{Roster, Round, Run};

/// Arguments of `report_missing`.
#[derive(Clone, Copy)]
pub struct ReportMissingArgs {
    /// Index of the member that reports.
    pub index: u16,
    /// Round of the payload.
    pub round: u64,
    /// Index of the payload.
    pub target: u16,
}

/// Accounts of `report_missing`.
#[derive(Accounts)]
pub struct ReportMissing<'info> {
    /// Session key of the participant.
    pub session: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
    /// The round whose payload is missing.
    #[account(
        mut,
        constraint = round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub round: AccountLoader<'info, Round>,
    /// The round after it.
    #[account(
        mut,
        constraint = current_round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub current_round: AccountLoader<'info, Round>,
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

impl ReportMissing<'_> {
    fn validate(&self, args: &ReportMissingArgs) -> Result<()> {
        let (run, round, open) = (
            self.run.load()?,
            self.round.load()?,
            self.current_round.load()?,
        );
        let is_open = run.phase()?.is_in_round();
        ensure!(is_open, CoordinatorError::WrongPhase);
        ensure!(open.round == run.round, CoordinatorError::WrongRoundAccount);
        let is_base = args.round != NONE && args.round == open.base_round;
        ensure!(is_base, CoordinatorError::ReportsClosed);
        ensure!(
            round.round == args.round,
            CoordinatorError::WrongRoundAccount
        );
        self.roster
            .load()?
            .signed_entry(args.index, self.session.key)?;
        let (index, target) = (usize::from(args.index), usize::from(args.target));
        ensure!(contains(open.members, index), CoordinatorError::NotAMember);
        ensure!(
            contains(round.included, target),
            CoordinatorError::NotIncluded
        );
        let reports = round.ballot(args.target)?.missing_reports;
        ensure!(!contains(reports, index), CoordinatorError::AlreadyReported);
        Ok(())
    }

    /// Records that a member lacks an included payload; half of the members strike it.
    pub fn handle(
        ctx: Context<ReportMissing>,
        journal: &mut Journal,
        args: &ReportMissingArgs,
    ) -> Result<()> {
        let slot = Clock::get()?.slot;
        ctx.accounts.validate(args)?;
        let accounts = &ctx.accounts;
        let mut open = accounts.current_round.load_mut()?;
        let mut context = RoundContext {
            key: accounts.run.key(),
            slot,
            run: &mut *accounts.run.load_mut()?,
            roster: &mut *accounts.roster.load_mut()?,
            round: &mut *accounts.round.load_mut()?,
            journal,
        };
        let clock = context.run.clock(slot);
        let entry = context.roster.entry_mut(args.index)?;
        entry.act(clock, &context.run.params);
        let reports = &mut context.round.ballot_mut(args.target)?.missing_reports;
        *reports |= bit(usize::from(args.index));
        let (reported, members) = (count(*reports & open.members), count(open.members));
        let event = MissingReported {
            run: context.key,
            sequence: context.run.event_sequence,
            slot,
            round: args.round,
            target: args.target,
            index: args.index,
        };
        record(context.run, context.journal, &event)?;
        if mul(reported, 2)? >= members {
            context.strike_payload(args.target, &mut open)?;
        }
        open.invariant()?;
        context.invariant()
    }
}
