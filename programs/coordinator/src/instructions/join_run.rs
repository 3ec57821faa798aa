//! `join_run`: deposits the stake and takes an index.

use anchor_lang::prelude::*;

use crate::constants::*;
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, ParticipantJoined, RecordMoved, RewardsMoved};
use crate::math::add;
use crate::pda;
use crate::pda::SEED_PARTICIPANT;
use crate::rules::bitmap::bit;
use crate::state::{check_text, Entry, Participant, Record, Roster, Run, Status};

/// Arguments of `join_run`.
#[derive(AnchorSerialize, AnchorDeserialize, Clone)]
pub struct JoinArgs {
    /// A free index: pick the lowest.
    pub index: u16,
    /// 1 trainer, 2 witness, 3 both.
    pub roles: u8,
    /// Key that signs round transactions and headers.
    pub session: Pubkey,
    /// Where payloads are served, at most 96 bytes.
    pub endpoint: String,
}

/// Accounts of `join_run`.
#[derive(Accounts)]
pub struct JoinRun<'info> {
    /// Owner of the participant; pays the stake and the rent.
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
    /// The participant, created here unless it was admitted or had left.
    /// CHECK: created by `pda::create`, or loaded with its discriminator, run and owner checked.
    #[account(mut)]
    pub participant: UncheckedAccount<'info>,
    /// The vault of the run.
    /// CHECK: `run.vault`; only lamports enter.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
    /// Participant of the former owner of the index, needed where rewards or a record are left
    /// behind.
    /// CHECK: loaded only then, with its discriminator, run, owner and index checked.
    #[account(mut)]
    pub previous: Option<UncheckedAccount<'info>>,
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

impl<'info> JoinRun<'info> {
    fn validate(&self, args: &JoinArgs, slot: u64) -> Result<()> {
        check_text(&args.endpoint)?;
        ensure!(
            args.session != Pubkey::default(),
            CoordinatorError::InvalidSessionKey
        );
        let run = self.run.load()?;
        run.require_unfinished()?;
        ensure!(
            run.round <= run.params.join_until_round,
            CoordinatorError::JoinClosed
        );
        let known = args.roles != 0 && args.roles & !ROLES == 0;
        ensure!(known, CoordinatorError::InvalidRoles);
        ensure!(
            args.index < run.params.capacity,
            CoordinatorError::IndexOutOfRange
        );
        let roster = self.roster.load()?;
        check_free(&run, &roster, args.index, slot)?;
        check_witness_only(&run, &roster, args.roles)
    }

    /// Deposits the stake and takes an index.
    pub fn handle(
        ctx: Context<'info, JoinRun<'info>>,
        journal: &mut Journal,
        args: JoinArgs,
    ) -> Result<()> {
        let accounts = ctx.accounts;
        let slot = Clock::get()?.slot;
        accounts.validate(&args, slot)?;
        let mut participant = accounts.enlist()?;
        let stake = accounts.run.load()?.params.min_stake_lamports;
        pda::transfer(&accounts.owner, &accounts.vault, stake)?;

        accounts.settle_former_life(journal, &mut participant, slot)?;
        accounts.settle_predecessor(journal, args.index, slot)?;
        participant.index = args.index;
        participant.endpoint.clone_from(&args.endpoint);
        let past = std::mem::replace(&mut participant.record, Record::CLEAN);
        participant.save(&accounts.participant)?;
        accounts.take_index(journal, args, slot, stake)?;
        accounts.restore(journal, participant.index, &past, slot)?;
        let mut roster = accounts.roster.load_mut()?;
        roster.entry_mut(participant.index)?.unbonding = participant.unbonding()?;
        Ok(())
    }

