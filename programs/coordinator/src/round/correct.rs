//! Takes back an included payload that half of the members lack.
//!
//! Owns the undoing: inclusion, reward, last included round, service; those who vouched take a
//! strike, and the open round closes void. Never counts reports. Next: `close`.

use anchor_lang::prelude::*;

use super::penalties::strike;
use super::RoundContext;
use crate::constants::ROUND_FORCED_VOID;
use crate::events::{record, PayloadStruck};
use crate::rules::bitmap::{bit, with_bits};
use crate::rules::eligibility::can_be_audited;
use crate::state::Round;

impl RoundContext<'_> {
    /// Strikes the payload of `target` from `self.round`; `open` is the round that builds on it.
    #[inline(never)]
    pub fn strike_payload(&mut self, target: u16, open: &mut Round) -> Result<()> {
        let target_bit = bit(usize::from(target));
        self.round.included &= !target_bit;
        self.round.struck |= target_bit;
        open.flags |= ROUND_FORCED_VOID;
        let reward_undone = self.undo_service(target, target_bit)?;
        let (vouchers, jailed) = self.strike_vouchers(target_bit, open.round)?;
        let event = PayloadStruck {
            run: self.key,
            sequence: self.run.event_sequence,
            slot: self.slot,
            round: self.round.round,
            target,
            open_round: open.round,
            included: self.round.included,
            reward_undone,
            vouchers,
            jailed,
        };
        record(self.run, self.journal, &event)
    }

    /// Takes back what the close gave to the target. Returns the lamports back in the pool.
    fn undo_service(&mut self, target: u16, target_bit: u64) -> Result<u64> {
        let round = &*self.round;
        let previous = round.ballot(target)?.previous_included;
        let entry = self.roster.entry_mut(target)?;
        entry.last_included = previous;
        entry.included_total = entry.included_total.saturating_sub(1);
        if can_be_audited(round.eligible, target_bit) {
            entry.included_since_strike = entry.included_since_strike.saturating_sub(1);
        }
        if round.attested & target_bit == 0 {
            entry.rounds_served = entry.rounds_served.saturating_sub(1);
        }
        if round.unpaid & target_bit != 0 {
            return Ok(0);
        }
        let (window, paid) = (round.reward_window, round.reward_paid);
        entry.redraw_probation(round.round);
        if round.withheld & target_bit != 0 {
            return self.run.undo_withheld(entry, round.round, window, paid);
        }
        self.run.undo_reward(entry, window, paid)
    }

    /// Strikes everyone who vouched for the payload. Returns them, and who was jailed by it.
    fn strike_vouchers(&mut self, target_bit: u64, number: u64) -> Result<(u64, u64)> {
        let (mut vouchers, mut jailed) = (0, 0);
        let ballots = self.roster.entries.iter_mut().zip(&self.round.ballots);
        for (bit, (entry, ballot)) in with_bits(ballots) {
            let vouched = self.round.attested & bit != 0 && ballot.attest_bitmap & target_bit != 0;
            if !vouched {
                continue;
            }
            vouchers |= bit;
            if strike(self.run, entry, number)? {
                jailed |= bit;
            }
        }
        Ok((vouchers, jailed))
    }
}
