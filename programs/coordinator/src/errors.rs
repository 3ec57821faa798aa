//! Every refusal of the program by name, with the expectation and the next step.

use anchor_lang::error::AnchorError;
use anchor_lang::prelude::*;

/// Turns a refusal into Anchor's error. One copy: `error!` would build one wherever it stands.
#[cold]
#[inline(never)]
pub fn refuse(reason: CoordinatorError) -> Error {
    // Hidden from the optimiser, which would otherwise copy the formatting once per variant.
    let name: &dyn std::fmt::Debug = std::hint::black_box(&reason);
    let message: &dyn std::fmt::Display = std::hint::black_box(&reason);
    Error::from(AnchorError {
        error_name: format!("{name:?}"),
        error_msg: message.to_string(),
        error_code_number: reason.into(),
        error_origin: None,
        compared_values: None,
    })
}

/// Returns `refuse(reason)` unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $reason:expr $(,)?) => {
        if !$holds {
            return Err($crate::errors::refuse($reason));
        }
    };
}

/// Why an instruction was refused. The messages are the documentation of the variants.
#[allow(missing_docs)]
#[error_code]
pub enum CoordinatorError {
    // Accounts and signers.
    #[msg("the account already exists: fetch it instead of creating it")]
    AccountAlreadyExists,
    #[msg("the account has the wrong size: pass the account of this type, fully grown")]
    WrongAccountSize,
    #[msg("the same account was passed twice: pass each account once")]
    DuplicateAccount,
    #[msg("the address does not match its seeds: derive it again with the program id")]
    WrongAddress,
    #[msg("the account belongs to another run: pass the accounts of one run")]
    WrongRun,
    #[msg("not the roster of this run: pass run.roster")]
    WrongRoster,
    #[msg("not the vault of this run: pass run.vault")]
    WrongVault,
    #[msg("the signer is not the authority of this run")]
    WrongAuthority,
    #[msg("the signer is not the funder of this run")]
    WrongFunder,
    #[msg("the signer is not the owner of this participant")]
    WrongOwner,
    #[msg("the signer is not the session key in force at this index: see set_session_key")]
    WrongSessionKey,
    #[msg("the payer is not the one recorded in the account: rent returns to whoever paid it")]
    WrongPayer,
    #[msg("not the account of this round: pass the one at position round mod ring")]
    WrongRoundAccount,
    #[msg("an account that this step needs was not passed")]
    AccountMissing,
    #[msg("not enough lamports: fund the paying key and send again")]
    InsufficientFunds,