    /// Loads the participant, or creates it where the run is open.
    #[inline(never)]
    fn enlist(&self) -> Result<Box<Participant>> {
        let key = self.run.key();
        let mut run = self.run.load_mut()?;
        let allowlist = run.params.admission == ADMISSION_ALLOWLIST;
        let info = &self.participant;
        if info.owner != &crate::ID {
            ensure!(!allowlist, CoordinatorError::NotAdmitted);
            run.num_participants = add(run.num_participants, 1)?;
            return create_participant(&self.owner, info, key, self.owner.key());
        }
        let participant = Participant::load(info, key)?;
        ensure!(
            participant.owner == self.owner.key(),
            CoordinatorError::WrongOwner
        );
        ensure!(!participant.barred, CoordinatorError::ParticipantBarred);
        ensure!(
            participant.admitted || !allowlist,
            CoordinatorError::NotAdmitted
        );
        // The tickets of a former membership count for the new one, and leaving takes another.
        participant.require_place(MAX_TICKETS)?;
        Ok(Box::new(participant))
    }

    /// An owner that has left may join again once no case can be opened about its former
    /// membership. Its tickets then count for the new one, and its vested rewards and its record
    /// move.
    fn settle_former_life(
        &self,
        journal: &mut Journal,
        participant: &mut Participant,
        slot: u64,
    ) -> Result<()> {
        if participant.index == NO_INDEX {
            return Ok(());
        }
        let (mut run, mut roster) = (self.run.load_mut()?, self.roster.load_mut()?);
        let entry = roster.entry_mut(participant.index)?;
        if entry.owner != participant.owner {
            return Ok(());
        }
        let is_gone = entry.is(Status::Left) && entry.audits == 0;
        ensure!(is_gone, CoordinatorError::AlreadyJoined);
        let is_past = entry.is_free(run.round, run.params.ring)
            || participant.is_past_cases(&run.params, run.clock(slot));
        ensure!(is_past, CoordinatorError::AlreadyJoined);
        entry.unbonding = 0;
        run.release_vested(entry, slot)?;
        ensure!(entry.unvested()? == 0, CoordinatorError::AlreadyJoined);
        participant.record = entry.take_record();
        if entry.claimable == 0 {
            return Ok(());
        }
        participant.claimable = add(participant.claimable, entry.claimable)?;
        self.record_moved(&mut run, journal, entry, participant.index, slot)
    }

    /// Rewards and the record that the former owner of the index left behind move to its
    /// participant account. At the index of an earlier life there is only what came late, a strike:
    /// its record has gone to the later one, and stays as it is.
    fn settle_predecessor(&self, journal: &mut Journal, index: u16, slot: u64) -> Result<()> {
        let (mut run, mut roster) = (self.run.load_mut()?, self.roster.load_mut()?);
        let entry = roster.entry_mut(index)?;
        run.release_vested(entry, slot)?;
        ensure!(entry.unvested()? == 0, CoordinatorError::IndexTaken);
        let is_used = !entry.is(Status::Empty);
        let is_remembered = is_used && entry.record().is_remembered(run.round);
        if entry.claimable == 0 && !is_remembered {
            return Ok(());
        }
        let Some(account) = &self.previous else {
            return Err(refuse(CoordinatorError::AccountMissing));
        };
        ensure!(
            account.key() != self.participant.key(),
            CoordinatorError::DuplicateAccount
        );
        let mut previous = Participant::load(account, self.run.key())?;
        let is_theirs = previous.owner == entry.owner;
        ensure!(is_theirs, CoordinatorError::WrongOwner);
        previous.claimable = add(previous.claimable, entry.claimable)?;
        let is_last_life = previous.index == index;
        if is_last_life {
            previous.index = NO_INDEX;
            previous.record = entry.take_record();
        }
        previous.save(account)?;
        if is_remembered && is_last_life {
            let event = self.told(&run, entry.owner, index, &previous.record, slot);
            record(&mut run, journal, &event)?;
        }
        if entry.claimable == 0 {
            return Ok(());
        }
        self.record_moved(&mut run, journal, entry, index, slot)
    }

    /// A new membership begins with the past of its owner.
    fn restore(&self, journal: &mut Journal, index: u16, past: &Record, slot: u64) -> Result<()> {
        let (mut run, mut roster) = (self.run.load_mut()?, self.roster.load_mut()?);
        let entry = roster.entry_mut(index)?;
        entry.restore(past);
        entry.invariant()?;
        if !past.is_remembered(run.round) {
            return Ok(());
        }
        let event = self.told(&run, entry.owner, index, past, slot);
        record(&mut run, journal, &event)
    }

