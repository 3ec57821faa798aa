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

/// Lamports that pay the judges before the pool does.
#[derive(Clone, Copy)]
pub enum Source {
    /// None.
    Empty,
    /// A bond, or fees in advance.
    Bond(u64),
    /// Part of a slash.
    Escrow(u64),
}

impl Source {
    fn lamports(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Bond(lamports) | Self::Escrow(lamports) => lamports,
        }
    }
}

/// Payment of the judges.
pub struct Paid {
    /// Lamports for each.
    pub fee: u64,
    /// The judges, as a bitmap.
    pub judges: u64,
    /// Lamports of older buckets that vested by it.
    pub vested: u64,
    /// The part that came out of the source; the caller lowers it by as much.
    pub from_source: u64,
}

impl AuditContext<'_, '_> {
    /// Pays each of `judges`, a bitmap: from `source`, and where `uses_pool` from the pool when
    /// that is spent.
    pub fn pay_judges(&mut self, judges: u64, source: Source, uses_pool: bool) -> Result<Paid> {
        let num = count(judges);
        let full = self.run.params.witness_fee;
        let advance = source.lamports();
        let available = if uses_pool {
            add(self.run.reward_pool, advance)?
        } else {
            advance
        };
        let fee = scaled_reward(full, available, num);
        let from_source = mul(fee, num)?.min(advance);
        match source {
            Source::Empty => {}
            Source::Bond(_) => self.run.release_bond(from_source)?,
            Source::Escrow(_) => self.run.release_escrow(from_source)?,
        }
        self.run.place_pool(from_source)?;
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
            from_source,
        })
    }
}
