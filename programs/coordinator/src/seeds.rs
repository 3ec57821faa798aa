//! PDA seed prefixes. Every address of the program is derived from one of these and never from
//! user text.

/// `["run", run_id[32]]`
pub const SEED_RUN: &[u8] = b"run";
/// `["roster", run]`
pub const SEED_ROSTER: &[u8] = b"roster";
/// `["participant", run, owner]`
pub const SEED_PARTICIPANT: &[u8] = b"participant";
/// `["round", run, position u16 LE]`, position = round mod ring
pub const SEED_ROUND: &[u8] = b"round";
/// `["vault", run]`
pub const SEED_VAULT: &[u8] = b"vault";
/// `["checkpoint", run, round u64 LE]`
pub const SEED_CHECKPOINT: &[u8] = b"checkpoint";
/// `["audit", run, round u64 LE, target u16 LE, kind u8]`
pub const SEED_AUDIT: &[u8] = b"audit";
