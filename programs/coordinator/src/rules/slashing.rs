//! The price of a fault, its sources and its receivers (protocol §8).
//!
//! Owns the penalties P2 to P10, the two orders of their sources, the shortfall, the split. A small
//! penalty (P5, P6, P7) takes from claimable, unvested, stake, unbonding; a conviction from stake,
//! unbonding, unvested. Percentages are of stake plus unbonding: asking for the stake back lowers
//! no penalty. Never refuses for want of funds, never sees an account. Next: `quorum`.

use super::quorum::SeatFault;

const BOUNTY_PERCENT: u64 = 5;
const P5_MOST_PERCENT: u64 = 50;
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
    /// Vested rewards; only small penalties take them.
    pub claimable: u64,
    /// Unvested rewards.
    pub unvested: u64,
    /// Stake.
    pub stake: u64,
    /// Unbonding tickets.
    pub unbonding: u64,
}

/// The parameters of a run that penalties are made of, in lamports.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// For an included payload.
    pub reward_per_payload: u64,
    /// For a verdict or vote.
    pub witness_fee: u64,
    /// The cost of recomputing a payload.
    pub recompute_cost: u64,
}

/// Lamports that a fault costs, before they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlashIntent {
    /// Why.
    pub fault: Fault,
    /// Lamports in the order of the penalty.
    pub principal: u128,
    /// Whether it takes rewards before the stake.
    pub is_small: bool,
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
    /// From vested rewards.
    pub claimable: u64,
    /// From unvested rewards.
    pub unvested: u64,
    /// From the stake.
    pub stake: u64,
    /// From unbonding tickets.
    pub unbonding: u64,
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

/// P5: the price of the round's audits, doubled so many times (see `refusal`); half at most.
#[must_use]
pub fn no_openings(funds: &Funds, price: u64, doublings: u8) -> SlashIntent {
    let factor = 1_u128.checked_shl(doublings.into()).unwrap_or(u128::MAX);
    let amount = u128::from(price).saturating_mul(factor);
    SlashIntent::small(
        Fault::NoOpenings,
        amount.min(funds.percent(P5_MOST_PERCENT)),
    )
}

/// P6 and P7: two fees for silence; hiding a verdict for the second time costs the most that a
/// wrong one could.
///
/// A wrong ok costs ten recomputations, an outvoted sketch as much as silence: it may be honest
/// noise. A false mismatch costs a tenth of the stake, of which the acquitted participant receives
/// a part (`fine`).
#[must_use]
pub fn seat(fault: SeatFault, is_second: bool, funds: &Funds, prices: &Prices) -> SlashIntent {
    let wrong = product(prices.recompute_cost, P7_RECOMPUTES);
    let silence = product(prices.witness_fee, P6_FEES);
    let false_mismatch = funds.percent(P7_FALSE_MISMATCH_PERCENT);
    match fault {
        SeatFault::NoReveal if is_second => {
            SlashIntent::small(Fault::AbsentSeat, wrong.max(false_mismatch))
        }
        SeatFault::NoCommit | SeatFault::NoReveal => SlashIntent::small(Fault::AbsentSeat, silence),
        SeatFault::FalseMismatch => SlashIntent {
            pays_acquitted: true,
            ..SlashIntent::small(Fault::WrongSeat, false_mismatch)
        },
        SeatFault::WrongOk => SlashIntent::small(Fault::WrongSeat, wrong),
        SeatFault::OutvotedSketch => SlashIntent::small(Fault::WrongSeat, silence),
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
            is_small: false,
            takes_unvested: false,
            is_strike: false,
            is_barred: false,
            pays_acquitted: false,
        }
    }

    fn small(fault: Fault, principal: u128) -> Self {
        Self {
            is_small: true,
            ..Self::new(fault, principal)
        }
    }

    /// The lamports that the slash finds: never more than is there, never a refusal.
    #[must_use]
    pub fn take(&self, funds: &Funds) -> Taken {
        let mut missing = self.principal;
        let forfeited = if self.takes_unvested {
            funds.unvested
        } else {
            0
        };
        let rewards = funds.unvested.saturating_sub(forfeited);
        let (mut claimable, mut unvested) = (0, forfeited);
        if self.is_small {
            claimable = take_from(funds.claimable, &mut missing);
            unvested = unvested.saturating_add(take_from(rewards, &mut missing));
        }
        let stake = take_from(funds.stake, &mut missing);
        let unbonding = take_from(funds.unbonding, &mut missing);
        if !self.is_small {
            unvested = unvested.saturating_add(take_from(rewards, &mut missing));
        }
        Taken {
            claimable,
            unvested,
            stake,
            unbonding,
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
        claimable: 300,
        unvested: 7_001,
        stake: 60_000,
        unbonding: 20_000,
    };
    const PRICES: Prices = Prices {
        reward_per_payload: 1_000,
        witness_fee: 200,
        recompute_cost: 900,
    };

    #[test]
    fn a_refusal_costs_its_price_doubled_and_half_of_the_stake_at_most() {
        let costs = [0, 1, 2, 3, 200].map(|n| no_openings(&RICH, 9_000, n).principal);
        assert_eq!(costs, [9_000, 18_000, 36_000, 40_000, 40_000]);
        assert!(no_openings(&RICH, 1, 0).is_small && !no_openings(&RICH, 1, 0).takes_unvested);
    }

    #[test]
    fn each_kind_of_penalty_takes_in_its_order_and_records_the_rest() {
        let poor = Funds {
            claimable: 1,
            unvested: 4,
            stake: 3,
            unbonding: 2,
        };
        let found = |taken: Taken| {
            [
                taken.claimable,
                taken.unvested,
                taken.stake,
                taken.unbonding,
                taken.shortfall,
            ]
        };
        let convicted = |n| found(SlashIntent::new(Fault::FalseRoot, n).take(&poor));
        assert_eq!(convicted(2), [0, 0, 2, 0, 0]);
        assert_eq!(convicted(4), [0, 0, 3, 1, 0]);
        assert_eq!(convicted(6), [0, 1, 3, 2, 0]);
        assert_eq!(convicted(100), [0, 4, 3, 2, 91]);
        assert_eq!(convicted(u128::MAX), [0, 4, 3, 2, u64::MAX]);
        let fined = |n| found(SlashIntent::small(Fault::WrongSeat, n).take(&poor));
        assert_eq!(fined(1), [1, 0, 0, 0, 0]);
        assert_eq!(fined(5), [1, 4, 0, 0, 0]);
        assert_eq!(fined(9), [1, 4, 3, 1, 0]);
        assert_eq!(fined(100), [1, 4, 3, 2, 90]);
    }

    #[test]
    fn the_largest_amounts_do_not_overflow() {
        let all = Funds {
            claimable: u64::MAX,
            unvested: u64::MAX,
            stake: u64::MAX,
            unbonding: u64::MAX,
        };
        let taken = work(&all, true).take(&all);
        let parts = [taken.stake, taken.unbonding, taken.unvested];
        assert_eq!((parts, taken.claimable), ([u64::MAX; 3], 0));
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
