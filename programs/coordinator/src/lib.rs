//! The troth coordinator: orders the rounds of a run, holds stakes, pays rewards.
//!
//! Owns the list of instructions. Never holds logic. Next: `instructions`, one file each;
//! `state` for the layouts; `rules` for the decisions. Specification: `docs/protocol.md`.

// Anchor's error type is large; boxing it is not ours to decide.
#![allow(clippy::result_large_err)]
// `#[program]` and `derive(Accounts)` generate items without documentation beside ours. So the lint
// is denied module by module, though not where the IDL is extracted, which generates more. A test
// looks at `instructions` and at this file.
#![allow(missing_docs)]

#[macro_use]
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod errors;
#[macro_use]
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod events;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod audit;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod case;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod constants;
pub mod instructions;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod math;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod pda;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod round;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod rules;
#[cfg_attr(not(feature = "idl-build"), deny(missing_docs))]
pub mod state;

use anchor_lang::prelude::*;

use constants::SKETCH_LEN;
pub use instructions::*;
use state::Params;

declare_id!("TrothCoordinator111111111111111111111111111");

/// The instructions, in the order of a run's life.
#[program]
pub mod coordinator {
    use super::*;

    /// Creates a run and its vault.
    pub fn create_run(ctx: Context<CreateRun>, args: CreateRunArgs) -> Result<()> {
        journalled!(ctx, journal => CreateRun::handle(ctx, journal, args))
    }

    /// Creates the roster, and grows it by 10 240 bytes per call until it is full size.
    pub fn init_roster(ctx: Context<InitRoster>) -> Result<()> {
        journalled!(ctx, journal => InitRoster::handle(ctx, journal))
    }

    /// Creates one position of the ring of rounds.
    pub fn init_round(ctx: Context<InitRound>, position: u16) -> Result<()> {
        journalled!(ctx, journal => InitRound::handle(ctx, journal, position))
    }

    /// Puts an owner on the allowlist.
    pub fn admit(ctx: Context<Admit>, owner: Pubkey) -> Result<()> {
        journalled!(ctx, journal => Admit::handle(ctx, journal, owner))
    }

    /// Adds lamports to the reward pool.
    pub fn fund_run(ctx: Context<FundRun>, lamports: u64) -> Result<()> {
        journalled!(ctx, journal => FundRun::handle(ctx, journal, lamports))
    }

