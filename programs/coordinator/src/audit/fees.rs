//! The fees of the judges: one each, less where the source is short.
//!
//! Owns how seats and jurors are credited. Never decides which of them earn: `settle` does for
//! seats, `crate::case::settle` for jurors.

use anchor_lang::prelude::*;

use super::AuditContext;
use crate::events::{record, FeesScaled};
use crate::math::{add, mul};
use crate::rules::bitmap::{contains, count};
use crate::rules::reward::scaled_reward;

/// Payment of the judges.
pub struct Paid {
    /// Lamports for each.
    pub fee: u64,
    /// The judges, as a bitmap.
    pub judges: u64,
    /// Lamports of older buckets that vested by it.
    pub vested: u64,
    /// The part that came out of the advance; the caller lowers the advance by as much.
    pub from_advance: u64,
}

impl AuditContext<'_, '_> {
    /// Pays each of `judges`, a bitmap: from `advance`, lamports held as a bond, and where
    /// `uses_pool` from the pool when that is spent.
    pub fn pay_judges(&mut self, judges: u64, advance: u64, uses_pool: bool) -> Result<Paid> {
        let num = count(judges);
        let full = self.run.params.witness_fee;
        let source = if uses_pool {
            add(self.run.reward_pool, advance)?
        } else {
            advance
        };
        let fee = scaled_reward(full, source, num);
        let from_advance = mul(fee, num)?.min(advance);
        self.run.release_bond(from_advance)?;
        self.run.place_pool(from_advance)?;
        if fee < full && num > 0 {
            let event = FeesScaled {
                run: self.key,
                sequence: self.run.event_sequence,
                slot: self.slot,
                round: self.audit.round,
                target: self.audit.target,
                witness_fee: full,
                fee,
            };
            record(self.run, self.journal, &event)?;
        }
        let window = self.run.reward_window(self.slot);
        let mut vested = 0;
        for (place, judge) in self.roster.entries.iter_mut().enumerate() {
            if contains(judges, place) {
                vested = add(vested, self.run.credit_reward(judge, window, fee)?)?;
                judge.invariant()?;
            }
        }
        Ok(Paid {
            fee,
            judges,
            vested,
            from_advance,
        })
    }
}
