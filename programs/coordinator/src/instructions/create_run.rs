//! `create_run`: creates a run and its vault.

use anchor_lang::prelude::*;

use crate::constants::{NONE, VERSION};
use crate::errors::{refuse, CoordinatorError};
use crate::events::{record, Journal, RunCreated};
use crate::pda;
use crate::pda::{SEED_ROSTER, SEED_RUN, SEED_VAULT};
use crate::state::{init::initialise, Params, Run};

/// Arguments of `create_run`.
#[derive(AnchorSerialize, AnchorDeserialize, Clone, Copy)]
pub struct CreateRunArgs {
    /// Identity of the run among those of its authority: a PDA seed.
    pub run_id: [u8; 32],
    /// Hash of the run config.
    pub config_hash: [u8; 32],
    /// Hash of the data manifest.
    pub manifest_hash: [u8; 32],
    /// State root of the initial weights.
    pub genesis_root: [u8; 32],
    /// May reverse a conviction that was appealed, or for which the breaker held.
    pub council: Pubkey,
    /// Parameters in force from the start.
    pub params: Params,
}

/// Accounts of `create_run`.
#[derive(Accounts)]
pub struct CreateRun<'info> {
    /// Authority and funder of the run; pays the rent.
    #[account(mut)]
    pub authority: Signer<'info>,
    /// The run.
    /// CHECK: created here by `pda::create` at the address derived from the seeds.
    #[account(mut)]
    pub run: UncheckedAccount<'info>,
    /// The vault of the run.
    /// CHECK: created here by `pda::create` at the address derived from the seeds.
    #[account(mut)]
    pub vault: UncheckedAccount<'info>,
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

/// Addresses and bumps of a new run.
struct Addresses {
    run: (Pubkey, u8),
    vault: (Pubkey, u8),
    roster: (Pubkey, u8),
}

impl CreateRun<'_> {
    fn validate(&self, args: &CreateRunArgs) -> Result<Addresses> {
        args.params.validate()?;
        // With the authority, so that nobody can take an address that another one is about to use.
        let run = pda::find(&[SEED_RUN, self.authority.key.as_ref(), &args.run_id]);
        let vault = pda::find(&[SEED_VAULT, run.0.as_ref()]);
        let roster = pda::find(&[SEED_ROSTER, run.0.as_ref()]);
        ensure!(self.run.key() == run.0, CoordinatorError::WrongAddress);
        ensure!(self.vault.key() == vault.0, CoordinatorError::WrongAddress);
        Ok(Addresses { run, vault, roster })
    }

    /// Creates a run and its vault.
    pub fn handle(
        ctx: Context<CreateRun>,
        journal: &mut Journal,
        args: CreateRunArgs,
    ) -> Result<()> {
        let accounts = ctx.accounts;
        let at = accounts.validate(&args)?;
        let owner = accounts.authority.key.as_ref();
        let run_seeds: [&[u8]; 4] = [SEED_RUN, owner, &args.run_id, &[at.run.1]];
        pda::create(&accounts.authority, &accounts.run, &run_seeds, Run::SIZE)?;
        let vault_seeds: [&[u8]; 3] = [SEED_VAULT, at.run.0.as_ref(), &[at.vault.1]];
        pda::create(&accounts.authority, &accounts.vault, &vault_seeds, 0)?;

        let slot = Clock::get()?.slot;
        let vault_rent = Rent::get()?.minimum_balance(0);
        initialise::<Run>(&accounts.run, |run| {
            fill(run, &args, &at, accounts.authority.key());
            run.created_slot = slot;
            run.vault_rent = vault_rent;
            run.start_waiting(slot)?;
            let event = created(run, &args, &at, slot);
            record(run, journal, &event)?;
            run.invariant()?;
            run.check_vault(&accounts.vault)
        })
    }
}

/// Sets every field that is not zero at the start.
fn fill(run: &mut Run, args: &CreateRunArgs, at: &Addresses, authority: Pubkey) {
    run.version = VERSION;
    run.bump = at.run.1;
    run.vault_bump = at.vault.1;
    run.roster_bump = at.roster.1;
    run.run_id = args.run_id;
    run.authority = authority;
    run.council = args.council;
    run.funder = authority;
    run.roster = at.roster.0;
    run.vault = at.vault.0;
    run.config_hash = args.config_hash;
    run.manifest_hash = args.manifest_hash;
    run.genesis_root = args.genesis_root;
    run.root = args.genesis_root;
    run.next_checkpoint_round = u64::from(args.params.checkpoint_every);
    run.base_round = NONE;
    run.paused_at_slot = NONE;
    run.params_requested_slot = NONE;
    run.finished_slot = NONE;
    run.waiting_since = NONE;
    run.params = args.params;
    run.created = args.params;
}

#[inline(never)]
fn created(run: &Run, args: &CreateRunArgs, at: &Addresses, slot: u64) -> RunCreated {
    RunCreated {
        run: at.run.0,
        sequence: run.event_sequence,
        slot,
        run_id: args.run_id,
        authority: run.authority,
        council: args.council,
        config_hash: args.config_hash,
        manifest_hash: args.manifest_hash,
        genesis_root: args.genesis_root,
        params: args.params,
    }
}
