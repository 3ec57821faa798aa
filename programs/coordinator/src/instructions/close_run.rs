//! `close_run`: closes the accounts of a finished run, batch by batch.

use anchor_lang::prelude::*;

use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, AccountClosed, Journal, LeftoversPaid, ParticipantClosed, RunClosed};
use crate::math::{add, sub};
use crate::pda;
use crate::state::{Checkpoint, Participant, Phase, Roster, Round, Run};

/// Accounts of `close_run`; then pairs of an account to close and its recorded payer.
#[derive(Accounts)]
pub struct CloseRun<'info> {
    /// Sender of the transaction, open to anyone; the authority where the run is unused.
    pub closer: Signer<'info>,
    /// Authority of the run; gets back the rent of run, vault and roster.
    /// CHECK: `run.authority`; only lamports enter.
    #[account(mut)]
    pub authority: UncheckedAccount<'info>,
    /// The run.
    #[account(
        mut,
        has_one = authority @ refuse(CoordinatorError::WrongAuthority),
        has_one = roster @ refuse(CoordinatorError::WrongRoster),
        has_one = vault @ refuse(CoordinatorError::WrongVault),
        has_one = funder @ refuse(CoordinatorError::WrongFunder),
    )]
    pub run: AccountLoader<'info, Run>,
    /// The roster of the run.
    /// CHECK: `run.roster`; it may not exist where a run was created by mistake.
    #[account(mut)]
    pub roster: UncheckedAccount<'info>,
    /// The vault of the run.
    /// CHECK: `run.vault`; lamports leave it here.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// Funder of the run; receives all that is not owed to anybody.
    /// CHECK: `run.funder`; only lamports enter.
    #[account(mut)]
    pub funder: UncheckedAccount<'info>,
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

impl<'info> CloseRun<'info> {
    fn validate(&self, slot: u64) -> Result<()> {
        let run = self.run.load()?;
        let unused = run.is(Phase::WaitingForMembers) && run.round == 0;
        if unused && run.num_participants == 0 {
            let by_authority = self.closer.key() == run.authority;
            ensure!(by_authority, CoordinatorError::WrongAuthority);
            return Ok(());
        }
        ensure!(run.is(Phase::Finished), CoordinatorError::RunNotFinished);
        let last = add(run.finished_slot, run.params.longest_path_slots())?;
        ensure!(slot > last, CoordinatorError::CasesMayBeOpen);
        ensure!(run.num_audits == 0, CoordinatorError::AuditsOpen);
        Ok(())
    }

    /// Closes the pairs passed; pays leftovers; closes vault, roster and run once all else is.
    pub fn handle(ctx: Context<'info, CloseRun<'info>>, journal: &mut Journal) -> Result<()> {
        let slot = Clock::get()?.slot;
        let accounts = ctx.accounts;
        accounts.validate(slot)?;
        let pairs = ctx.remaining_accounts.chunks_exact(2);
        ensure!(
            pairs.remainder().is_empty(),
            CoordinatorError::AccountMissing
        );
        let mut changed = pairs.len() > 0;
        for pair in pairs {
            if let [account, payer] = pair {
                accounts.close_account(journal, account, payer, slot)?;
            }
        }
        changed |= accounts.pay_leftovers(journal, slot)?;
        changed |= accounts.close_everything(journal, slot)?;
        ensure!(changed, CoordinatorError::NothingToClose);
        Ok(())
    }

