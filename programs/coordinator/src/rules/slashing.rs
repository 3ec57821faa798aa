//! The price of a fault, its sources and its receivers (protocol §8).
//!
//! Owns the penalties P2 to P10, the order stake, unbonding, unvested, the shortfall, the split.
//! Never refuses for want of funds and never sees an account. Percentages are of stake plus
//! unbonding: asking for the stake back lowers no penalty.
//! Next: `quorum` for how a fault is decided.

use super::quorum::SeatFault;
use super::NONE;

/// A second missing opening within so many rounds counts as P3.
pub const REPEAT_ROUNDS: u64 = 500;
const BOUNTY_PERCENT: u64 = 5;
const P5_REWARDS: u64 = 10;
const P6_FEES: u64 = 2;
const P7_RECOMPUTES: u64 = 10;
const P7_FALSE_MISMATCH_PERCENT: u64 = 10;
const P7_ACQUITTED_REWARDS: u64 = 10;

/// The faults that cost lamports, by their number in the protocol.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// P2: a malformed payload that was included.
    Malformed = 2,
    /// P3: work that does not match.
    Work = 3,
    /// P5: sampled, no openings.
    NoOpenings = 5,
    /// P6: a seat that stayed silent.
    AbsentSeat = 6,
    /// P7: a seat that judged wrongly.
    WrongSeat = 7,
    /// P8: a root vote that replay contradicts.
    FalseRoot = 8,
    /// P10: a false proof of possession.
    FalsePossession = 10,
}

/// Lamports of a participant that can be slashed.
#[derive(Clone, Copy, Debug)]
pub struct Funds {
    /// Stake.
    pub stake: u64,
    /// Unbonding tickets.
    pub unbonding: u64,
    /// Unvested rewards.
    pub unvested: u64,
}

/// The parameters of a run that penalties are made of, in lamports.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// For an included payload.
    pub reward_per_payload: u64,
    /// For a verdict or vote.
    pub witness_fee: u64,
    /// What recomputing a payload costs.
    pub recompute_cost: u64,
}

/// Lamports that a fault costs, before they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlashIntent {
    /// Why.
    pub fault: Fault,
    /// Lamports from stake, then unbonding, then what is left of unvested.
    pub principal: u128,
    /// Whether all unvested rewards go on top.
    pub takes_unvested: bool,
    /// Whether it is a strike as well.
    pub is_strike: bool,
    /// Whether the participant may never come back.
    pub is_barred: bool,
    /// Whether a target that was wrongly accused receives a part of it.
    pub pays_acquitted: bool,
}

/// Lamports that were found, by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// From the stake.
    pub stake: u64,
    /// From unbonding tickets.
    pub unbonding: u64,
    /// From unvested rewards.
    pub unvested: u64,
    /// Lamports that were missing, recorded instead of a refusal; at most 2^64 - 1.
    pub shortfall: u64,
}

/// Where lamports go; the parts add up to what was taken, to the lamport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// To the challenger of a bonded case.
    pub challenger: u64,
    /// To the target that was wrongly accused.
    pub acquitted: u64,
    /// To the incinerator.
    pub burned: u64,
}

/// P2: 10 %; those who vouched for the payload get a strike of their own.
#[must_use]
pub fn malformed(funds: &Funds) -> SlashIntent {
    SlashIntent::new(Fault::Malformed, funds.percent(10))
}

/// P2, for an attester of the payload: a strike and no lamports.
#[must_use]
pub fn vouched_for_malformed() -> SlashIntent {
    SlashIntent {
        is_strike: true,
        ..SlashIntent::new(Fault::Malformed, 0)
    }
}

/// P3: half and all unvested; everything and barred when convicted before.
#[must_use]
pub fn work(funds: &Funds, is_repeated: bool) -> SlashIntent {
    SlashIntent {
        takes_unvested: true,
        is_barred: is_repeated,
        ..SlashIntent::new(
            Fault::Work,
            funds.percent(if is_repeated { 100 } else { 50 }),
        )
    }
}

