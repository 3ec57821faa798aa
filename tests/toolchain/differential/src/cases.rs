//! The modes: one kind of operation each, so that a difference names its cause.

use crate::random::{Hash, Random};
use crate::{calls, collections, floats, integers, memory};

/// Number of modes; the Python test asks for each of them.
pub const NUM_MODES: u8 = 7;

/// Hash over `iterations` rounds of one mode; unknown modes return the seed.
pub fn run(seed: u64, mode: u8, iterations: u32) -> u64 {
    let mut random = Random(seed | 1);
    let mut hash = Hash(seed);
    let implementors = calls::implementors(seed);
    for iteration in 0..iterations {
        match mode {
            0 => integers::narrow(&mut random, &mut hash),
            1 => integers::wide(&mut random, &mut hash),
            2 => floats::floats(&mut random, &mut hash),
            3 => collections::collections(&mut random, &mut hash),
            4 => calls::calls(&mut random, &mut hash, iteration, &implementors),
            5 => memory::memory(&mut random, &mut hash),
            6 => collections::text(&mut random, &mut hash),
            _ => (),
        }
    }
    hash.0
}