    fn told(&self, run: &Run, owner: Pubkey, index: u16, past: &Record, slot: u64) -> RecordMoved {
        RecordMoved {
            run: self.run.key(),
            sequence: run.event_sequence,
            slot,
            owner,
            index,
            is_in_force: owner == self.owner.key(),
            work_faults: past.work_faults,
            strikes: past.strikes,
            openings_step: past.openings_step,
            jailed_until_round: past.jailed_until_round,
        }
    }

    fn record_moved(
        &self,
        run: &mut Run,
        journal: &mut Journal,
        entry: &mut Entry,
        index: u16,
        slot: u64,
    ) -> Result<()> {
        let event = RewardsMoved {
            run: self.run.key(),
            sequence: run.event_sequence,
            slot,
            owner: entry.owner,
            index,
            lamports: std::mem::take(&mut entry.claimable),
        };
        record(run, journal, &event)
    }

    fn take_index(
        &self,
        journal: &mut Journal,
        args: JoinArgs,
        slot: u64,
        stake: u64,
    ) -> Result<()> {
        let (mut run, mut roster) = (self.run.load_mut()?, self.roster.load_mut()?);
        let round = run.round;
        // Somebody else's convictions: they neither count against this one nor free it of the cap.
        let others = !bit(usize::from(args.index));
        run.convicted = run.convicted.map(|convicted| convicted & others);
        let entry = roster.entry_mut(args.index)?;
        entry.join(self.owner.key(), args.session, args.roles, round);
        run.deposit_stake(entry, stake)?;
        entry.invariant()?;
        let event = ParticipantJoined {
            run: self.run.key(),
            sequence: run.event_sequence,
            slot,
            owner: self.owner.key(),
            session: args.session,
            index: args.index,
            roles: args.roles,
            stake,
            round,
            endpoint: args.endpoint,
        };
        record(&mut run, journal, &event)?;
        run.invariant()?;
        run.check_vault(&self.vault)
    }
}

/// Refuses an index that somebody holds; `RunFull` when there is no other.
fn check_free(run: &Run, roster: &Roster, index: u16, slot: u64) -> Result<()> {
    let (params, clock) = (&run.params, run.clock(slot));
    let free = |entry: &Entry| {
        entry.is_free(run.round, params.ring)
            && entry.is_past_juries(run, slot)
            && entry.has_vested(clock, params.vesting_slots)
    };
    if free(roster.entry(index)?) {
        return Ok(());
    }
    let capacity = usize::from(run.params.capacity);
    let any = roster.entries.iter().take(capacity).any(free);
    ensure!(any, CoordinatorError::RunFull);
    Err(refuse(CoordinatorError::IndexTaken))
}

/// Refuses one more participant that only witnesses, above `max_witness_only`.
fn check_witness_only(run: &Run, roster: &Roster, roles: u8) -> Result<()> {
    if roles & ROLE_TRAINER != 0 {
        return Ok(());
    }
    let only = roster
        .entries
        .iter()
        .filter(|entry| entry.is_present() && entry.roles & ROLE_TRAINER == 0)
        .count();
    let max = usize::from(run.params.max_witness_only);
    ensure!(only < max, CoordinatorError::WitnessOnlyFull);
    Ok(())
}

/// Creates the account of a participant without an index; the caller saves it.
#[inline(never)]
pub fn create_participant<'info>(
    payer: &AccountInfo<'info>,
    account: &AccountInfo<'info>,
    run: Pubkey,
    owner: Pubkey,
) -> Result<Box<Participant>> {
    let (address, bump) = pda::find(&[SEED_PARTICIPANT, run.as_ref(), owner.as_ref()]);
    ensure!(*account.key == address, CoordinatorError::WrongAddress);
    let seeds: [&[u8]; 4] = [SEED_PARTICIPANT, run.as_ref(), owner.as_ref(), &[bump]];
    pda::create(payer, account, &seeds, Participant::SIZE)?;
    Ok(Box::new(Participant::new(run, owner, *payer.key, bump)))
}
