//! `open_case`: posts a bond, so that a jury judges.

use anchor_lang::prelude::*;

use super::shared::Challenge;
use crate::audit::open::{AuditId, AuditOpener};
use crate::case::open::Claim;
use crate::events::Journal;
use crate::pda;
use crate::state::AuditKind;

/// Arguments of `open_case`.
#[derive(Clone, Copy)]
pub struct OpenCaseArgs {
    /// Round.
    pub round: u64,
    /// Index of the target.
    pub target: u16,
    /// See `AuditKind`.
    pub kind: u8,
    /// Possession: index of the payload in question; else 65535.
    pub subject: u16,
}

/// Posts the bond and accuses the target.
pub fn handle(ctx: Context<Challenge>, journal: &mut Journal, args: &OpenCaseArgs) -> Result<()> {
    let accounts = &ctx.accounts;
    let claim = Claim {
        id: AuditId {
            round: args.round,
            target: args.target,
            kind: AuditKind::from_number(args.kind)?,
        },
        subject: args.subject,
    };
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
    let bond = opener.open_case(&claim)?;
    pda::transfer(&accounts.challenger, &accounts.vault, bond)?;
    opener.run.invariant()?;
    opener.run.check_vault(&accounts.vault)
}