    // Parameters.
    #[msg("capacity must be 1 to 64")]
    CapacityOutOfRange,
    #[msg("min_members must be 1 to capacity")]
    MinMembersOutOfRange,
    #[msg("keep_rounds must be at least 2: a round cannot wait for the seed that its open names")]
    KeepRoundsTooFew,
    #[msg("ring must be keep_rounds + 2 to 64")]
    RingOutOfRange,
    #[msg("max_witness_only must be at most capacity")]
    WitnessOnlyOutOfRange,
    #[msg("counts are 1 up to: sequences 2^20, epoch 100000, residual 10000, seat_after 1000")]
    CountOutOfRange,
    #[msg("every window but max_pause must be at least one slot")]
    WindowZero,
    #[msg("a window is at most 2^23 slots, a phase 2^16, after an update twice that of creation")]
    WindowTooLong,
    #[msg("seed_delay_slots must be less than the 512 slots that SlotHashes lists")]
    SeedDelayTooLong,
    #[msg("max_pause_slots must be at most half of unbond_slots")]
    PauseTooLong,
    #[msg("vesting_slots must exceed the longest path of round, audit, case, appeal and breaker")]
    VestingTooShort,
    #[msg("unbond_slots must exceed the longest path of round, audit, case, appeal and breaker")]
    UnbondTooShort,
    #[msg("an amount must be at most 2^56 lamports")]
    AmountTooLarge,
    #[msg("keep_stake_lamports must be 60 rewards, half of min_stake and 1, up to min_stake")]
    KeepStakeOutOfRange,
    #[msg("absence_fee must be at most a tenth of keep_stake_lamports, and ten rewards")]
    AbsenceFeeTooLarge,
    #[msg("witness_fee must be at most two rewards, and recompute_cost ten")]
    FeeTooLarge,
    #[msg("bond_lamports must be at least 14 witness fees and 5 rewards")]
    BondTooSmall,
    #[msg("bond_lamports must be at most min_stake_lamports")]
    BondTooLarge,
    #[msg("chances must satisfy p_base_ppm <= p_new_ppm <= 1000000")]
    ChanceOutOfRange,
    #[msg("p_base_ppm * keep_stake_lamports must be 0 or at least 3600000 rewards")]
    ChanceTooSmall,
    #[msg("audit_cap must be at least ceil(p_base * capacity), and at most capacity")]
    AuditCapOutOfRange,
    #[msg("sketch_factor must be 25 (a fifth of the larger norm) to 2500 (a fiftieth)")]
    SketchFactorOutOfRange,
    #[msg("seat_load must be 1 to 15 seats of a witness in a round")]
    SeatLoadOutOfRange,
    #[msg("admission must be 0 (open) or 1 (allowlist)")]
    UnknownAdmission,
    #[msg("reserved bytes must be zero")]
    ReservedNotZero,
    #[msg("an update changes only the reward, longer windows and fewer min_members")]
    ImmutableParameter,
    #[msg("an update never shortens a window: name at least the one in force")]
    WindowShrinks,
    #[msg("an update never raises min_members")]
    MinMembersGrow,
    #[msg("an update keeps the reward between half and twice that of the creation")]
    RewardOutOfRange,
    #[msg("the pool cannot pay the higher reward to all trainers for an epoch: fund_run first")]
    RewardUnfunded,

    // Phases.
    #[msg("not possible in this phase: read run.phase and try again later")]
    WrongPhase,
    #[msg("the run is finished: only leaving, claiming, withdrawing and closing remain")]
    RunFinished,
    #[msg("the run is not finished yet")]
    RunNotFinished,
    #[msg("the run is paused already, or will be at the next close")]
    AlreadyPaused,
    #[msg("the run is not paused and no pause is requested")]
    NotPaused,
    #[msg("the pauses of this window are spent: wait for the next window of unbond_slots")]
    PauseBudgetSpent,
    #[msg("only the authority may end a pause while its budget lasts")]
    PauseBudgetRemaining,