/// P5: ten rewards and all unvested; as P3 for the second time within 500 rounds.
///
/// `last_round` is the round under way when the fault before was decided, `NONE` without one: only
/// a later round is a second time, so that one outage counts once. `is_convicted` tells whether the
/// participant already has a P3, so that the repeated refusal counts as the second.
#[must_use]
pub fn no_openings(
    funds: &Funds,
    prices: &Prices,
    round: u64,
    last_round: u64,
    is_convicted: bool,
) -> SlashIntent {
    let since = round.saturating_sub(last_round);
    if last_round != NONE && (1..=REPEAT_ROUNDS).contains(&since) {
        return work(funds, is_convicted);
    }
    SlashIntent {
        takes_unvested: true,
        ..SlashIntent::new(
            Fault::NoOpenings,
            product(prices.reward_per_payload, P5_REWARDS),
        )
    }
}

/// P6 and P7: two fees for silence; hiding a commit costs the most that a wrong verdict could.
///
/// A wrong ok or an outvoted sketch costs ten recomputations; a false mismatch a tenth of the
/// stake, of which the acquitted participant receives a part (`fine`).
#[must_use]
pub fn seat(fault: SeatFault, funds: &Funds, prices: &Prices) -> SlashIntent {
    let wrong = product(prices.recompute_cost, P7_RECOMPUTES);
    let false_mismatch = funds.percent(P7_FALSE_MISMATCH_PERCENT);
    match fault {
        SeatFault::NoCommit => {
            SlashIntent::new(Fault::AbsentSeat, product(prices.witness_fee, P6_FEES))
        }
        SeatFault::NoReveal => SlashIntent::new(Fault::AbsentSeat, wrong.max(false_mismatch)),
        SeatFault::FalseMismatch => SlashIntent {
            pays_acquitted: true,
            ..SlashIntent::new(Fault::WrongSeat, false_mismatch)
        },
        SeatFault::WrongOk | SeatFault::OutvotedSketch => SlashIntent::new(Fault::WrongSeat, wrong),
    }
}

/// P8: a quarter.
#[must_use]
pub fn false_root(funds: &Funds) -> SlashIntent {
    SlashIntent::new(Fault::FalseRoot, funds.percent(25))
}

/// P10: 2 % and a strike.
#[must_use]
pub fn false_possession(funds: &Funds) -> SlashIntent {
    SlashIntent {
        is_strike: true,
        ..SlashIntent::new(Fault::FalsePossession, funds.percent(2))
    }
}

/// P9: half of the bond to the accused, half burned; the odd lamport burns.
#[must_use]
pub fn failed_case(bond: u64) -> Split {
    let half = bond >> 1;
    Split {
        acquitted: half,
        burned: bond.saturating_sub(half),
        ..Split::default()
    }
}

/// Divides what a jury took: 5 % to the challenger of a bonded case, the rest burns.
///
/// The part is rounded down: slashing oneself through a second identity always loses.
#[must_use]
pub fn split(total: u64, has_bond: bool) -> Split {
    let challenger = if has_bond {
        percent_of(total, BOUNTY_PERCENT)
    } else {
        0
    };
    Split {
        challenger,
        burned: total.saturating_sub(challenger),
        ..Split::default()
    }
}

/// Divides what a penalty without a jury took: at most `acquittal` to the target that was wrongly
/// accused, the rest burns.
#[must_use]
pub fn fine(total: u64, acquittal: u64) -> Split {
    let acquitted = total.min(acquittal);
    Split {
        acquitted,
        burned: total.saturating_sub(acquitted),
        ..Split::default()
    }
}

/// The most that a target gets for all false accusations of one case together: ten rewards.
#[must_use]
pub fn acquittal(prices: &Prices) -> u64 {
    let rewards = product(prices.reward_per_payload, P7_ACQUITTED_REWARDS);
    u64::try_from(rewards).unwrap_or(u64::MAX)
}

impl SlashIntent {
    fn new(fault: Fault, principal: u128) -> Self {
        Self {
            fault,
            principal,
            takes_unvested: false,
            is_strike: false,
            is_barred: false,
            pays_acquitted: false,
        }
    }

    /// What the slash finds: never more than is there, never a refusal.
    #[must_use]
    pub fn take(&self, funds: &Funds) -> Taken {
        let mut missing = self.principal;
        let forfeited = if self.takes_unvested {
            funds.unvested
        } else {
            0
        };
        let stake = take_from(funds.stake, &mut missing);
        let unbonding = take_from(funds.unbonding, &mut missing);
        let unvested = take_from(funds.unvested.saturating_sub(forfeited), &mut missing);
        Taken {
            stake,
            unbonding,
            unvested: forfeited.saturating_add(unvested),
            shortfall: u64::try_from(missing).unwrap_or(u64::MAX),
        }
    }
}

