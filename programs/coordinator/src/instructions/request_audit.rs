//! `request_audit`: pays for one more audit of the round under way, before anybody knows its seed.

use anchor_lang::prelude::*;

use super::shared::Challenge;
use crate::audit::open::AuditOpener;
use crate::events::Journal;
use crate::pda;

/// Pays for one more audit of the round under way.
pub fn handle(
    ctx: Context<Challenge>,
    journal: &mut Journal,
    number: u64,
    target: u16,
) -> Result<()> {
    let accounts = &ctx.accounts;
    let mut opener = AuditOpener {
        payer: &accounts.challenger,
        account: &accounts.audit,
        key: accounts.run.key(),
        slot: Clock::get()?.slot,
        run: &mut *accounts.run.load_mut()?,
        roster: &mut *accounts.roster.load_mut()?,
        round: &mut *accounts.round.load_mut()?,
        journal,
    };
    let prepaid = opener.request(number, target)?;
    pda::transfer(&accounts.challenger, &accounts.vault, prepaid)?;
    opener.run.invariant()?;
    opener.run.check_vault(&accounts.vault)
}
