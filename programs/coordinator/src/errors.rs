//! Every refusal of the program has a name here: what was expected, what to do next.

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

/// Why an instruction was refused.
#[error_code]
pub enum CoordinatorError {
    // Accounts and signers.
    /// The address is taken.
    #[msg("the account already exists: fetch it instead of creating it")]
    AccountAlreadyExists,
    /// The account has another length than its layout.
    #[msg("the account has the wrong size: pass the account of this type, fully grown")]
    WrongAccountSize,
    /// The same account was passed twice.
    #[msg("the same account was passed twice: pass each account once")]
    DuplicateAccount,
    /// The address is not the one derived from the seeds.
    #[msg("the address does not match its seeds: derive it again with the program id")]
    WrongAddress,
    /// The account belongs to another run.
    #[msg("the account belongs to another run: pass the accounts of one run")]
    WrongRun,
    /// Not the roster of the run.
    #[msg("not the roster of this run: pass run.roster")]
    WrongRoster,
    /// Not the vault of the run.
    #[msg("not the vault of this run: pass run.vault")]
    WrongVault,
    /// The signer is not the run's authority.
    #[msg("the signer is not the authority of this run")]
    WrongAuthority,
    /// The signer is not the run's funder.
    #[msg("the signer is not the funder of this run")]
    WrongFunder,
    /// The signer does not own this participant.
    #[msg("the signer is not the owner of this participant")]
    WrongOwner,
    /// The signer is not the session key in force at this index.
    #[msg("the signer is not the session key in force at this index: see set_session_key")]
    WrongSessionKey,
    /// Rent goes back only to whoever paid it.
    #[msg("the payer is not the one recorded in the account: rent returns to whoever paid it")]
    WrongPayer,
    /// Not the round account that the instruction needs.
    #[msg("not the account of this round: pass the one at position round mod ring")]
    WrongRoundAccount,
    /// An account that this step needs was not passed.
    #[msg("an account that this step needs was not passed")]
    AccountMissing,
    /// The payer or owner lacks lamports.
    #[msg("not enough lamports: fund the paying key and send again")]
    InsufficientFunds,