impl Funds {
    /// So many percent of stake and unbonding, rounded down.
    fn percent(&self, percent: u64) -> u128 {
        let principal = u128::from(self.stake).saturating_add(u128::from(self.unbonding));
        principal.saturating_mul(u128::from(percent)) / 100
    }
}

/// Takes what there is of `missing` and subtracts it.
fn take_from(available: u64, missing: &mut u128) -> u64 {
    let taken = u64::try_from(*missing).map_or(available, |missing| missing.min(available));
    *missing = missing.saturating_sub(u128::from(taken));
    taken
}

/// `lamports * percent / 100`, rounded down, for at most 100 percent.
fn percent_of(lamports: u64, percent: u64) -> u64 {
    u64::try_from(product(lamports, percent) / 100).unwrap_or(lamports)
}

/// `a * b`, which always fits.
fn product(a: u64, b: u64) -> u128 {
    u128::from(a).wrapping_mul(u128::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RICH: Funds = Funds {
        stake: 60_000,
        unbonding: 20_000,
        unvested: 7_001,
    };
    const PRICES: Prices = Prices {
        reward_per_payload: 1_000,
        witness_fee: 200,
        recompute_cost: 900,
    };

    #[test]
    fn a_second_refusal_within_five_hundred_rounds_is_as_p3() {
        let fault = |last, convicted| no_openings(&RICH, &PRICES, 600, last, convicted);
        assert_eq!(fault(NONE, true).principal, 10_000);
        assert_eq!(fault(99, true).fault, Fault::NoOpenings);
        assert_eq!(fault(100, false), work(&RICH, false));
        assert_eq!(fault(100, true), work(&RICH, true));
        assert_eq!(fault(599, false).fault, Fault::Work);
        assert_eq!(fault(600, true).fault, Fault::NoOpenings);
        assert_eq!(fault(601, true).fault, Fault::NoOpenings);
    }

    #[test]
    fn a_slash_takes_in_order_and_records_the_rest() {
        let poor = Funds {
            stake: 3,
            unbonding: 2,
            unvested: 4,
        };
        let taken = |principal| {
            let taken = SlashIntent::new(Fault::WrongSeat, principal).take(&poor);
            [
                taken.stake,
                taken.unbonding,
                taken.unvested,
                taken.shortfall,
            ]
        };
        assert_eq!(taken(2), [2, 0, 0, 0]);
        assert_eq!(taken(4), [3, 1, 0, 0]);
        assert_eq!(taken(6), [3, 2, 1, 0]);
        assert_eq!(taken(100), [3, 2, 4, 91]);
        assert_eq!(taken(u128::MAX), [3, 2, 4, u64::MAX]);
    }

    #[test]
    fn the_largest_amounts_do_not_overflow() {
        let all = Funds {
            stake: u64::MAX,
            unbonding: u64::MAX,
            unvested: u64::MAX,
        };
        let taken = work(&all, true).take(&all);
        assert_eq!(
            [taken.stake, taken.unbonding, taken.unvested],
            [u64::MAX; 3]
        );
        assert_eq!(taken.shortfall, 0);
        let parts = split(u64::MAX, true);
        let sum = [parts.challenger, parts.burned].map(u128::from);
        assert_eq!(sum.iter().sum::<u128>(), u128::from(u64::MAX));
    }

    #[test]
    fn the_odd_lamports_burn() {
        assert_eq!(split(1, true).burned, 1);
        let parts = split(1_000_039, true);
        assert_eq!([parts.challenger, parts.burned], [50_001, 950_038]);
        assert_eq!(split(1_000_039, false).burned, 1_000_039);
        assert_eq!(failed_case(3).burned, 2);
    }

    #[test]
    fn who_is_acquitted_gets_no_more_than_ten_rewards() {
        let most = acquittal(&PRICES);
        assert_eq!(most, 10_000);
        let parts = [9_999, 10_000, 10_001].map(|total| fine(total, most));
        assert_eq!(parts.map(|p| p.acquitted), [9_999, 10_000, 10_000]);
        assert_eq!(parts.map(|p| p.burned), [0, 0, 1]);
        let dear = Prices {
            reward_per_payload: u64::MAX,
            ..PRICES
        };
        assert_eq!(acquittal(&dear), u64::MAX);
    }
}
