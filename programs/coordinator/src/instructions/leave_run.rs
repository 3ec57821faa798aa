//! `leave_run`: starts leaving; the whole stake unbonds.

use anchor_lang::prelude::*;

use crate::audit::probation::Ended;
use crate::constants::{ENTRY_LEAVING, MAX_TICKETS};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, LeaveRequested, ParticipantLeft};
use crate::math::add;
use crate::round::note_quorum;
use crate::round::waiting::attendance;
use crate::rules::bitmap::{bit, count};
use crate::state::{Entry, Participant, Phase, Roster, Run, Status, Ticket};

/// Accounts of `leave_run`.
#[derive(Accounts)]
pub struct LeaveRun<'info> {
    /// Owner of the participant.
    pub owner: Signer<'info>,
    /// The run.
    #[account(mut, has_one = roster @ refuse(CoordinatorError::WrongRoster))]
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

impl LeaveRun<'_> {
    fn validate(&self) -> Result<()> {
        let roster = self.roster.load()?;
        let entry = self.participant.entry_of(&roster)?;
        let is_going = entry.is_gone() || entry.is_leaving();
        ensure!(!is_going, CoordinatorError::AlreadyLeaving);
        Ok(())
    }

    /// Opens a ticket for the whole stake. A member serves the open round to its end; everybody
    /// else has left at once.
    pub fn handle(ctx: Context<LeaveRun>, journal: &mut Journal) -> Result<()> {
        let accounts = ctx.accounts;
        accounts.validate()?;
        let slot = Clock::get()?.slot;
        let (key, index) = (accounts.run.key(), accounts.participant.index);
        let (mut run, mut roster) = (accounts.run.load_mut()?, accounts.roster.load_mut()?);
        let entry = roster.entry_mut(index)?;
        // The owner was there: what it owes as a judge counts from now.
        entry.act(run.clock(slot), &run.params);
        let at_next_open = entry.is(Status::Active) && is_underway(run.phase()?);
        let ticket = Ticket {
            lamports: entry.stake,
            matures_clock: add(run.clock(slot), run.params.unbond_slots)?,
        };
        if ticket.lamports > 0 {
            accounts.participant.open_ticket(ticket, MAX_TICKETS)?;
            run.unbond_stake(entry, ticket.lamports)?;
        }
        let event = LeaveRequested {
            run: key,
            sequence: run.event_sequence,
            slot,
            index,
            stake: ticket.lamports,
            matures_clock: ticket.matures_clock,
            at_next_open,
            duty_until: add(run.clock(slot), run.params.jury_duty_slots())?,
        };
        record(&mut run, journal, &event)?;
        if at_next_open {
            entry.flags |= ENTRY_LEAVING;
        } else {
            depart(&mut run, journal, key, entry, index, slot)?;
        }
        entry.invariant()?;
        accounts.participant.invariant()?;
        if run.is(Phase::Warmup) {
            // Fewer must act now: the others may have been enough.
            let found = attendance(&run, &roster);
            note_quorum(&mut run, count(found.ready), count(found.pending), slot);
        }
        run.invariant()
    }
}

/// Ends the membership at once.
fn depart(
    run: &mut Run,
    journal: &mut Journal,
    key: Pubkey,
    entry: &mut Entry,
    index: u16,
    slot: u64,
) -> Result<()> {
    let mut ended = Ended::default();
    ended.add(run, entry, bit(usize::from(index)))?;
    ended.report(run, journal, &key, slot)?;
    entry.leave(run.round);
    run.expect(run.expected().without(bit(usize::from(index))));
    let event = ParticipantLeft {
        run: key,
        sequence: run.event_sequence,
        slot,
        index,
        owner: entry.owner,
        round: run.round,
    };
    record(run, journal, &event)
}

/// Whether members of this phase serve an open round, or one that opens when a pause ends.
fn is_underway(phase: Phase) -> bool {
    phase.is_in_round() || phase == Phase::Paused
}