    // Joining, leaving, money.
    #[msg("the amount must be at least one lamport")]
    ZeroLamports,
    #[msg("the position must be below ring")]
    PositionOutOfRange,
    #[msg("the index must be below capacity")]
    IndexOutOfRange,
    #[msg("the index is taken, or its former holder may still be drawn: pick another")]
    IndexTaken,
    #[msg("the run is full: every index is taken, or its former holder may still be drawn")]
    RunFull,
    #[msg("joining ended with round join_until_round")]
    JoinClosed,
    #[msg("this owner has joined already: leave and withdraw everything before joining again")]
    AlreadyJoined,
    #[msg("the run admits only owners on its allowlist: ask the authority to admit this owner")]
    NotAdmitted,
    #[msg("the run is open: nobody needs to be admitted")]
    AdmissionOpen,
    #[msg("this owner is barred from the run")]
    ParticipantBarred,
    #[msg("roles must be 1 (trainer), 2 (witness) or 3 (both)")]
    InvalidRoles,
    #[msg("the run has max_witness_only participants that only witness: join as a trainer")]
    WitnessOnlyFull,
    #[msg("an endpoint or URI must be at most 96 bytes of printable ASCII without spaces")]
    InvalidText,
    #[msg("the session key must not be zero")]
    InvalidSessionKey,
    #[msg("this participant does not hold an index: it has not joined, or has left")]
    NotJoined,
    #[msg("this participant is leaving already")]
    AlreadyLeaving,
    #[msg("only stake above min_stake_lamports can be withdrawn: use leave_run to withdraw all")]
    StakeBelowMinimum,
    #[msg("all unbonding tickets are in use: withdraw the matured ones first")]
    TicketsFull,
    #[msg("nothing to withdraw: no ticket has matured")]
    NothingToWithdraw,
    #[msg("nothing to claim: no reward has vested")]
    NothingToClaim,
    #[msg(
        "cases of the last round may still be open: wait until finished_slot + the longest path"
    )]
    CasesMayBeOpen,
    #[msg("nothing to close: pass rounds, checkpoints or settled participants, with their payers")]
    NothingToClose,
    #[msg("no checkpoint of this round: pass the Checkpoint account of the announced round")]
    WrongCheckpoint,

    // Never expected.
    #[msg("arithmetic overflow: please report this transaction")]
    MathOverflow,
    #[msg("the vault does not cover what it owes: please report this transaction")]
    VaultShort,
    #[msg("the state contradicts itself: please report this transaction")]
    InvariantViolated,
    // Rounds (appended by the instructions of the round).
    #[msg("another round is open: read run.round and use its number")]
    WrongRound,
    #[msg("too late: the last slot of this phase has passed")]
    PhaseOver,
    #[msg("the phase has not ended: neither its last slot, nor all, nor 4/5 and their grace")]
    PhaseNotOver,
    #[msg("no transition is due: read run.phase and run.phase_end_slot")]
    NothingDue,
    #[msg("this index does not train in this round: its sets were fixed at the open")]
    NotATrainer,
    #[msg("this index is not a member of this round: its sets were fixed at the open")]
    NotAMember,
    #[msg("this index has committed already: the first commit binds")]
    AlreadyCommitted,
    #[msg("this index has attested already: once per round")]
    AlreadyAttested,
    #[msg("the header hash must not be zero: commit the hash of the signed header")]
    HeaderHashZero,
    #[msg("a root-only vote has no payload: its header hash must be zero")]
    HeaderHashNotZero,
    #[msg("the root vote must not be zero")]
    RootVoteZero,
    #[msg("the bitmap names an index that has not committed: attest only committed payloads")]
    AttestOutsideCommits,
    #[msg("a possession byte is set where the bitmap is not: it must be zero there")]
    PossessionOutsideBitmap,
    #[msg("the candidate root lacks more than half of the commits, or half of the trainers")]
    CandidateNotCanonical,
    #[msg("too early to close void: wait until phase_end_slot + close_grace_slots has passed")]
    CloseGraceRemaining,
    #[msg("this close stores a checkpoint: pass the Checkpoint account of this round")]
    CheckpointAccountMissing,
    #[msg(
        "the seed of round - keep_rounds is open: first send freeze_seed or retarget_seed for it"
    )]
    SeedPending,
    #[msg("this round waits for no seed: it is open, void, frozen or lost")]
    SeedNotPending,
    #[msg("too early: no slot at or after the seed slot is listed in SlotHashes yet")]
    SeedTooEarly,
    #[msg("the seed slot has left SlotHashes: send retarget_seed")]
    SeedSlotLost,
    #[msg("the seed slot has not left SlotHashes: send freeze_seed")]
    SeedNotLost,
    #[msg("not the SlotHashes sysvar: pass SysvarS1otHashes111111111111111111111111111")]
    WrongSysvar,
    #[msg("the SlotHashes sysvar has an unknown form: please report this transaction")]
    MalformedSlotHashes,
    #[msg("this participant is active already: post_ready is for those who are not")]
    AlreadyActive,
    #[msg("this participant is ready already")]
    AlreadyReady,
    #[msg("this participant is jailed: wait for the round jailed_until_round")]
    StillJailed,
    #[msg("inactive twice within 500 rounds: wait for the round return_round")]
    ReturnsLater,
    #[msg("the stake is below what this member must keep: send top_up_stake first")]
    StakeTooLow,
    #[msg("the ready vote is not that of the canonical root: compare the weights and post again")]
    ReadyRootMismatch,
    #[msg("no root was posted for this round: send post_ready before its close")]
    NotReady,
    #[msg("this round is open or closed void: it has no canonical root to compare with")]
    RoundHasNoRoot,
    #[msg("missing payloads are reported only while the round that builds on them is open")]
    ReportsClosed,
    #[msg("the payload of this index is not included in this round, or was struck already")]
    NotIncluded,
    #[msg("this member has reported this payload already")]
    AlreadyReported,

    // Audits and cases.
    #[msg("unknown kind: 0 work, 1 payload, 2 root, 3 possession")]
    UnknownAuditKind,
    #[msg("the audit is not in the stage that this instruction acts on: read audit.stage")]
    WrongStage,
    #[msg("too late: the window of this stage ended at stage_end on the run clock")]
    WindowOver,
    #[msg("too early: the window of this stage lasts until stage_end on the run clock")]
    WindowOpen,
    #[msg("this participant has no seat here: the seed seats others")]
    NotSeated,
    #[msg("this seat has committed already: only the first hash counts")]
    SeatCommitted,
    #[msg("this seat has not committed: there is nothing to reveal")]
    SeatNotCommitted,
    #[msg("this seat has revealed already")]
    SeatRevealed,
    #[msg("verdict, evidence, sketch and salt do not give the committed hash")]
    RevealMismatch,
    #[msg("unknown verdict: 1 ok, 2 mismatch, 3 unavailable, 4 inconclusive")]
    UnknownVerdict,
    #[msg("ok and mismatch need the sketch of a gradient, not 64 zeros: say inconclusive")]
    ZeroSketch,
    #[msg("only cases of work take a sketch: send 64 zeros")]
    SketchNotNeeded,
    #[msg("the commitment must not be zero")]
    CommitmentZero,
    #[msg("the seed of this round is not frozen: send freeze_seed first, unless it was lost")]
    SeedNotFrozen,
    #[msg("this target is not in the sample of the round, nor was its audit requested")]
    NotSampled,
    #[msg("the audit of this target was opened already: there is one for each payload")]
    AlreadyAudited,
    #[msg("fewer than three witnesses are eligible: this target has no audit")]
    TooFewWitnesses,
    #[msg("the openings root must not be zero")]
    OpeningsRootZero,
    #[msg("openings were posted already: the first root stands")]
    OpeningsPosted,
    #[msg("the first seats did not agree: send extend_audit first")]
    ExtensionDue,
    #[msg("no extension is due: the seats agree, or no more are eligible")]
    ExtensionNotDue,
    #[msg("audit_cap audits of this round are requested already")]
    RequestsFull,
    #[msg("an audit of this target is requested already")]
    AlreadyRequested,
    #[msg("pass the Participant of everybody whose stake may not cover the penalty")]
    ParticipantMissing,
    #[msg("too late: a case is opened within case_slots and while the round is in the ring")]
    CaseWindowOver,
    #[msg("this case cannot be: nothing was committed, included or vouched for as it claims")]
    CaseWithoutSubject,
    #[msg("the challenger is the target")]
    ChallengesItself,
    #[msg("the challenger does not own the participant index that it names")]
    WrongChallenger,
    #[msg("the convictions of this epoch are at their cap: settle the case in the next epoch")]
    SlashCapReached,
    #[msg("an earlier conviction of this kind may still be reversed: settle after its release")]
    ConvictionPending,
    #[msg("convicted of this kind since: a case about an earlier round takes its reward at most")]
    AlreadyConvicted,
    #[msg("the signer is not the council of this run")]
    WrongCouncil,
    #[msg("this conviction was appealed already")]
    AlreadyAppealed,
    #[msg("there is no conviction to appeal here")]
    NotConvicted,
    #[msg("neither an appeal nor the breaker lets the council act on this case")]
    NotReversible,
    #[msg("this conviction was reversed already")]
    AlreadyReversed,
    #[msg("an accusation, case or escrow is open against this participant: wait for its end")]
    Frozen,
    #[msg("not the incinerator: pass 1nc1nerator11111111111111111111111111111111")]
    WrongIncinerator,
    #[msg("audits of this run are open: send release_escrow for each of them first")]
    AuditsOpen,

    // Events.
    #[msg("not the event authority: derive it from the seed `__event_authority` alone")]
    WrongEventAuthority,
    #[msg("not this program: pass the program id after the event authority")]
    WrongProgram,
    #[msg("the events are longer than 4096 bytes: pass fewer accounts")]
    TooManyEvents,
}
