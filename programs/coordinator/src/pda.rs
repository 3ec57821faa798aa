//! How accounts of this program get their address, come into being, grow and end.
//!
//! Owns the seeds of every address: a prefix of this module and numbers or keys, never text of a
//! user. Never uses Anchor's `init`, which a stray lamport sent to the address in advance blocks.
//! Next: `instructions::create_run`.

use anchor_lang::prelude::*;
use anchor_lang::system_program::{self, Allocate, Assign, Transfer};

use crate::constants::MAX_GROWTH_BYTES;
use crate::errors::CoordinatorError;
use crate::math::{add, sub};

/// `["run", authority, run_id[32]]`
pub const SEED_RUN: &[u8] = b"run";
/// `["roster", run]`
pub const SEED_ROSTER: &[u8] = b"roster";
/// `["participant", run, owner]`
pub const SEED_PARTICIPANT: &[u8] = b"participant";
/// `["round", run, position u16 LE]`, position = round mod ring
pub const SEED_ROUND: &[u8] = b"round";
/// `["vault", run]`
pub const SEED_VAULT: &[u8] = b"vault";
/// `["checkpoint", run, round u64 LE]`
pub const SEED_CHECKPOINT: &[u8] = b"checkpoint";
/// `["audit", run, round u64 LE, target u16 LE, kind u8]`
pub const SEED_AUDIT: &[u8] = b"audit";

/// The canonical address and bump of `seeds`.
#[inline(never)]
pub fn find(seeds: &[&[u8]]) -> (Pubkey, u8) {
    Pubkey::find_program_address(seeds, &crate::ID)
}

/// Moves lamports of a signer by the system program, or refuses with `InsufficientFunds`.
#[inline(never)]
pub fn transfer<'info>(
    from: &AccountInfo<'info>,
    to: &AccountInfo<'info>,
    lamports: u64,
) -> Result<()> {
    if lamports == 0 {
        return Ok(());
    }
    ensure!(
        from.lamports() >= lamports,
        CoordinatorError::InsufficientFunds
    );
    let accounts = Transfer {
        from: from.clone(),
        to: to.clone(),
    };
    system_program::transfer(CpiContext::new(system_program::ID, accounts), lamports)
}

/// Creates a program-owned account of `space` zero bytes: tops up to rent, allocates, assigns.
///
/// `seeds` end with the bump. Works when somebody has sent lamports to the address in advance.
/// `AccountAlreadyExists` when the account has data or another owner than the system program.
#[inline(never)]
pub fn create<'info>(
    payer: &AccountInfo<'info>,
    account: &AccountInfo<'info>,
    seeds: &[&[u8]],
    space: usize,
) -> Result<()> {
    ensure!(
        account.owner == &system_program::ID && account.data_is_empty(),
        CoordinatorError::AccountAlreadyExists
    );
    top_up(payer, account, space)?;
    let signer = [seeds];
    if space > 0 {
        let accounts = Allocate {
            account_to_allocate: account.clone(),
        };
        let context = CpiContext::new_with_signer(system_program::ID, accounts, &signer);
        system_program::allocate(context, u64::try_from(space).unwrap_or(u64::MAX))?;
    }
    let accounts = Assign {
        account_to_assign: account.clone(),
    };
    let context = CpiContext::new_with_signer(system_program::ID, accounts, &signer);
    system_program::assign(context, &crate::ID)
}

/// Grows a program-owned account by at most 10 240 bytes towards `space`. Returns its new length.
#[inline(never)]
pub fn grow<'info>(
    payer: &AccountInfo<'info>,
    account: &AccountInfo<'info>,
    space: usize,
) -> Result<usize> {
    let len = account.data_len();
    let next = space.min(len.saturating_add(MAX_GROWTH_BYTES));
    if next > len {
        top_up(payer, account, next)?;
        account.resize(next)?;
    }
    Ok(next)
}

/// Pays the difference to the rent-exempt minimum of `space` bytes.
fn top_up<'info>(
    payer: &AccountInfo<'info>,
    account: &AccountInfo<'info>,
    space: usize,
) -> Result<()> {
    let missing = Rent::get()?
        .minimum_balance(space)
        .saturating_sub(account.lamports());
    transfer(payer, account, missing)
}

/// Moves lamports out of a program-owned account.
pub fn pay(from: &AccountInfo, to: &AccountInfo, lamports: u64) -> Result<()> {
    let left = sub(from.lamports(), lamports)?;
    let paid = add(to.lamports(), lamports)?;
    if from.key == to.key {
        return Ok(());
    }
    **from.try_borrow_mut_lamports()? = left;
    **to.try_borrow_mut_lamports()? = paid;
    Ok(())
}

/// Moves lamports out of a program-owned account to somebody's own. Returns false, and moves
/// nothing, where the runtime would refuse: the receiver would hold less than its rent.
#[inline(never)]
pub fn refund(from: &AccountInfo, to: &AccountInfo, lamports: u64) -> Result<bool> {
    let holds = add(to.lamports(), lamports)?;
    let can_hold = !to.executable && holds >= Rent::get()?.minimum_balance(to.data_len());
    if can_hold {
        pay(from, to, lamports)?;
    }
    Ok(can_hold)
}

/// Ends an account: all lamports to `payer`, no data, owned by the system program again.
#[inline(never)]
pub fn close(account: &AccountInfo, payer: &AccountInfo) -> Result<()> {
    ensure!(
        *account.key != *payer.key,
        CoordinatorError::DuplicateAccount
    );
    pay(account, payer, account.lamports())?;
    account.assign(&system_program::ID);
    account.resize(0)?;
    Ok(())
}
