//! The same functions run natively and on sBPF; a test compares what they return.
//!
//! `cases::run(seed, mode, iterations)` folds the results of one kind of operation on
//! pseudo-random inputs into a hash. Any difference between the machines changes it.

pub mod calls;
pub mod cases;
pub mod collections;
#[cfg(target_os = "solana")]
mod entry;
pub mod floats;
pub mod integers;
pub mod memory;
pub mod random;