    /// Deposits the stake and takes an index.
    pub fn join_run<'info>(ctx: Context<'info, JoinRun<'info>>, args: JoinArgs) -> Result<()> {
        journalled!(ctx, journal => JoinRun::handle(ctx, journal, args))
    }

    /// Adds to a stake.
    pub fn top_up_stake(ctx: Context<TopUpStake>, lamports: u64) -> Result<()> {
        journalled!(ctx, journal => TopUpStake::handle(ctx, journal, lamports))
    }

    /// Changes where a participant serves what it holds, at once.
    pub fn set_endpoint(ctx: Context<SetEndpoint>, endpoint: String) -> Result<()> {
        journalled!(ctx, journal => SetEndpoint::handle(ctx, journal, endpoint))
    }

    /// Names a new session key, in force from the next round open.
    pub fn set_session_key(ctx: Context<SetSessionKey>, session: Pubkey) -> Result<()> {
        journalled!(ctx, journal => SetSessionKey::handle(ctx, journal, session))
    }

    /// Posts the root that a participant would train on.
    pub fn post_ready(
        ctx: Context<PostReady>,
        index: u16,
        round: u64,
        vote: [u8; 32],
    ) -> Result<()> {
        let args = PostReadyArgs { index, round, vote };
        journalled!(ctx, journal => PostReady::handle(ctx, journal, &args))
    }

    /// Makes a ready participant a member of the next round.
    pub fn activate(ctx: Context<Activate>, index: u16) -> Result<()> {
        journalled!(ctx, journal => Activate::handle(ctx, journal, index))
    }

    /// Moves the run to its next phase once that is due.
    pub fn advance_phase(ctx: Context<AdvancePhase>) -> Result<()> {
        journalled!(ctx, journal => AdvancePhase::handle(ctx, journal))
    }

    /// Commits to a header and votes for a root.
    pub fn commit_payload(
        ctx: Context<MemberInRound>,
        index: u16,
        round: u64,
        header_hash: [u8; 32],
        root_vote: [u8; 32],
    ) -> Result<()> {
        let args = CommitPayloadArgs {
            index,
            round,
            header_hash,
            root_vote,
        };
        journalled!(ctx, journal => commit_payload::handle(ctx, journal, &args))
    }

    /// Vouches for the payloads that a member holds.
    pub fn attest(
        ctx: Context<MemberInRound>,
        index: u16,
        round: u64,
        bitmap: u64,
        possession: [u8; 64],
    ) -> Result<()> {
        let args = AttestArgs {
            index,
            round,
            bitmap,
            possession,
        };
        journalled!(ctx, journal => attest::handle(ctx, journal, &args))
    }

    /// Closes a round under its canonical root and opens the next.
    pub fn close_round(
        ctx: Context<CloseRound>,
        round: u64,
        candidate_root: [u8; 32],
    ) -> Result<()> {
        journalled!(ctx, journal => CloseRound::handle(ctx, journal, round, candidate_root))
    }

    /// Closes a round without a result and opens the next.
    pub fn close_void(ctx: Context<CloseVoid>, round: u64) -> Result<()> {
        journalled!(ctx, journal => CloseVoid::handle(ctx, journal, round))
    }

    /// Fixes the seed of a closed round's audits.
    pub fn freeze_seed(ctx: Context<SeedOfRound>, round: u64) -> Result<()> {
        journalled!(ctx, journal => freeze_seed::handle(ctx, journal, round))
    }

    /// Names another seed slot where the first one is no longer listed.
    pub fn retarget_seed(ctx: Context<SeedOfRound>, round: u64) -> Result<()> {
        journalled!(ctx, journal => retarget_seed::handle(ctx, journal, round))
    }

    /// Reports an included payload that nobody serves.
    pub fn report_missing(
        ctx: Context<ReportMissing>,
        index: u16,
        round: u64,
        target: u16,
    ) -> Result<()> {
        let args = ReportMissingArgs {
            index,
            round,
            target,
        };
        journalled!(ctx, journal => ReportMissing::handle(ctx, journal, &args))
    }

    /// Pays for one more audit of the round under way, in advance.
    pub fn request_audit(ctx: Context<Challenge>, round: u64, target: u16) -> Result<()> {
        journalled!(ctx, journal => request_audit::handle(ctx, journal, round, target))
    }

    /// Opens the audit of a sampled or requested target.
    pub fn open_audit(ctx: Context<OpenAudit>, round: u64, target: u16) -> Result<()> {
        journalled!(ctx, journal => OpenAudit::handle(ctx, journal, round, target))
    }

    /// Fixes what a target shows; opens the audit if nobody has.
    pub fn post_openings(
        ctx: Context<PostOpenings>,
        round: u64,
        target: u16,
        root: [u8; 32],
    ) -> Result<()> {
        journalled!(ctx, journal => PostOpenings::handle(ctx, journal, round, target, root))
    }

    /// Commits a seat to a hidden verdict.
    pub fn commit_verdict(
        ctx: Context<JudgeInAudit>,
        index: u16,
        commitment: [u8; 32],
    ) -> Result<()> {
        journalled!(ctx, journal => commit_verdict::handle(ctx, journal, index, commitment))
    }

    /// Shows the verdict of a seat.
    pub fn reveal_verdict(
        ctx: Context<JudgeInAudit>,
        index: u16,
        verdict: u8,
        evidence: [u8; 32],
        sketch: [i32; SKETCH_LEN],
        salt: [u8; 32],
    ) -> Result<()> {
        let args = RevealArgs {
            index,
            verdict,
            evidence,
            sketch,
            salt,
        };
        journalled!(ctx, journal => reveal_verdict::handle(ctx, journal, &args))
    }

    /// Seats the remaining witnesses where the first ones do not agree.
    pub fn extend_audit(ctx: Context<ExtendAudit>) -> Result<()> {
        journalled!(ctx, journal => ExtendAudit::handle(ctx, journal))
    }

    /// Ends an audit: outcome, fees and penalties of the seats.
    pub fn settle_audit<'info>(ctx: Context<'info, Settlement<'info>>) -> Result<()> {
        journalled!(ctx, journal => settle_audit::handle(ctx, journal))
    }

    /// Posts a bond, so that a jury judges.
    pub fn open_case(
        ctx: Context<Challenge>,
        round: u64,
        target: u16,
        kind: u8,
        subject: u16,
    ) -> Result<()> {
        let args = OpenCaseArgs {
            round,
            target,
            kind,
            subject,
        };
        journalled!(ctx, journal => open_case::handle(ctx, journal, &args))
    }

    /// Fixes the seed of a case and seats the jury.
    pub fn draw_jury(ctx: Context<DrawJury>) -> Result<()> {
        journalled!(ctx, journal => DrawJury::handle(ctx, journal))
    }

    /// Commits to the hash of a vote (verdict 0), or shows the vote behind it.
    pub fn vote_case(
        ctx: Context<JudgeInAudit>,
        index: u16,
        verdict: u8,
        hash: [u8; 32],
        sketch: [i32; SKETCH_LEN],
        salt: [u8; 32],
    ) -> Result<()> {
        let args = VoteCaseArgs {
            index,
            verdict,
            hash,
            sketch,
            salt,
        };
        journalled!(ctx, journal => vote_case::handle(ctx, journal, &args))
    }

    /// Ends a case once its jury has voted.
    pub fn settle_case<'info>(ctx: Context<'info, Settlement<'info>>) -> Result<()> {
        journalled!(ctx, journal => settle_case::handle(ctx, journal))
    }

    /// Asks the council to look at a conviction.
    pub fn appeal_case(ctx: Context<AppealCase>) -> Result<()> {
        journalled!(ctx, journal => AppealCase::handle(ctx, journal))
    }

    /// Reverses a conviction; only the council, and nothing else.
    pub fn reverse_case(ctx: Context<ReverseCase>) -> Result<()> {
        journalled!(ctx, journal => ReverseCase::handle(ctx, journal))
    }

    /// Pays the escrow of a conviction, and closes any audit that is over.
    pub fn release_escrow<'info>(ctx: Context<'info, ReleaseEscrow<'info>>) -> Result<()> {
        journalled!(ctx, journal => ReleaseEscrow::handle(ctx, journal))
    }

    /// Announces where the files of a checkpoint are.
    pub fn announce_manifest(
        ctx: Context<AnnounceManifest>,
        index: u16,
        round: u64,
        manifest_hash: [u8; 32],
        uri: String,
    ) -> Result<()> {
        journalled!(ctx, journal => {
            AnnounceManifest::handle(ctx, journal, index, round, manifest_hash, uri)
        })
    }

    /// Stops the clock: at once between rounds, else at the next close.
    pub fn pause_run(ctx: Context<PauseRun>) -> Result<()> {
        journalled!(ctx, journal => PauseRun::handle(ctx, journal))
    }

    /// Restarts the clock, or cancels a requested pause.
    pub fn resume_run(ctx: Context<ResumeRun>) -> Result<()> {
        journalled!(ctx, journal => ResumeRun::handle(ctx, journal))
    }

    /// Requests new parameters, in force from an epoch boundary after the delay.
    pub fn update_params(ctx: Context<UpdateParams>, params: Params) -> Result<()> {
        journalled!(ctx, journal => UpdateParams::handle(ctx, journal, params))
    }

    /// Starts leaving: the whole stake unbonds.
    pub fn leave_run(ctx: Context<LeaveRun>) -> Result<()> {
        journalled!(ctx, journal => LeaveRun::handle(ctx, journal))
    }

    /// Pays matured stake, and unbonds stake above the minimum.
    pub fn withdraw_stake(ctx: Context<WithdrawStake>, unbond_lamports: u64) -> Result<()> {
        journalled!(ctx, journal => WithdrawStake::handle(ctx, journal, unbond_lamports))
    }

    /// Pays vested rewards.
    pub fn claim_reward(ctx: Context<ClaimReward>) -> Result<()> {
        journalled!(ctx, journal => ClaimReward::handle(ctx, journal))
    }

    /// Closes the accounts of a finished run, batch by batch.
    pub fn close_run<'info>(ctx: Context<'info, CloseRun<'info>>) -> Result<()> {
        journalled!(ctx, journal => CloseRun::handle(ctx, journal))
    }
}
