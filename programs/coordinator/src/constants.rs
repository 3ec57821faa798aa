//! Numbers that the layouts and rules share. They never change within one program version.

use anchor_lang::prelude::{pubkey, Pubkey};

/// Address of the `SlotHashes` sysvar.
pub const SLOT_HASHES: Pubkey = pubkey!("SysvarS1otHashes111111111111111111111111111");
/// Lamports sent here are burned.
pub const INCINERATOR: Pubkey = pubkey!("1nc1nerator11111111111111111111111111111111");
/// Layout version written into the first byte of every account.
pub const VERSION: u8 = 2;
/// Marks "no round", "no slot": 2^64 - 1.
pub const NONE: u64 = u64::MAX;
/// Marks a `Participant` that holds no index.
pub const NO_INDEX: u16 = u16::MAX;
/// Entries of a roster and ballots of a round, whatever the capacity of the run.
pub const MAX_PARTICIPANTS: usize = 64;
/// Bytes of an endpoint and of a manifest URI.
pub const MAX_TEXT_BYTES: usize = 96;
/// Unbonding tickets that a participant may hold at once.
pub const MAX_TICKETS: usize = 4;
/// Tickets that partial withdrawals may use: the last one is kept for leaving.
pub const MAX_PARTIAL_TICKETS: usize = 3;
/// Vesting buckets of an entry.
pub const NUM_BUCKETS: usize = 3;
/// Bytes by which an account may grow within one instruction.
pub const MAX_GROWTH_BYTES: usize = 10_240;
/// Entries of the `SlotHashes` sysvar.
pub const SLOT_HASHES_ENTRIES: u64 = 512;
/// Parts per million in one.
pub const PPM: u64 = 1_000_000;
/// Longest window that a parameter may name: 39 days of slots.
pub const MAX_WINDOW_SLOTS: u64 = 1 << 23;
/// Longest phase of a round, Warmup or rest that a parameter may name: seven hours of slots.
pub const MAX_PHASE_SLOTS: u64 = 1 << 16;
/// Most sequences of a payload: positions in the data stay far from overflow.
pub const MAX_SEQUENCES: u64 = 1 << 20;
/// Most rounds of an epoch, and between two checkpoints.
pub const MAX_EPOCH_ROUNDS: u64 = 100_000;
/// Most rounds of a residual period.
pub const MAX_RESIDUAL_ROUNDS: u64 = 10_000;
/// Most rounds that a witness serves before it may be seated.
pub const MAX_SEAT_AFTER_ROUNDS: u32 = 1_000;
/// An absence fee and the cost of a recomputation are at most this many rewards.
pub const MAX_FEE_REWARDS: u64 = 10;
/// A witness fee is at most this many rewards.
pub const MAX_WITNESS_FEE_REWARDS: u64 = 2;
/// An update may lengthen a window to this many times its length at the creation, and multiply or
/// divide the reward by it.
pub const MAX_UPDATE_FACTOR: u64 = 2;
/// Largest amount that a parameter may name: sums over 64 participants stay far from overflow.
pub const MAX_PARAM_LAMPORTS: u64 = 1 << 56;
/// Least `keep_rounds`: a round cannot wait for the seed that the close opening it has just named.
pub const MIN_KEEP_ROUNDS: u16 = 2;
/// The stake to stay is at least this many rewards.
pub const MIN_STAKE_REWARDS: u64 = 60;
/// The stake to stay is at least this many absence fees.
pub const MIN_STAKE_ABSENCES: u64 = 10;
/// Least `sketch_factor`: sketches differ beyond a fifth of the larger norm.
pub const MIN_SKETCH_FACTOR: u32 = 25;
/// Largest `sketch_factor`: sketches differ beyond a fiftieth of the larger norm.
pub const MAX_SKETCH_FACTOR: u32 = 2_500;
/// Largest `seat_load`: a witness cannot recompute more payloads in the time of one round.
pub const MAX_SEAT_LOAD: u8 = 15;
/// A bond is at least this many witness fees.
pub const MIN_BOND_FEES: u64 = 14;
/// The chance of an audit, in ppm, times the stake to stay is at least this many rewards. Then half
/// of that stake pays for the first refusal of openings: 1.8 rewards by the chance.
pub const MIN_CHANCE_REWARDS_PPM: u128 = 3_600_000;
/// A bond is at least this many rewards.
pub const MIN_BOND_REWARDS: u64 = 5;

