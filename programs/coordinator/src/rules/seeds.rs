//! Seeds of audits (protocol §1): the hash of a future slot, which nobody can choose.
//!
//! Owns the seed sigma, the slot that is wanted, and the search for the slot hash that fixes it.
//! That is the first slot at or after the wanted one, found only while the next older entry proves
//! that none lies between. The result therefore depends neither on the caller nor on the moment.
//! Never deserialises the 20 KB of the `SlotHashes` sysvar and never checks its address. Next: the
//! instructions `freeze_seed` and `retarget_seed`; `crate::pda` for the seeds of addresses.

use super::hashing::{digest, Digest, TAG_SIGMA};
use crate::constants::SLOT_HASHES_ENTRIES;

/// Bytes before the first entry: a u64 count.
const HEADER: usize = 8;
/// Bytes of an entry: slot u64, hash[32]; the newest entry comes first.
const ENTRY: usize = 40;

/// Slots in a row that one leader has.
const LEADER_SLOTS: u64 = 4;

/// Slots from one that may be wanted to the next. `part` is that of the window in which somebody
/// could choose the moment that names the slot: fewer slots would be more leaders to choose from.
/// There is no grid where `delay` does not even pass the leader of that moment.
#[must_use]
pub fn grid(delay: u64, part: u64) -> u64 {
    if delay < LEADER_SLOTS {
        1
    } else {
        part.clamp(1, SLOT_HASHES_ENTRIES)
    }
}

/// The slot whose hash is wanted for what happens in `slot`: the first of the grid that is at least
/// `delay` later. None where there is no such number.
#[must_use]
pub fn wanted_slot(slot: u64, delay: u64, grid: u64) -> Option<u64> {
    slot.checked_add(delay)?.checked_next_multiple_of(grid)
}

/// The answer of the sysvar about a wanted slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The first listed slot at or after the wanted one, and its hash.
    Found(u64, Digest),
    /// The wanted slot has not come yet.
    TooEarly,
    /// The wanted slot has left the list: its successor can no longer be told.
    Lost,
    /// The bytes are not those of the sysvar.
    Malformed,
}

/// `H("troth:sigma", slot hash, run, round)`: the seed of the audits of `round`.
#[must_use]
pub fn sigma(slot_hash: &Digest, run: &Digest, round: u64) -> Digest {
    digest(&[TAG_SIGMA, slot_hash, run, &round.to_le_bytes()])
}

/// Looks up the first slot >= `wanted` in the raw bytes of the sysvar.
#[must_use]
pub fn first_at_or_after(data: &[u8], wanted: u64) -> Lookup {
    let Some(entries) = entries(data) else {
        return Lookup::Malformed;
    };
    let num_later = entries.partition_point(|entry| slot_of(entry) >= wanted);
    let Some(found) = num_later
        .checked_sub(1)
        .and_then(|position| entries.get(position))
    else {
        return Lookup::TooEarly;
    };
    if num_later == entries.len() {
        return Lookup::Lost;
    }
    match found.last_chunk::<32>() {
        Some(hash) => Lookup::Found(slot_of(found), *hash),
        None => Lookup::Malformed,
    }
}

/// The entries that the header counts; `None` when the bytes are fewer.
fn entries(data: &[u8]) -> Option<&[[u8; ENTRY]]> {
    let (header, body) = data.split_first_chunk::<HEADER>()?;
    let count = usize::try_from(u64::from_le_bytes(*header)).ok()?;
    body.as_chunks::<ENTRY>().0.get(..count)
}

/// Slot of an entry.
fn slot_of(entry: &[u8; ENTRY]) -> u64 {
    entry
        .first_chunk::<8>()
        .map_or(0, |slot| u64::from_le_bytes(*slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysvar(slots: &[u64]) -> Vec<u8> {
        let mut data = u64::try_from(slots.len()).unwrap().to_le_bytes().to_vec();
        for slot in slots {
            data.extend(slot.to_le_bytes());
            data.extend([u8::try_from(slot % 251).unwrap(); 32]);
        }
        data.resize(HEADER + 512 * ENTRY, 0);
        data
    }

    #[test]
    fn all_moments_between_two_slots_of_the_grid_want_the_same_one() {
        let wanted = |slot| wanted_slot(slot, 8, 62);
        assert_eq!(
            [0, 54, 55, 116, 117].map(wanted),
            [62, 62, 124, 124, 186].map(Some)
        );
        assert_eq!(wanted_slot(117, 2, 1), Some(119));
        assert_eq!(wanted_slot(u64::MAX - 9, 8, 62), None);
    }

    #[test]
    fn a_delay_within_the_turn_of_one_leader_has_no_grid() {
        assert_eq!([2, 3, 4, 8].map(|delay| grid(delay, 40)), [1, 1, 40, 40]);
        assert_eq!([0, 1, 600].map(|part| grid(8, part)), [1, 1, 512]);
    }

    #[test]
    fn finds_the_wanted_slot_or_the_next_one_after_a_skipped_slot() {
        let data = sysvar(&[20, 19, 15, 14, 10]);
        assert_eq!(first_at_or_after(&data, 15), Lookup::Found(15, [15; 32]));
        assert_eq!(first_at_or_after(&data, 16), Lookup::Found(19, [19; 32]));
        assert_eq!(first_at_or_after(&data, 20), Lookup::Found(20, [20; 32]));
        assert_eq!(first_at_or_after(&data, 11), Lookup::Found(14, [14; 32]));
    }

    #[test]
    fn the_answer_stays_the_same_while_the_list_moves_on() {
        let all: Vec<u64> = (1..=900).rev().filter(|slot| slot % 7 != 0).collect();
        for newest in 0..300 {
            let data = sysvar(&all[newest..newest + 400]);
            let found = first_at_or_after(&data, 399);
            let expected = Lookup::Found(400, [149; 32]);
            assert!(found == expected || matches!(found, Lookup::TooEarly | Lookup::Lost));
        }
    }

    #[test]
    fn tells_too_early_from_lost() {
        let data = sysvar(&[20, 19, 15]);
        assert_eq!(first_at_or_after(&data, 21), Lookup::TooEarly);
        assert_eq!(first_at_or_after(&data, 15), Lookup::Lost);
        assert_eq!(first_at_or_after(&data, 3), Lookup::Lost);
        assert_eq!(first_at_or_after(&sysvar(&[]), 3), Lookup::TooEarly);
    }

    #[test]
    fn refuses_bytes_shorter_than_the_count() {
        let mut data = sysvar(&[20, 19, 15]);
        assert_eq!(
            first_at_or_after(&data[..HEADER + 2 * ENTRY], 19),
            Lookup::Malformed
        );
        assert_eq!(first_at_or_after(&data[..5], 19), Lookup::Malformed);
        data[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(first_at_or_after(&data, 19), Lookup::Malformed);
    }
}