    // Parameters.
    /// Capacity outside 1..=64.
    #[msg("capacity must be 1 to 64")]
    CapacityOutOfRange,
    /// min_members outside 1..=capacity.
    #[msg("min_members must be 1 to capacity")]
    MinMembersOutOfRange,
    /// keep_rounds below 2.
    #[msg("keep_rounds must be at least 2: a round cannot wait for the seed that its open names")]
    KeepRoundsTooFew,
    /// ring outside keep_rounds + 2..=64.
    #[msg("ring must be keep_rounds + 2 to 64")]
    RingOutOfRange,
    /// max_witness_only above capacity.
    #[msg("max_witness_only must be at most capacity")]
    WitnessOnlyOutOfRange,
    /// A count is zero or above 2^32 - 1.
    #[msg("sequences_per_payload and every count of rounds must be 1 to 2^32 - 1")]
    CountOutOfRange,
    /// A window is zero.
    #[msg("every window but max_pause must be at least one slot")]
    WindowZero,
    /// A window is absurdly long.
    #[msg("a window must be at most 2^40 slots")]
    WindowTooLong,
    /// seed_delay reaches beyond the listed slots.
    #[msg("seed_delay_slots must be less than the 512 slots that SlotHashes lists")]
    SeedDelayTooLong,
    /// max_pause above unbond.
    #[msg("max_pause_slots must be at most unbond_slots")]
    PauseLongerThanUnbond,
    /// Vesting ends before the last case could.
    #[msg("vesting_slots must exceed the longest path of round, audit, case, appeal and breaker")]
    VestingTooShort,
    /// Unbonding ends before the last case could.
    #[msg("unbond_slots must exceed the longest path of round, audit, case, appeal and breaker")]
    UnbondTooShort,
    /// An amount above 2^56.
    #[msg("an amount must be at most 2^56 lamports")]
    AmountTooLarge,
    /// Stake below 60 rewards.
    #[msg("stake_lamports must be at least 60 rewards, and at least 1")]
    StakeTooSmall,
    /// Fee above a tenth of the stake.
    #[msg("absence_fee must be at most a tenth of the stake")]
    AbsenceFeeTooLarge,
    /// Bond below its bound.
    #[msg("bond_lamports must be at least 14 witness fees and 5 rewards")]
    BondTooSmall,
    /// Chances out of order.
    #[msg("chances must satisfy p_base_ppm <= p_new_ppm <= 1000000")]
    ChanceOutOfRange,
    /// audit_cap outside its bounds.
    #[msg("audit_cap must be at least ceil(p_base * capacity), and at most capacity")]
    AuditCapOutOfRange,
    /// Unknown admission.
    #[msg("admission must be 0 (open) or 1 (allowlist)")]
    UnknownAdmission,
    /// Reserved bytes are not zero.
    #[msg("reserved bytes must be zero")]
    ReservedNotZero,
    /// A parameter that never changes.
    #[msg("sizes, counts of rounds, vesting, unbonding and admission never change")]
    ImmutableParameter,
    /// An update would leave less time to act.
    #[msg(
        "an update never shortens warmup, commit, attest, grace, delay, audit or appeal windows"
    )]
    WindowShrinks,
    /// An update would make a penalty larger.
    #[msg("an update never raises absence_fee or recompute_cost")]
    PenaltyGrows,

    // Phases.
    /// The instruction does not belong to the phase.
    #[msg("not possible in this phase: read run.phase and try again later")]
    WrongPhase,
    /// The run is finished.
    #[msg("the run is finished: only leaving, claiming, withdrawing and closing remain")]
    RunFinished,
    /// The run is not finished.
    #[msg("the run is not finished yet")]
    RunNotFinished,
    /// A pause is under way or requested.
    #[msg("the run is paused already, or will be at the next close")]
    AlreadyPaused,
    /// There is no pause to end.
    #[msg("the run is not paused and no pause is requested")]
    NotPaused,
    /// No pause budget is left.
    #[msg("the pauses of this window are spent: wait for the next window of unbond_slots")]
    PauseBudgetSpent,
    /// Only the authority may end a pause within its budget.
    #[msg("only the authority may end a pause while its budget lasts")]
    PauseBudgetRemaining,

    // Joining, leaving, money.
    /// Zero lamports.
    #[msg("the amount must be at least one lamport")]
    ZeroLamports,
    /// Position beyond the ring.
    #[msg("the position must be below ring")]
    PositionOutOfRange,
    /// Index beyond the capacity.
    #[msg("the index must be below capacity")]
    IndexOutOfRange,
    /// The index is taken.
    #[msg("the index is taken, or left less than ring rounds ago: pick another")]
    IndexTaken,
    /// No index is free.
    #[msg("the run is full: every index is taken, or left less than ring rounds ago")]
    RunFull,
    /// The join deadline has passed.
    #[msg("joining ended with round join_until_round")]
    JoinClosed,
    /// The owner holds an index.
    #[msg("this owner has joined already: leave and withdraw everything before joining again")]
    AlreadyJoined,
    /// Not on the allowlist.
    #[msg("the run admits only owners on its allowlist: ask the authority to admit this owner")]
    NotAdmitted,
    /// The run has no allowlist.
    #[msg("the run is open: nobody needs to be admitted")]
    AdmissionOpen,
    /// Convicted for good.
    #[msg("this owner is barred from the run")]
    ParticipantBarred,
    /// Roles empty or unknown.
    #[msg("roles must be 1 (trainer), 2 (witness) or 3 (both)")]
    InvalidRoles,
    /// Too many witnesses that do not train.
    #[msg("the run has max_witness_only participants that only witness: join as a trainer")]
    WitnessOnlyFull,
    /// The text is too long.
    #[msg("an endpoint or URI must be at most 96 bytes of printable ASCII without spaces")]
    InvalidText,
    /// The session key is zero.
    #[msg("the session key must not be zero")]
    InvalidSessionKey,
    /// The participant holds no index.
    #[msg("this participant does not hold an index: it has not joined, or has left")]
    NotJoined,
    /// The participant is leaving or has left.
    #[msg("this participant is leaving already")]
    AlreadyLeaving,
    /// The withdrawal would go below the minimum stake.
    #[msg("only stake above stake_lamports can be withdrawn: use leave_run to withdraw all")]
    StakeBelowMinimum,
    /// No ticket is free.
    #[msg("all unbonding tickets are in use: withdraw the matured ones first")]
    TicketsFull,
    /// Nothing has matured.
    #[msg("nothing to withdraw: no ticket has matured")]
    NothingToWithdraw,
    /// Nothing has vested.
    #[msg("nothing to claim: no reward has vested")]
    NothingToClaim,
    /// Cases may still be open.
    #[msg(
        "cases of the last round may still be open: wait until finished_slot + the longest path"
    )]
    CasesMayBeOpen,
    /// Nothing can be closed.
    #[msg("nothing to close: pass rounds, checkpoints or settled participants, with their payers")]
    NothingToClose,
    /// A vote about another root.
    #[msg("no checkpoint of this round: pass the Checkpoint account of the announced round")]
    WrongCheckpoint,

    // Never expected.
    /// Arithmetic left its range.
    #[msg("arithmetic overflow: please report this transaction")]
    MathOverflow,
    /// The vault does not cover what it owes.
    #[msg("the vault does not cover what it owes: please report this transaction")]
    VaultShort,
    /// The state contradicts itself.
    #[msg("the state contradicts itself: please report this transaction")]
    InvariantViolated,
    // Rounds (appended by the instructions of the round).
    /// Another round is open.
    #[msg("another round is open: read run.round and use its number")]
    WrongRound,
    /// The last slot of the phase has passed.
    #[msg("too late: the last slot of this phase has passed")]
    PhaseOver,
    /// The phase has not ended.
    #[msg("the phase has not ended: neither its last slot, nor all, nor 4/5 and their grace")]
    PhaseNotOver,
    /// No transition is due.
    #[msg("no transition is due: read run.phase and run.phase_end_slot")]
    NothingDue,
    /// Not a trainer of the round.
    #[msg("this index does not train in this round: its sets were fixed at the open")]
    NotATrainer,
    /// Not a member of the round.
    #[msg("this index is not a member of this round: its sets were fixed at the open")]
    NotAMember,
    /// Committed before.
    #[msg("this index has committed already: the first commit binds")]
    AlreadyCommitted,
    /// Attested before.
    #[msg("this index has attested already: once per round")]
    AlreadyAttested,
    /// A payload's header hash is zero.
    #[msg("the header hash must not be zero: commit the hash of the signed header")]
    HeaderHashZero,
    /// A root-only vote names a header.
    #[msg("a root-only vote has no payload: its header hash must be zero")]
    HeaderHashNotZero,
    /// The root vote is zero.
    #[msg("the root vote must not be zero")]
    RootVoteZero,
    /// The bitmap vouches for a payload that nobody committed.
    #[msg("the bitmap names an index that has not committed: attest only committed payloads")]
    AttestOutsideCommits,
    /// A possession byte without its bit.
    #[msg("a possession byte is set where the bitmap is not: it must be zero there")]
    PossessionOutsideBitmap,
    /// The candidate root lacks its majorities.
    #[msg("the candidate root lacks more than 1/2 of the commits or 1/3 of the trainers")]
    CandidateNotCanonical,
    /// The grace after Attest lasts.
    #[msg("too early to close void: wait until phase_end_slot + close_grace_slots has passed")]
    CloseGraceRemaining,
    /// The checkpoint account was not passed.
    #[msg("this close stores a checkpoint: pass the Checkpoint account of this round")]
    CheckpointAccountMissing,
    /// An old seed is open.
    #[msg("the seed of round - keep_rounds is open: send freeze_seed (or retarget) for it first")]
    SeedPending,
    /// The round waits for no seed.
    #[msg("this round waits for no seed: it is open, void, frozen or lost")]
    SeedNotPending,
    /// The seed slot has not come.
    #[msg("too early: no slot at or after the seed slot is listed in SlotHashes yet")]
    SeedTooEarly,
    /// The seed slot has left the list.
    #[msg("the seed slot has left SlotHashes: send retarget")]
    SeedSlotLost,
    /// The seed slot is still listed or to come.
    #[msg("the seed slot has not left SlotHashes: send freeze_seed")]
    SeedNotLost,
    /// Not the SlotHashes sysvar.
    #[msg("not the SlotHashes sysvar: pass SysvarS1otHashes111111111111111111111111111")]
    WrongSysvar,
    /// The sysvar has an unknown form.
    #[msg("the SlotHashes sysvar has an unknown form: please report this transaction")]
    MalformedSlotHashes,
    /// The participant is a member already.
    #[msg("this participant is active already: ready is for those who are not")]
    AlreadyActive,
    /// Posted before in this warmup.
    #[msg("this participant is ready already")]
    AlreadyReady,
    /// Jail lasts.
    #[msg("this participant is jailed: wait for the round jailed_until_round")]
    StillJailed,
    /// The second inactivity waits for the next epoch.
    #[msg("inactive twice within 500 rounds: wait for the round return_round")]
    ReturnsLater,
    /// The stake is below the minimum.
    #[msg("the stake is below stake_lamports: send top_up_stake first")]
    StakeTooLow,
    /// The vote is not the one of the canonical root.
    #[msg("the ready vote is not that of the canonical root: compare the weights and post again")]
    ReadyRootMismatch,
    /// Nothing was posted for this round.
    #[msg("no ready was posted for this round: send ready before its close")]
    NotReady,
    /// The round has no canonical root.
    #[msg("this round is open or closed void: it has no canonical root to compare with")]
    RoundHasNoRoot,
    /// The round can no longer be corrected.
    #[msg("missing payloads are reported only while the round that builds on them is open")]
    ReportsClosed,
    /// The payload is not included.
    #[msg("the payload of this index is not included in this round, or was struck already")]
    NotIncluded,
    /// Reported before.
    #[msg("this member has reported this payload already")]
    AlreadyReported,

    // Audits and cases.
    /// No such kind of audit.
    #[msg("unknown kind: 0 work, 1 payload, 2 root, 3 possession")]
    UnknownAuditKind,
    /// The audit stands elsewhere.
    #[msg("the audit is not in the stage that this instruction acts on: read audit.stage")]
    WrongStage,
    /// The window has ended.
    #[msg("too late: the window of this stage ended at stage_end on the run clock")]
    WindowOver,
    /// The window lasts.
    #[msg("too early: the window of this stage lasts until stage_end on the run clock")]
    WindowOpen,
    /// Neither a seat nor a juror.
    #[msg("this participant has no seat here: the seed seats others")]
    NotSeated,
    /// Committed before.
    #[msg("this seat has committed already: only the first hash counts")]
    SeatCommitted,
    /// Nothing to reveal.
    #[msg("this seat has not committed: there is nothing to reveal")]
    SeatNotCommitted,
    /// Revealed before.
    #[msg("this seat has revealed already")]
    SeatRevealed,
    /// The reveal is not what was committed.
    #[msg("verdict, evidence, sketch and salt do not give the committed hash")]
    RevealMismatch,
    /// No such verdict.
    #[msg("unknown verdict: 1 ok, 2 mismatch, 3 unavailable, 4 inconclusive")]
    UnknownVerdict,
    /// A commit of zeros.
    #[msg("the commitment must not be zero")]
    CommitmentZero,
    /// The round has no seed.
    #[msg("the seed of this round is not frozen: send freeze_seed first, unless it was lost")]
    SeedNotFrozen,
    /// Not in the sample.
    #[msg("this target is not in the sample of the round, nor was its audit requested")]
    NotSampled,
    /// Opened before.
    #[msg("the audit of this target was opened already: there is one for each payload")]
    AlreadyAudited,
    /// Too few witnesses.
    #[msg("fewer than three witnesses are eligible: this target has no audit")]
    TooFewWitnesses,
    /// An openings root of zeros.
    #[msg("the openings root must not be zero")]
    OpeningsRootZero,
    /// Posted before.
    #[msg("openings were posted already: the first root stands")]
    OpeningsPosted,
    /// More seats are due.
    #[msg("the first seats did not agree: send extend_audit first")]
    ExtensionDue,
    /// No more seats are due.
    #[msg("no extension is due: the seats agree, or no more are eligible")]
    ExtensionNotDue,
    /// Enough were requested.
    #[msg("audit_cap audits of this round are requested already")]
    RequestsFull,
    /// Requested before.
    #[msg("an audit of this target is requested already")]
    AlreadyRequested,
    /// The account of somebody who is penalised is missing.
    #[msg("pass the Participant of everybody whose stake may not cover the penalty")]
    ParticipantMissing,
    /// The case window has ended.
    #[msg("too late: a case is opened within case_slots and while the round is in the ring")]
    CaseWindowOver,
    /// The case makes no sense.
    #[msg("this case cannot be: nothing was committed, included or vouched for as it claims")]
    CaseWithoutSubject,
    /// A case about oneself.
    #[msg("the challenger is the target")]
    ChallengesItself,
    /// Not the owner of the index given.
    #[msg("the challenger does not own the participant index that it names")]
    WrongChallenger,
    /// The cap of the epoch.
    #[msg("the convictions of this epoch are at their cap: settle the case in the next epoch")]
    SlashCapReached,
    /// Not the council.
    #[msg("the signer is not the council of this run")]
    WrongCouncil,
    /// Appealed before.
    #[msg("this conviction was appealed already")]
    AlreadyAppealed,
    /// Nothing to appeal.
    #[msg("there is no conviction to appeal here")]
    NotConvicted,
    /// Nothing to reverse.
    #[msg("neither an appeal nor the breaker lets the council act on this case")]
    NotReversible,
    /// Reversed before.
    #[msg("this conviction was reversed already")]
    AlreadyReversed,
    /// Payments are frozen.
    #[msg("an accusation, case or escrow is open against this participant: wait for its end")]
    Frozen,
    /// Not the incinerator.
    #[msg("not the incinerator: pass 1nc1nerator11111111111111111111111111111111")]
    WrongIncinerator,
    /// Audits are open.
    #[msg("audits of this run are open: send release_escrow for each of them first")]
    AuditsOpen,
}