/// Role bit: trains and commits payloads.
pub const ROLE_TRAINER: u8 = 1;
/// Role bit: recomputes samples of the others' work.
pub const ROLE_WITNESS: u8 = 2;
/// All role bits.
pub const ROLES: u8 = ROLE_TRAINER | ROLE_WITNESS;

/// Admission: anyone may join.
pub const ADMISSION_OPEN: u8 = 0;
/// Admission: only owners that the authority admitted may join.
pub const ADMISSION_ALLOWLIST: u8 = 1;

/// Run flag: a pause takes effect at the next close.
pub const RUN_PAUSE_REQUESTED: u8 = 1;
/// Run flag: `pending_params` wait for an epoch boundary.
pub const RUN_PARAMS_PENDING: u8 = 2;
/// Run flag: the run had waited for too long when its last Warmup began; another needs the ready.
pub const RUN_LAST_WARMUP: u8 = 4;

/// Entry flag: leaves at the next open.
pub const ENTRY_LEAVING: u8 = 1;
/// Entry flag: on probation after a refusal of openings, until an audit clears.
pub const ENTRY_PROBATION: u8 = 8;
/// Entry flag: silent on a seat and not there since: not seated until it acts.
pub const ENTRY_SILENT: u8 = 2;

/// Round flag: the root-only step of Cooldown.
pub const ROUND_ROOT_ONLY: u8 = 1;
/// Round flag: closed.
pub const ROUND_CLOSED: u8 = 2;
/// Round flag: closed void.
pub const ROUND_VOID: u8 = 4;
/// Round flag: void because a payload of the round before is missing.
pub const ROUND_FORCED_VOID: u8 = 8;
/// Round flag: Commit ran to its deadline.
pub const ROUND_COMMIT_RAN_TO_DEADLINE: u8 = 16;
/// Round flag: Attest ran to its deadline.
pub const ROUND_ATTEST_RAN_TO_DEADLINE: u8 = 32;
/// Round flag: the seed of the round before was lost, so this one samples at twice the rate.
pub const ROUND_DOUBLED: u8 = 64;

/// Seats of an audit, those of both extensions included.
pub const NUM_SEATS: usize = 7;
/// Seats that judge at first.
pub const FIRST_SEATS: usize = 3;
/// Seats that have judged after the first extension.
pub const SECOND_SEATS: usize = 5;
/// Seats of a jury.
pub const NUM_JURORS: usize = 7;
/// Numbers of a sketch.
pub const SKETCH_LEN: usize = 64;

/// Audit flag: paid in advance by `request_audit`.
pub const AUDIT_REQUESTED: u16 = 1;
/// Audit flag: the seed slot of the case was named twice.
pub const AUDIT_RETARGETED: u16 = 4;
/// Audit flag: the convicted owner appealed.
pub const AUDIT_APPEALED: u16 = 8;
/// Audit flag: the council reversed the conviction.
pub const AUDIT_REVERSED: u16 = 16;
/// Audit flag: the breaker held when the jury was drawn, or at the conviction.
pub const AUDIT_BREAKER: u16 = 32;
/// Audit flag: a bonded case; the bond is in the vault.
pub const AUDIT_BONDED: u16 = 64;
/// Audit flag: the seats accuse the target of serving nothing; that freezes nothing.
pub const AUDIT_UNAVAILABLE: u16 = 128;
/// Audit flag: the reward of the payload was withheld, for its target is on probation.
pub const AUDIT_WITHHELD: u16 = 256;
/// Audit flag: a further conviction for a round opened before the first one was decided.
pub const AUDIT_FURTHER: u16 = 512;

/// Seat flag: committed.
pub const SEAT_COMMITTED: u8 = 1;
/// Seat flag: revealed.
pub const SEAT_REVEALED: u8 = 2;
/// Seat flag: penalised for P6 or P7.
pub const SEAT_FAULTY: u8 = 4;
/// Seat flag: paid.
pub const SEAT_PAID: u8 = 8;