    /// Closes a round, a checkpoint or a settled participant; rent to the recorded payer.
    #[inline(never)]
    fn close_account(
        &'info self,
        journal: &mut Journal,
        account: &'info AccountInfo<'info>,
        payer: &'info AccountInfo<'info>,
        slot: u64,
    ) -> Result<()> {
        let key = self.run.key();
        ensure!(*account.owner == crate::ID, CoordinatorError::WrongAddress);
        let found = if let Ok(round) = AccountLoader::<Round>::try_from(account) {
            let round = round.load()?;
            (round.run, round.payer, Kind::Round)
        } else if let Ok(checkpoint) = Account::<Checkpoint>::try_from(account) {
            (checkpoint.run, checkpoint.payer, Kind::Checkpoint)
        } else {
            let participant = Participant::load(account, key)?;
            let roster = AccountLoader::<Roster>::try_from(&self.roster)?;
            let is_closable =
                participant.is_closable(&*self.run.load()?, &*roster.load()?, slot)?;
            ensure!(is_closable, CoordinatorError::NothingToClose);
            let kind = Kind::Participant(participant.owner);
            (participant.run, participant.payer, kind)
        };
        let (run_key, recorded, kind) = found;
        ensure!(run_key == key, CoordinatorError::WrongRun);
        ensure!(recorded == *payer.key, CoordinatorError::WrongPayer);
        // A payer that has become a program can hold no rent, and must not keep the run open: it
        // goes to the pool, that is to the funder.
        let receiver: &AccountInfo = if payer.executable { &self.vault } else { payer };
        self.record_closed(journal, kind, account.key(), receiver.key(), slot)?;
        pda::close(account, receiver)
    }

    fn record_closed(
        &self,
        journal: &mut Journal,
        kind: Kind,
        account: Pubkey,
        payer: Pubkey,
        slot: u64,
    ) -> Result<()> {
        let mut run = self.run.load_mut()?;
        let (key, sequence) = (self.run.key(), run.event_sequence);
        let count = match kind {
            Kind::Round => &mut run.num_rounds,
            Kind::Checkpoint => &mut run.num_checkpoints,
            Kind::Participant(_) => &mut run.num_participants,
        };
        *count = sub(*count, 1)?;
        if let Kind::Participant(owner) = kind {
            let event = ParticipantClosed {
                run: key,
                sequence,
                slot,
                owner,
                payer,
            };
            return record(&mut run, journal, &event);
        }
        let event = AccountClosed {
            run: key,
            sequence,
            slot,
            account,
            payer,
        };
        record(&mut run, journal, &event)
    }

    /// Pays pool and donations to the funder. Returns whether there were any that it could hold: a
    /// few lamports and an empty account must not keep the accounts of others open. They wait.
    fn pay_leftovers(&self, journal: &mut Journal, slot: u64) -> Result<bool> {
        let mut run = self.run.load_mut()?;
        let pool = std::mem::take(&mut run.reward_pool);
        let lamports = sub(self.vault.lamports(), run.liabilities()?)?;
        if lamports == 0 || !pda::refund(&self.vault, &self.funder, lamports)? {
            run.reward_pool = pool;
            return Ok(false);
        }
        let event = LeftoversPaid {
            run: self.run.key(),
            sequence: run.event_sequence,
            slot,
            funder: self.funder.key(),
            lamports,
        };
        record(&mut run, journal, &event)?;
        run.check_vault(&self.vault)?;
        Ok(true)
    }

    /// Closes vault, roster and run if nothing else is open. Returns whether it did.
    fn close_everything(&self, journal: &mut Journal, slot: u64) -> Result<bool> {
        {
            let mut run = self.run.load_mut()?;
            let open = run.num_rounds | run.num_checkpoints | run.num_participants;
            if open != 0 || run.liabilities()? != run.vault_rent {
                return Ok(false);
            }
            let event = RunClosed {
                run: self.run.key(),
                sequence: run.event_sequence,
                slot,
                funder: self.funder.key(),
            };
            record(&mut run, journal, &event)?;
        }
        if self.roster.owner == &crate::ID {
            pda::close(&self.roster, &self.authority)?;
        }
        pda::close(&self.vault, &self.authority)?;
        pda::close(self.run.as_ref(), &self.authority)?;
        Ok(true)
    }
}

/// The account that a pair closes.
enum Kind {
    Round,
    Checkpoint,
    Participant(Pubkey),
}
