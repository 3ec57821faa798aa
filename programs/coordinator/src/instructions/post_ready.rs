//! `post_ready`: a participant says which root it would train on.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, ReadyPosted};
use crate::round::note_quorum;
use crate::round::waiting::attendance;
use crate::rules::bitmap::count;
use crate::rules::root::root_vote;
use crate::state::{Change, Entry, Phase, Roster, Run, Status};

/// Arguments of `post_ready`.
#[derive(Clone, Copy)]
pub struct PostReadyArgs {
    /// Index of the participant.
    pub index: u16,
    /// Round of the weights: the open one, or the one of the stored root.
    pub round: u64,
    /// Root vote for them.
    pub vote: [u8; 32],
}

/// Accounts of `post_ready`.
#[derive(Accounts)]
pub struct PostReady<'info> {
    /// Session key of the participant.
    pub session: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    #[account(mut)]
    pub roster: AccountLoader<'info, Roster>,
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

impl PostReady<'_> {
    /// Refuses a participant that may not come back now, or speaks about other weights.
    fn validate(&self, args: &PostReadyArgs) -> Result<()> {
        let (run, roster) = (self.run.load()?, self.roster.load()?);
        let entry = roster.signed_entry(args.index, self.session.key)?;
        let phase = run.phase()?;
        let is_running = matches!(phase, Phase::Commit | Phase::Attest);
        let is_waiting = matches!(phase, Phase::WaitingForMembers | Phase::Warmup);
        ensure!(is_running || is_waiting, CoordinatorError::WrongPhase);
        require_may_return(&run, entry, is_running)?;
        let speaks_about = if is_running {
            run.round
        } else {
            run.root_round
        };
        ensure!(args.round == speaks_about, CoordinatorError::WrongRound);
        if is_waiting {
            let key = self.run.key().to_bytes();
            let vote = root_vote(&key, run.root_round, &entry.owner.to_bytes(), &run.root);
            ensure!(args.vote == vote, CoordinatorError::ReadyRootMismatch);
            let is_again = entry.is(Status::Pending) && entry.ready_round == run.root_round;
            ensure!(!is_again, CoordinatorError::AlreadyReady);
        }
        Ok(())
    }

    /// Records that a participant holds the weights of a round.
    ///
    /// While no round is open the vote is checked here, and the participant becomes pending; on a
    /// running run `activate` checks it once the round has a canonical root.
    pub fn handle(
        ctx: Context<PostReady>,
        journal: &mut Journal,
        args: &PostReadyArgs,
    ) -> Result<()> {
        let slot = Clock::get()?.slot;
        ctx.accounts.validate(args)?;
        let mut roster = ctx.accounts.roster.load_mut()?;
        let mut run = ctx.accounts.run.load_mut()?;
        let entry = roster.entry_mut(args.index)?;
        entry.act(run.clock(slot), &run.params);
        entry.ready_round = args.round;
        entry.ready_root = args.vote;
        if matches!(run.phase()?, Phase::WaitingForMembers | Phase::Warmup) {
            entry.change(Change::Return);
        }
        entry.invariant()?;
        if run.is(Phase::Warmup) {
            let found = attendance(&run, &roster);
            note_quorum(&mut run, count(found.ready), count(found.pending), slot);
        }
        let event = ReadyPosted {
            run: ctx.accounts.run.key(),
            sequence: run.event_sequence,
            slot,
            index: args.index,
            round: args.round,
            vote: args.vote,
        };
        record(&mut run, journal, &event)?;
        run.invariant()
    }
}

/// Refuses a participant that is active, barred, gone or short of stake. While rounds run, also
/// refuses one that is in jail or inactive for the second time.
fn require_may_return(run: &Run, entry: &Entry, is_running: bool) -> Result<()> {
    match entry.status()? {
        // One that left in jail and has joined again is still kept out.
        Status::Pending => {
            let is_back = !is_running || entry.return_round <= run.round;
            ensure!(is_back, CoordinatorError::ReturnsLater);
            let is_out = !is_running || entry.jailed_until_round <= run.round;
            ensure!(is_out, CoordinatorError::StillJailed);
        }
        Status::Inactive => {
            let is_back = !is_running || entry.return_round <= run.round;
            ensure!(is_back, CoordinatorError::ReturnsLater);
        }
        Status::Jailed => {
            let is_out = !is_running || entry.jailed_until_round <= run.round;
            ensure!(is_out, CoordinatorError::StillJailed);
        }
        Status::Active => return Err(refuse(CoordinatorError::AlreadyActive)),
        Status::Barred => return Err(refuse(CoordinatorError::ParticipantBarred)),
        Status::Empty | Status::Left => return Err(refuse(CoordinatorError::NotJoined)),
    }
    let is_short = entry.is_short(&run.params);
    ensure!(!is_short, CoordinatorError::StakeTooLow);
    Ok(())
}
