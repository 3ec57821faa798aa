//! `close_round`: closes the round under a candidate root and opens the next.

use anchor_lang::prelude::*;

use crate::constants::ROUND_FORCED_VOID;
use crate::errors::{refuse, CoordinatorError};
use crate::events::Journal;
use crate::round::ballots::{tally, turnout, votes_for};
use crate::round::checkpoint::Place;
use crate::round::{require_round, window, RoundContext};
use crate::rules::bitmap::count;
use crate::rules::root::{decide, decide_root_only, Outcome};
use crate::state::{Phase, Roster, Round, Run};

/// Accounts of `close_round`.
#[derive(Accounts)]
pub struct CloseRound<'info> {
    /// Sender of the transaction, open to anyone; pays for created accounts.
    #[account(mut)]
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
    /// The ring account of the next round.
    #[account(
        mut,
        constraint = next_round.load()?.run == run.key() @ refuse(CoordinatorError::WrongRun),
    )]
    pub next_round: AccountLoader<'info, Round>,
    /// Checkpoint of this round, when one is due.
    /// CHECK: created here by `pda::create` at the address derived from the seeds.
    #[account(mut)]
    pub checkpoint: Option<UncheckedAccount<'info>>,
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

impl CloseRound<'_> {
    /// Refuses another round, another phase and a phase that has not ended.
    fn validate(&self, number: u64, slot: u64) -> Result<()> {
        let (run, round) = (self.run.load()?, self.round.load()?);
        let is_cooldown = run.is(Phase::Cooldown);
        let phase = if is_cooldown {
            Phase::Cooldown
        } else {
            Phase::Attest
        };
        require_round(&run, &round, number, phase)?;
        let (acted, all) = if is_cooldown {
            (round.committed, round.trainers)
        } else {
            (round.attested, round.members)
        };
        let is_forced = round.has_flag(ROUND_FORCED_VOID);
        let is_due = is_forced || window(&run).is_due(count(acted), count(all), slot);
        ensure!(is_due, CoordinatorError::PhaseNotOver);
        Ok(())
    }

    /// Closes the round (or root-only step) under a candidate root, or void, and goes on.
    pub fn handle(
        ctx: Context<CloseRound>,
        journal: &mut Journal,
        round: u64,
        candidate_root: [u8; 32],
    ) -> Result<()> {
        let slot = Clock::get()?.slot;
        let accounts = &ctx.accounts;
        accounts.validate(round, slot)?;
        let payer = accounts.cranker.to_account_info();
        let checkpoint = accounts
            .checkpoint
            .as_ref()
            .map(|account| account.to_account_info());
        let place = Place {
            payer: &payer,
            account: checkpoint.as_ref(),
        };
        let mut next = accounts.next_round.load_mut()?;
        let mut context = RoundContext {
            key: accounts.run.key(),
            slot,
            run: &mut *accounts.run.load_mut()?,
            roster: &mut *accounts.roster.load_mut()?,
            round: &mut *accounts.round.load_mut()?,
            journal,
        };
        if context.run.is(Phase::Cooldown) {
            close_cooldown(&mut context, &candidate_root, &place)?;
        } else {
            close(&mut context, &candidate_root, &place)?;
            context.proceed(&mut next)?;
        }
        next.invariant()?;
        context.invariant()
    }
}

/// Closes an open round: what its ballots say about the candidate decides how.
fn close(
    context: &mut RoundContext<'_>,
    candidate: &[u8; 32],
    place: &Place<'_, '_>,
) -> Result<()> {
    if context.round.has_flag(ROUND_FORCED_VOID) {
        return context.close_void();
    }
    let votes = votes_for(&context.key, context.roster, context.round, candidate);
    match decide(&turnout(context.round), votes, &tally(context.round)) {
        Outcome::Void => context.close_void(),
        Outcome::NotCanonical => Err(refuse(CoordinatorError::CandidateNotCanonical)),
        Outcome::Closed {
            included,
            unavailable,
        } => context.close_canonical(candidate, included, unavailable, place),
    }
}

/// Closes the root-only step.
fn close_cooldown(
    context: &mut RoundContext<'_>,
    candidate: &[u8; 32],
    place: &Place<'_, '_>,
) -> Result<()> {
    if context.round.has_flag(ROUND_FORCED_VOID) {
        return context.void_root_only();
    }
    let votes = votes_for(&context.key, context.roster, context.round, candidate);
    match decide_root_only(&turnout(context.round), votes) {
        Outcome::Void => context.void_root_only(),
        Outcome::NotCanonical => Err(refuse(CoordinatorError::CandidateNotCanonical)),
        Outcome::Closed { .. } => context.close_root_only(candidate, place),
    }
}
